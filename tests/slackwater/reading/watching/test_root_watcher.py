"""A run on a root, as other processes see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.plugins.ui.root_documents import RootDocuments
from slackwater.reading.store import Store
from slackwater.reading.watching.root_watcher import RootWatcher
from slackwater.reading.watching.stored_status import stored_status
from slackwater.status.run_status import RunStatus, SourceStatus, ViewStatus
from state.capabilities.probe import Capability
from state.capabilities.store_record import NAME, StoreRecord
from state.clock import ManualClock
from state.errors import StoreNotFoundError
from state.location import Location
from state.ownership.owner import Ownership
from state.ownership.process_identity import ProcessIdentity
from tests.slackwater.cli.command import slackwater
from tests.slackwater.reading.failed_views import OVERFLOW, fail_view
from tests.slackwater.reading.written_root import START, WrittenRoot, write_root
from tests.state.ownership.child_process import child_process

TOLD = RunStatus(phase="running", epoch=5, sources={"flights": SourceStatus(waiting=7, rows_per_s=1.5)}, seconds=60.0)


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


class Running:
    """A run's `owner.json`, written when the test says so."""

    def __init__(self, root: Location, run_id: str = "r") -> None:
        self.clock = ManualClock(START)
        self.ownership = Ownership(root, self.clock, run_id=run_id, pipeline="flights", interval_s=3600)
        self.ownership.acquire(takeover=True)

    def notify(self, status: RunStatus = TOLD) -> None:
        self.ownership.notify(lambda: status.to_json())
        self.clock.advance(5)
        self.ownership.renew()


@pytest.fixture
def run(written: WrittenRoot) -> Iterator[Running]:
    running = Running(written.root)
    yield running
    running.ownership.release()


def test_where_nobody_runs_the_store_tells_everything(written: WrittenRoot) -> None:
    look = RootWatcher(written.root, ManualClock()).look()
    assert (look.life.state, look.owner, look.warning) == ("none", None, "")
    status = look.status
    assert (status.phase, status.epoch, "no run is alive" in status.message) == ("stopped", written.epochs[-1], True)
    flights = status.sources["flights"]
    assert (flights.waiting, flights.reading, flights.done, flights.quarantined) == (1, 1, 2, 1)
    assert (flights.listed, flights.rows, flights.rows_bad) == (5, 1004, 1)
    assert {name: (view.view_class, view.rows) for name, view in status.views.items()} == {
        "by_carrier": ("aggregate", 3),
        "late": ("append", 3),
    }
    assert [epoch.epoch for epoch in status.recent] == written.epochs and status.recent[-1].counts.rows == 1000
    assert status.recent[-1].seconds.spark == 1.0
    assert RunStatus.of_json(status.to_json()) == status


def test_a_root_without_a_run_has_its_failed_views(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2])
    fail_view(written.root, "by_carrier", None)
    views = RootWatcher(written.root, ManualClock()).look().status.views
    assert views["late"] == ViewStatus("append", 3, stale_epoch=written.epochs[2], error=OVERFLOW)
    assert views["by_carrier"] == ViewStatus("aggregate", 3, stale_epoch=None, error=OVERFLOW)


def test_a_run_that_is_heard_of_tells_how_far_it_is(written: WrittenRoot, run: Running) -> None:
    clock = ManualClock()
    run.notify()
    watcher = RootWatcher(written.root, clock)
    assert (watcher.look().life.state, watcher.look().status) == ("unheard", TOLD)
    clock.advance(2)
    assert watcher.look().status == replace(TOLD, seconds=62.0), "the seconds go on between two renewals"
    run.notify(replace(TOLD, epoch=6))
    look = watcher.look()
    assert (look.life.state, look.status.epoch, look.life.silent_s, look.warning) == ("living", 6, 0.0, "")


def test_a_silent_owner_is_told_by_the_watchers_clock_alone(written: WrittenRoot, run: Running) -> None:
    clock = ManualClock()
    watcher = RootWatcher(written.root, clock)
    run.notify()
    watcher.look()
    run.clock.advance(-86_400)  # its clock is a day behind
    run.notify()
    clock.advance(5)
    assert watcher.look().life.state == "living"
    clock.advance(19)
    assert watcher.look().life.state == "living"
    clock.advance(2)
    look = watcher.look()
    assert (look.life.state, look.status.phase, look.status.epoch) == ("silent", "silent", written.epochs[-1])
    assert "no sign of process" in look.warning and "for 21 s" in look.warning
    run.notify()
    assert watcher.look().life.state == "living", "it could not reach the root for a while"


