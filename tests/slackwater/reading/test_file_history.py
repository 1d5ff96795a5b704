from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pytest

from slackwater.reading.file_history import file_history
from slackwater.reading.store import Store
from slackwater.reading.store import open as open_store
from slackwater.reading.watching.stored_status import stored_status
from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.catalog import Catalog, put_unmatched
from state.tables.delta import Delta, DeltaBuilder
from state.tables.discovery_progress import DiscoveryProgress
from state.tables.fingerprint import version_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds, UnmatchedColumn
from state.upkeep.quarantine import clear_quarantine
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.notified_root import skipped
from tests.slackwater.reading.written_root import START, WrittenRoot


@pytest.fixture
def store(written: WrittenRoot) -> Store:
    return open_store(str(written.root))


@pytest.mark.more_after(3)
@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("day=1/a.csv", "done", "read to its end at epoch {2} (2026-01-31 12:00:02 UTC): 2 rows."),
        ("day=1/b.csv", "done", "3 rows, 1 of them quarantined."),
        ("day=2/big.csv", "reading", "its first 1,000 rows are in the views. It was listed at epoch {1}"),
        (
            "day=2/bad.csv",
            "quarantined",
            "at epoch {3} (2026-01-31 12:00:03 UTC): row 3: 'x' is no bigint; none of its",
        ),
        ("day=3/new.csv", "waiting", "has been waiting to be read since epoch {1}"),
        ("day=3/_hidden.csv", "hidden", "names that start with `_` or `.` are skipped"),
        ("day=3/notes.txt", "pattern", "does not match the pattern '**/*.csv' of source flights"),
        (
            "day=3/unseen.csv",
            "not_listed",
            "no listing has found it yet; the last listing ended at 2026-01-31 12:00:00",
        ),
        ("day=9/none.csv", "absent", "was never listed, and it is not there now"),
    ],
)
def test_every_path_has_its_history(store: Store, written: WrittenRoot, path: str, status: str, words: str) -> None:
    for asked in (path, f"{written.raw.url}/{path}", f"{written.raw}/{path}"):
        history = store.ledger.why(asked)
        assert (history.status, history.source) == (status, "flights")
        assert history.path == f"{written.raw.url}/{path}"
        assert words.format(*written.epochs) in history.text


def test_a_path_under_no_source_is_told_with_the_sources(store: Store, written: WrittenRoot) -> None:
    for asked in ("s3://elsewhere/day=1/a.csv", f"{written.raw}-old/a.csv"):
        history = store.ledger.why(asked)
        assert (history.status, history.source) == ("outside", None)
        assert f"the sources are: flights ({written.raw.url})" in history.text


def test_a_directory_is_told_as_one(store: Store, written: WrittenRoot) -> None:
    for asked in (str(written.raw), written.raw.url, f"{written.raw}/day=1", f"{written.raw.url}/day=9/"):
        history = store.ledger.why(asked)
        assert (history.status, history.source) == ("directory", "flights")
        assert "is a directory of source flights: name a file in it" in history.text


def test_the_time_in_a_file_history_is_that_of_the_commit(store: Store, written: WrittenRoot) -> None:
    LanceStateStore.open(written.root, ManualClock(START.replace(hour=13))).commit(
        epoch=(epoch := written.epochs[-1] + 1), delta=_done("day=3/new.csv", written.epochs[-1] + 1),
        views={}, counts=EpochCounts(), seconds=EpochSeconds(),
    )  # fmt: skip
    text = store.ledger.why("day=3/new.csv").text
    assert f"read to its end at epoch {epoch} (2026-01-31 13:00:00 UTC)" in text
    assert store.snapshot("2026-01-31 13:00:00").epoch == epoch


def _done(path: str, epoch: int) -> Delta:
    delta = DeltaBuilder()
    version = version_fingerprint('"e"', 100, START)
    delta.delete("queue", encode_key("flights", path, version), 1)
    row = {"source": "flights", "path": path, "version": version, "size": 100, "rows_read": 1, "done_epoch": epoch}
    delta.put("ledger", encode_key("flights", path, version), 1, status="done", listed_epoch=epoch, **row)
    return delta.build()


def test_the_epochs_of_a_file_history_are_those_of_the_ledger(store: Store, written: WrittenRoot) -> None:
    assert store.ledger.why("day=2/big.csv").epochs == {
        "listed_epoch": written.epochs[1],
        "first_epoch": written.epochs[3],
    }
    assert store.ledger.why(Path("day=1/a.csv")).epochs["done_epoch"] == written.epochs[2]


