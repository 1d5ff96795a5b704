"""Tests of tags, and of reading an expired epoch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.reading.store import Store
from state.clock import ManualClock
from state.location import Location
from state.ownership.owner import Ownership, read_owner
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import put_tag
from tests.slackwater.reading.written_root import START, WrittenRoot

LAST = RetentionSettings(keep_s=0, keep_epochs=1)


def opened(written: WrittenRoot) -> Store:
    return sw.open(written.root.url, storage_options=written.root.storage_options)


def tag(written: WrittenRoot, name: str, epoch: int) -> None:
    run_as_owner(written.root.url, written.root.storage_options, lambda store, _: put_tag(store, name, epoch))


def vacuum_now(written: WrittenRoot) -> None:
    run_as_owner(written.root.url, written.root.storage_options, lambda store, root: vacuum(store, root, LAST))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("place", ["written", "written_s3"])
def test_a_tagged_epoch_is_kept_and_read_by_its_name(place: str, request: pytest.FixtureRequest) -> None:
    written: WrittenRoot = request.getfixturevalue(place)
    tag(written, "audit", written.epochs[2])
    vacuum_now(written)
    store = opened(written)
    assert store.tags() == {"audit": written.epochs[2]}
    assert store.epochs()["epoch"].to_pylist() == written.epochs[2:]
    for snapshot in (store.snapshot(tag="audit"), store.snapshot("audit"), store.snapshot(written.epochs[2])):
        assert snapshot.epoch == written.epochs[2]
        assert snapshot.view("late").to_arrow().num_rows == 2
        assert snapshot.files("flights", status="done").num_rows == 2
    assert store.snapshot().view("late").to_arrow().num_rows == 3


def test_an_expired_epoch_is_told_apart_from_one_that_is_yet_to_come(written: WrittenRoot) -> None:
    vacuum_now(written)
    store = opened(written)
    with pytest.raises(sw.errors.EpochExpiredError, match="no longer retained"):
        store.snapshot(written.epochs[1])
    with pytest.raises(sw.errors.EpochExpiredError, match="committed up to"):
        store.snapshot(as_of=START + timedelta(seconds=1))
    with pytest.raises(sw.errors.EpochNotFoundError) as raised:
        store.snapshot(written.epochs[-1] + 1)
    assert not isinstance(raised.value, sw.errors.EpochExpiredError)
    with pytest.raises(sw.errors.UsageError, match="the tags are: none"):
        store.snapshot("audit")


def test_a_reader_whose_files_vanish_is_told_that_its_epoch_has_expired(written: WrittenRoot) -> None:
    snapshot = opened(written).snapshot(written.epochs[1])
    carriers, late = snapshot.view("by_carrier"), snapshot.view("late")
    assert late.schema.names == ["day", "delay"]  # open, and not read yet
    vacuum_now(written)
    with pytest.raises(sw.errors.EpochExpiredError, match="by_carrier"):
        carriers.to_arrow()
    with pytest.raises(sw.errors.EpochExpiredError, match="not retained"):
        snapshot.files("flights")


def test_a_view_that_is_open_when_its_files_vanish_has_expired(written: WrittenRoot) -> None:
    view = opened(written).snapshot(written.epochs[2]).view("by_carrier")
    assert view.schema.names == ["carrier", "n"]  # open, and not read yet
    vacuum_now(written)
    with pytest.raises(sw.errors.EpochExpiredError, match="by_carrier"):
        view.to_arrow()


def test_a_living_owner_is_not_disturbed_and_the_root_is_let_go_of_afterwards(written: WrittenRoot) -> None:
    tag(written, "a", written.epochs[0])
    owner = read_owner(written.root)
    assert owner is not None and owner.released and owner.term == 2
    running = Ownership(written.root, ManualClock(), run_id="r", pipeline="flights")
    running.acquire()
    running.update(phase="running")
    try:

        class Renewing(ManualClock):
            def sleep(self, seconds: float) -> None:
                super().sleep(seconds)
                running.update(last_error=str(self.monotonic()))
                running.renew()

        with pytest.raises(sw.errors.OwnedError, match="flights"):
            run_as_owner(written.root.url, {}, lambda store, _: put_tag(store, "b", 1), clock=Renewing())
    finally:
        running.release()
    assert opened(written).tags() == {"a": written.epochs[0]}


def test_a_root_without_a_store_gets_no_owner(tmp_path: Path) -> None:
    with pytest.raises(sw.errors.StoreNotFoundError):
        run_as_owner(str(tmp_path), {}, lambda store, _: None)
    assert read_owner(Location(str(tmp_path))) is None