def test_an_owner_who_was_never_heard_of_is_silent_too(written: WrittenRoot, run: Running) -> None:
    clock = ManualClock()
    run.notify()
    watcher = RootWatcher(written.root, clock)
    watcher.look()
    clock.advance(21)
    assert watcher.look().life.state == "silent"


def test_a_run_that_ends_is_seen_at_once(written: WrittenRoot, run: Running) -> None:
    watcher = RootWatcher(written.root, ManualClock())
    run.notify()
    assert watcher.look().life.state == "unheard"
    run.ownership.update(last_error="the bucket is gone")
    run.ownership.release("failed")
    look = watcher.look()
    assert (look.life.state, look.status.phase, look.warning) == ("ended", "failed", "failed: the bucket is gone")
    assert look.status.epoch == written.epochs[-1]


def test_a_process_that_was_killed_on_this_machine_is_gone_at_once(
    written: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with child_process() as child:
        monkeypatch.setattr(ProcessIdentity, "current", lambda: child)
        run = Running(written.root)
        run.notify()
        watcher = RootWatcher(written.root, ManualClock())
        assert watcher.look().life.state == "unheard"
    look = watcher.look()
    assert (look.life.state, look.status.phase) == ("gone", "gone")
    assert f"process {child.pid} is gone" in look.warning


def test_a_takeover_from_a_living_run_is_told_and_a_new_start_is_none(written: WrittenRoot, run: Running) -> None:
    watcher = RootWatcher(written.root, ManualClock())
    run.notify()
    watcher.look()
    second = Running(written.root, "second")
    second.notify()
    look = watcher.look()
    assert look.owner is not None and (look.owner.run_id, look.life.took_over, look.life.state) == (
        "second",
        True,
        "living",
    )
    second.ownership.release()
    assert watcher.look().life.state == "ended"
    third = Running(written.root, "third")
    third.notify()
    assert not watcher.look().life.took_over
    third.ownership.release()


def test_a_status_of_another_version_leaves_what_is_committed(written: WrittenRoot, run: Running) -> None:
    run.ownership.notify(lambda: {"epochs": "many"})
    run.ownership.update(phase="running")
    run.ownership.renew()
    look = RootWatcher(written.root, ManualClock()).look()
    assert (look.life.state, look.status.phase, look.status.epoch) == ("unheard", "running", written.epochs[-1])


def test_a_run_that_has_committed_nothing_yet_can_be_watched(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "root"))
    watcher = RootWatcher(root, ManualClock())
    with pytest.raises(StoreNotFoundError):
        watcher.look()
    run = Running(root)
    assert watcher.look().status == RunStatus(phase="starting", message="nothing is committed yet")
    run.notify()
    assert watcher.look().status == TOLD
    write_root(root, Location(str(tmp_path / "raw")))
    run.ownership.release()
    assert watcher.look().status.sources["flights"].done == 2


def test_the_ledger_is_read_again_only_for_another_epoch(written: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Store] = []

    def counted(store: Store) -> RunStatus:
        reads.append(store)
        return stored_status(store)

    monkeypatch.setattr("slackwater.reading.watching.root_watcher.stored_status", counted)
    watcher = RootWatcher(written.root, ManualClock())
    for _ in range(3):
        watcher.look()
    assert len(reads) == 1


@pytest.mark.more
def test_a_root_whose_store_lacks_a_capability_warns(written: WrittenRoot, run: Running) -> None:
    run.notify()
    record = StoreRecord(START, "0.1.0", (), (Capability.CREATE_IF_ABSENT.value,), ("every writer was accepted",))
    (written.root.path / NAME).write_bytes(record.to_json())
    look = RootWatcher(written.root, run.clock).look()
    assert "lacks conditional creation (If-None-Match: *): every writer was accepted" in look.warning
    assert look.to_json()["warning"] == look.warning
    store = Store(written.root, run.clock)
    assert store.warnings() == [look.warning]
    assert RootDocuments(store, run.clock).now()["warnings"] == [look.warning]
    for line in (slackwater("status", written.root.url).out, slackwater("status", written.root.url, "--json").out):
        assert "lacks conditional creation" in line