def test_later_changes_and_a_second_version_are_part_of_the_history(store: Store, written: WrittenRoot) -> None:
    writer = LanceStateStore.open(written.root, ManualClock())
    ledger = writer.scan("ledger")
    key = next(row["key"] for row in ledger.to_pylist() if row["path"] == "day=1/a.csv")
    epoch = written.epochs[-1] + 1
    delta = DeltaBuilder()
    delta.patch("ledger", key, 1, changed_epoch=epoch)
    second = {"source": "flights", "path": "day=1/b.csv", "size": 7, "listed_epoch": epoch}
    delta.put(
        "ledger",
        encode_key("flights", "day=1/b.csv", b"b2"),
        1,
        status="vanished",
        rows_read=4,
        deleted_epoch=epoch,
        **second,
    )
    writer.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    changed = store.ledger.why("day=1/a.csv")
    assert changed.status == "done"
    assert f"It was changed later, seen at epoch {epoch}" in changed.text
    twice = store.ledger.why("day=1/b.csv")
    assert twice.status == "vanished"
    assert twice.epochs == {"listed_epoch": epoch, "deleted_epoch": epoch}
    assert "2 versions of it were listed" in twice.text
    assert "its first 4 rows are in the views" in twice.text.splitlines()[1]


def test_a_running_pipeline_tells_when_it_listed_last(store: Store, written: WrittenRoot) -> None:
    assert store.ledger.why("day=3/unseen.csv").text.endswith("12:00:00 UTC, and no pipeline runs on this root now.")
    ownership = Ownership(written.root, ManualClock(), run_id="r", pipeline="flights", interval_s=3600)
    ownership.acquire()
    ownership.update(sources={"flights": DiscoveryProgress(listed_at=datetime(2026, 2, 1, tzinfo=UTC))})
    ownership.renew()
    assert store.ledger.why("day=3/unseen.csv").text.endswith("the last listing ended at 2026-02-01 00:00:00 UTC.")
    ownership.release()
    assert store.ledger.why("day=3/unseen.csv").text.endswith("and no pipeline runs on this root now.")


@pytest.mark.more
def test_a_file_that_waits_for_a_paused_run_says_so(store: Store, written: WrittenRoot) -> None:
    ownership = Ownership(written.root, ManualClock(), run_id="r", pipeline="flights", interval_s=3600)
    ownership.acquire()
    for phase, says in (("running", False), ("paused", True)):
        ownership.update(phase=phase)
        ownership.renew()
        for path in ("day=3/new.csv", "day=2/big.csv"):
            assert ("paused, and reads it on after `slackwater resume`" in store.ledger.why(path).text) == says
        assert "paused" not in store.ledger.why("day=1/a.csv").text
    ownership.release()
    assert "paused" not in store.ledger.why("day=3/new.csv").text


def test_columns_that_the_source_leaves_out_are_told_with_their_first_file(store: Store, written: WrittenRoot) -> None:
    assert "leaves out" not in store.ledger.why("day=1/a.csv").text
    delta, epoch = DeltaBuilder(), written.epochs[-1] + 1
    put_unmatched(delta, UnmatchedColumn("flights", "gate", "day=1/a.csv", epoch))
    put_unmatched(delta, UnmatchedColumn("flights", "crew", "day=1/b.csv", epoch))
    LanceStateStore.open(written.root, ManualClock(START.replace(hour=13))).commit(
        epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds()
    )
    said = "Source flights leaves out columns that its schema does not have: "
    assert store.ledger.why("day=1/a.csv").text.endswith(f"{said}crew (first in day=1/b.csv), gate (first in it).")
    assert store.ledger.why("day=1/b.csv").text.endswith(f"{said}crew (first in it), gate (first in day=1/a.csv).")


@pytest.mark.more
def test_columns_that_files_lack_are_told_with_the_first_of_them(store: Store, written: WrittenRoot) -> None:
    delta, epoch = DeltaBuilder(), written.epochs[-1] + 1
    put_unmatched(delta, UnmatchedColumn("flights", "carrier", "day=1/b.csv", epoch, is_missing=True))
    put_unmatched(delta, UnmatchedColumn("flights", "_c0", "day=1/a.csv", epoch, was=""))
    LanceStateStore.open(written.root, ManualClock(START.replace(hour=13))).commit(
        epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds()
    )
    said = "Files of source flights lack columns, which are null in their rows: carrier"
    renamed = "Files of source flights have columns with names that it cannot have: '' as _c0"
    text = f"{said} (first in day=1/b.csv).\n{renamed} (first in it)."
    assert store.ledger.why("day=1/a.csv").text.endswith(text)
    text = f"{said} (first in it).\n{renamed} (first in day=1/a.csv)."
    assert store.ledger.why("day=1/b.csv").text.endswith(text)
    assert stored_status(store).sources["flights"].filled_columns == ("carrier",)
    (source,) = store.ledger.sources().to_pylist()
    assert (source["left_out"], [each["column"] for each in source["missing"]]) == ([], ["carrier"])
    status = slackwater("status", store.root).out
    assert "columns that files lack, null in their rows" in status and "carrier" in status
    assert [each["in_file"] for each in source["renamed"]] == [""] and "_c0" in status


def test_an_object_from_before_the_sources_time_is_too_old(written: WrittenRoot) -> None:
    state = LanceStateStore.open(written.root, ManualClock(), read_only=True)
    catalog = Catalog.of(state.scan("catalog"))
    limit = datetime(2100, 1, 1, tzinfo=UTC)
    sources = {name: replace(each, not_before=limit) for name, each in catalog.sources.items()}
    history = file_history("day=3/unseen.csv", written.root, state, replace(catalog, sources=sources), None, limit)
    assert history.status == "too_old" and history.text.endswith(
        "leaves out what is older than 2100-01-01 00:00:00 UTC."
    )


def test_the_source_whose_pattern_has_the_name_answers(written: WrittenRoot) -> None:
    state = LanceStateStore.open(written.root, ManualClock())
    catalog = Catalog.of(state.scan("catalog"))
    flights = catalog.sources["flights"]
    other = replace(flights, name="exports", definition=flights.definition.replace("**/*.csv", "exports/**"))
    # The order of the sources does not decide.
    for sources in ({"exports": other, "flights": flights}, {"flights": flights, "exports": other}):
        several = replace(catalog, sources=sources)
        history = file_history(f"{written.raw.url}/day=9/none.csv", written.root, state, several, None, START)
        assert (history.source, history.status) == ("flights", "absent")


def test_a_source_that_is_gone_makes_nothing_up(store: Store, written: WrittenRoot) -> None:
    shutil.rmtree(written.raw.path)
    assert store.ledger.why("day=3/unseen.csv").status == "absent"
    assert store.ledger.why("day=1/a.csv").status == "done"


@pytest.mark.more
def test_objects_in_a_bucket_are_looked_for_with_the_roots_options(written_s3: WrittenRoot) -> None:
    store = open_store(written_s3.root.url, written_s3.root.storage_options)
    assert store.ledger.why("day=3/unseen.csv").status == "not_listed"
    assert store.ledger.why("day=9/none.csv").status == "absent"


@pytest.mark.more
def test_of_an_object_that_cannot_be_reached_nothing_is_claimed(written_s3: WrittenRoot) -> None:
    state = LanceStateStore.open(written_s3.root, ManualClock())
    wrong = {**written_s3.root.storage_options, "secret_access_key": "planted-secret-value"}
    catalog = Catalog.of(state.scan("catalog"))
    history = file_history("day=3/unseen.csv", Location(written_s3.root.url, wrong), state, catalog, None, START)
    assert history.status == "unknown"
    assert "was never listed" in history.text
    assert "access is denied" in history.text
    assert "planted-secret-value" not in history.text


def test_a_name_that_listings_skip_has_its_reason_until_it_is_cleared(written: WrittenRoot) -> None:
    epoch = skipped(written.root, written.raw.url, "day=3/link.csv", "it is a symbolic link")
    store = open_store(written.root.url)
    history = store.ledger.why("day=3/link.csv")
    assert (history.status, history.source) == ("skipped", "flights")
    assert history.text == f"{written.raw.url}/day=3/link.csv is skipped by listings: it is a symbolic link."
    (row,) = store.ledger.quarantine().filter(pc.field("epoch") == epoch).to_pylist()
    assert (row["path"], row["row"]) == (f"{written.raw.url}/day=3/link.csv", None)
    owner = LanceStateStore.open(written.root, ManualClock())
    assert clear_quarantine(owner, "flights", epoch) == 1
    assert open_store(written.root.url).ledger.why("day=3/link.csv").status == "absent"
