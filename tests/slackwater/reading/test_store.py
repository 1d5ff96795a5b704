from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slackwater as sw
from slackwater.reading.ledger import Ledger
from slackwater.reading.store import Store
from slackwater.reading.views import Views
from state.clock import ManualClock
from state.errors import EpochNotFoundError, NotFoundError, StoreNotFoundError, UsageError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START, WrittenRoot

FILE_COLUMNS = [
    "source",
    "path",
    "etag",
    "size",
    "last_modified",
    "status",
    "rows_read",
    "rows_bad",
    "listed_epoch",
    "first_epoch",
    "done_epoch",
    "changed_epoch",
    "deleted_epoch",
    "removed_epoch",
    "bytes_read",
    "requests",
    "attempts",
    "error",
]


def opened(written: WrittenRoot) -> Store:
    return sw.open(written.root.url, storage_options=written.root.storage_options)


def statuses(ledger: Any) -> dict[str, str]:
    rows = ledger.files("flights").select(["path", "status"]).to_pylist()
    return {row["path"].rpartition("/")[2]: row["status"] for row in rows}


def test_epochs_come_as_a_page_of_the_last_ones_before_one(written: WrittenRoot) -> None:
    store = opened(written)
    everything = store.epochs()
    assert store.epochs(limit=2) == everything.slice(2)
    assert store.epochs(before=written.epochs[2], limit=1) == everything.slice(1, 1)
    assert store.epochs(before=written.epochs[0]).num_rows == 0
    assert store.epoch_times() == everything.select(["epoch", "committed_at"])
    with pytest.raises(UsageError, match="limit=0: ask for 1 epoch or more"):
        store.epochs(limit=0)


@pytest.mark.more
def test_files_are_read_by_a_condition_and_up_to_a_number(written: WrittenRoot) -> None:
    store = opened(written)
    everything = store.ledger.files()
    for reader in (store.ledger, store.snapshot()):
        assert reader.files(limit=2) == everything.slice(0, 2)
        assert reader.files(limit=99) == everything
        assert reader.files(where=pc.field("rows_bad") > 0) == everything.filter(pc.field("rows_bad") > 0)
        url = everything["path"][2].as_py()
        assert reader.files("flights", where=pc.field("path") == url, limit=1)["path"].to_pylist() == [url]
        with pytest.raises(UsageError, match=r"is not a condition on files.*pc\.field.*the columns are: source, path"):
            reader.files(where=pc.field("row") > 0)
        with pytest.raises(UsageError, match="is not a condition on files"):
            reader.files(where=pc.field("rows_bad"))
        with pytest.raises(UsageError, match="limit=0: ask for 1 row or more"):
            reader.files(limit=0)
    with pytest.raises(NotFoundError, match="there is no source 'nope'"):
        store.ledger.file_batches("nope")


def test_epochs_are_told_with_their_counts_and_views(written: WrittenRoot) -> None:
    epochs = opened(written).epochs()
    assert epochs["epoch"].to_pylist() == written.epochs
    assert epochs["rows"].to_pylist() == [0, 0, 5, 1000]
    assert epochs["files"].to_pylist() == [0, 0, 2, 1]
    assert epochs["term"].to_pylist() == [1, 1, 1, 1]
    assert epochs["spark_s"].to_pylist() == [1.0] * 4
    assert epochs["committed_at"][3].as_py() == START + timedelta(seconds=3)
    assert [[view["version"] for view in views] for views in epochs["views"].to_pylist()] == [
        [1, 1],
        [1, 1],
        [2, 2],
        [3, 3],
    ]


def test_files_are_the_ledger_and_the_queues(written: WrittenRoot) -> None:
    files = opened(written).ledger.files()
    assert files.column_names == FILE_COLUMNS
    rows = {row["path"]: row for row in files.to_pylist()}
    assert list(rows) == [
        f"{written.raw.url}/{path}"
        for path in ("day=1/a.csv", "day=1/b.csv", "day=2/bad.csv", "day=2/big.csv", "day=3/new.csv")
    ]
    assert [row["status"] for row in rows.values()] == ["done", "done", "quarantined", "reading", "waiting"]
    assert [row["rows_read"] for row in rows.values()] == [2, 3, 0, 1000, 0]
    assert [row["done_epoch"] for row in rows.values()] == [written.epochs[2]] * 2 + [written.epochs[3], None, None]
    assert rows[f"{written.raw.url}/day=2/bad.csv"]["error"] == "row 3: 'x' is no bigint"
    assert {row["source"] for row in rows.values()} == {"flights"}


def test_files_can_be_asked_for_by_source_and_status(written: WrittenRoot) -> None:
    store = opened(written)
    assert store.ledger.files("flights", status="reading")["path"].to_pylist() == [f"{written.raw.url}/day=2/big.csv"]
    assert store.ledger.files(status="vanished").num_rows == 0
    with pytest.raises(NotFoundError, match="no source 'flight'; the sources are: flights"):
        store.ledger.files("flight")
    with pytest.raises(UsageError, match="give one of waiting, reading, done"):
        store.ledger.files(status="finished")  # type: ignore[arg-type]


def test_a_status_that_no_file_has_costs_no_search_of_the_ledger(
    written: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    slices = LanceStateStore.slices

    def counted(store: LanceStateStore, table: str, **options: Any) -> Iterator[pa.Table]:
        searched.append(table)
        return slices(store, table, **options)

    monkeypatch.setattr(LanceStateStore, "slices", counted)
    store = opened(written)
    assert store.ledger.files(status="vanished").num_rows == 0
    assert searched == []
    assert store.ledger.files(status="quarantined").num_rows == 1
    assert searched == ["ledger"]


def test_late_rows_of_the_sides_of_a_view_are_those_of_the_view(written: WrittenRoot) -> None:
    store = LanceStateStore.open(written.root, ManualClock())
    late = store.head.views["late"]
    sides = {f"late.{at}": replace(late, name=f"late.{at}", progress=f'{{"late": {at}}}') for at in (1, 2)}
    more = {**store.head.views, **sides}
    store.commit(epoch=written.epochs[-1] + 1, delta=Delta(), views=more, counts=EpochCounts(), seconds=EpochSeconds())
    views = {row["name"]: row["late_rows"] for row in opened(written).views.table().to_pylist()}
    assert views["late"] == 3 and views["by_carrier"] is None


@pytest.mark.parametrize("source", ["late", "closed"])
def test_the_sources_of_a_view_that_is_recomputed_are_no_notes_of_it(written: WrittenRoot, source: str) -> None:
    store = LanceStateStore.open(written.root, ManualClock())
    full = replace(store.head.views["late"], reflects_epoch=written.epochs[-1], progress=f'{{"{source}": ["rows", 7]}}')
    more = {**store.head.views, "late": full}
    store.commit(epoch=written.epochs[-1] + 1, delta=Delta(), views=more, counts=EpochCounts(), seconds=EpochSeconds())
    [row] = [each for each in opened(written).views.table().to_pylist() if each["name"] == "late"]
    assert (row["late_rows"], row["closed_until"]) == (None, None)


def test_a_version_that_is_queued_again_is_one_row(written: WrittenRoot) -> None:
    store = LanceStateStore.open(written.root, ManualClock())
    key, vnode = store.scan("ledger").filter(pc.is_valid(pc.field("error")))["key"][0].as_py(), 1
    delta = DeltaBuilder()
    delta.put("queue", key, vnode, source="flights", path="day=2/bad.csv", row_offset=0, attempts=1)
    store.commit(
        epoch=written.epochs[-1] + 1, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds()
    )
    files = opened(written).ledger.files().filter(pc.ends_with(pc.field("path"), "bad.csv"))
    assert files["status"].to_pylist() == ["waiting"]


def test_views_and_sources_are_told_with_their_places(written: WrittenRoot) -> None:
    store = opened(written)
    views = {row["name"]: row for row in store.views.table().to_pylist()}
    path = f"{written.root}/views/by_carrier-{written.epochs[0]}.lance"
    assert views["by_carrier"] == {
        "name": "by_carrier",
        "class": "aggregate",
        "definition": "SELECT ... AS by_carrier",
        "sources": ["flights"],
        "reads": ["flights"],
        "key": ["carrier"],
        "rows": 3,
        "path": path,
        "version": 3,
        "reflects_epoch": written.epochs[-1],
        "closed_until": None,
        "late_rows": None,
        "stopped": False,
        "error": None,
        "missing": [],
    }
    assert (views["late"]["class"], views["late"]["rows"], views["late"]["key"]) == ("append", 3, [])
    assert store.ledger.sources().to_pylist() == [
        {
            "name": "flights",
            "url": written.raw.url,
            "format": "csv",
            "pattern": "**/*.csv",
            "schema": "carrier string, day date32[day]",
            "left_out": [],
            "missing": [],
            "renamed": [],
            "changes_ignored": 0,
            "listed_at": START,
            "requests_last_hour": None,
            "period_s": None,
            "stretched_by": None,
            "paused_removals": 0,
            "paused": None,
            "watermark": None,
            "queue": None,
        }
    ]


def test_an_open_store_sees_later_epochs_and_a_snapshot_does_not(written: WrittenRoot) -> None:
    store = opened(written)
    snapshot = store.snapshot()
    writer_store = LanceStateStore.open(written.root, ManualClock())
    delta = DeltaBuilder()
    delta.patch("queue", writer_store.scan("queue")["key"][0].as_py(), 1, row_offset=7, path="changed.csv")
    epoch = written.epochs[-1] + 1
    writer_store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    assert store.epochs()["epoch"].to_pylist() == [*written.epochs, epoch]
    assert "changed.csv" in statuses(store.ledger)
    assert "changed.csv" not in statuses(snapshot)
    assert snapshot.views == ("by_carrier", "late")


def test_a_store_is_a_few_methods_and_its_parts() -> None:
    for part in (Store, Ledger, Views):
        assert sum(callable(value) or isinstance(value, property) for value in vars(part).values()) <= 25, part


def test_a_frozen_store_stays_at_its_epoch(written: WrittenRoot) -> None:
    store = opened(written)
    frozen = store.frozen()
    ledger, views = store.ledger.files(), store.views.table()
    state = LanceStateStore.open(written.root, ManualClock())
    state.take_over()
    delta, epoch = DeltaBuilder(), written.epochs[-1] + 1
    delta.patch("queue", state.scan("queue")["key"][0].as_py(), 1, row_offset=7, path="changed.csv")
    state.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    assert store.latest_epoch() == store.frozen().latest_epoch() == written.epochs[-1] + 1
    assert frozen.latest_epoch() == frozen.snapshot().epoch == written.epochs[-1]
    assert frozen.epochs().num_rows + 1 == store.epochs().num_rows
    assert frozen.ledger.files() == ledger != store.ledger.files()
    assert frozen.views.table() == views != store.views.table()
    with pytest.raises(UsageError, match="a frozen store sees no later epoch"):
        frozen.watch("by_carrier")


def test_a_snapshot_shows_files_and_views_of_the_same_moment(written: WrittenRoot) -> None:
    store = opened(written)
    seen = []
    for epoch in written.epochs:
        snapshot = store.snapshot(epoch=epoch)
        assert snapshot.epoch == epoch
        by_status: dict[str, int] = {}
        for row in snapshot.files().to_pylist():
            by_status[row["status"]] = by_status.get(row["status"], 0) + row["rows_read"]
        view = snapshot.view("by_carrier").to_arrow()
        seen.append((by_status, sum(view["n"].to_pylist()), snapshot.view("late").count_rows()))
    assert seen == [
        ({}, 0, 0),
        ({"waiting": 0}, 0, 0),
        ({"waiting": 0, "done": 5}, 5, 2),
        ({"waiting": 0, "done": 5, "reading": 1000, "quarantined": 0}, 1005, 3),
    ]


def test_an_epoch_can_be_named_in_every_way(written: WrittenRoot) -> None:
    store = opened(written)
    first, second, _, last = written.epochs
    assert store.snapshot().epoch == store.snapshot("latest").epoch == last
    assert store.snapshot(second).epoch == store.snapshot(str(second)).epoch == second
    assert store.snapshot("2026-01-31T12:00:01.500Z").epoch == second
    assert store.snapshot("2026-01-31T13:00:01+01:00").epoch == second
    assert store.snapshot("2026-01-31T12:00:00").epoch == first
    assert store.snapshot(as_of=START + timedelta(seconds=1)).epoch == second
    assert store.snapshot(as_of=(START + timedelta(days=1)).replace(tzinfo=None)).epoch == last
    assert store.snapshot(first).committed_at == START


def test_an_epoch_that_is_not_there_is_told_with_those_that_are(written: WrittenRoot) -> None:
    store = opened(written)
    first, last = written.epochs[0], written.epochs[-1]
    with pytest.raises(EpochNotFoundError, match=f"epoch 17 .* 4 epochs from {first} .* to {last}"):
        store.snapshot(17)
    with pytest.raises(EpochNotFoundError, match="committed up to 2026-01-31T11:59"):
        store.snapshot("2026-01-31T11:59:00Z")
    with pytest.raises(UsageError, match="is not a valid epoch"):
        store.snapshot("yesterday")
    with pytest.raises(NotFoundError, match="no tag 'audit'; the tags are: none"):
        store.snapshot(tag="audit")
    with pytest.raises(UsageError, match="give one of them"):
        store.snapshot(epoch=first, as_of=START)


def test_roots_without_epochs_say_so(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="run a pipeline with this root"):
        sw.open(tmp_path)
    LanceStateStore.create(Location(str(tmp_path)), ManualClock())
    store = sw.open(tmp_path)
    assert (store.epochs().num_rows, store.ledger.files().num_rows, store.views.table().num_rows) == (0, 0, 0)
    with pytest.raises(EpochNotFoundError, match="no epoch has been committed"):
        store.snapshot()


def test_the_owner_is_told(written: WrittenRoot) -> None:
    store = opened(written)
    assert store.owner() is None
    ownership = Ownership(written.root, ManualClock(), run_id="r", pipeline="flights")
    ownership.acquire()
    owner = store.owner()
    assert owner is not None and (owner.run_id, owner.pipeline) == ("r", "flights")
    ownership.release()


@pytest.mark.more
def test_a_root_in_a_bucket_reads_the_same(written_s3: WrittenRoot) -> None:
    store = opened(written_s3)
    assert store.epochs()["epoch"].to_pylist() == written_s3.epochs
    assert store.ledger.files(status="done").num_rows == 2
    snapshot = store.snapshot(written_s3.epochs[2])
    assert snapshot.view("by_carrier").get(carrier="AA") == {"carrier": "AA", "n": 3}
    assert snapshot.files(status="waiting").num_rows == 3


def test_neither_a_store_nor_its_views_show_a_secret(written_s3: WrittenRoot) -> None:
    store = opened(written_s3)
    snapshot = store.snapshot()
    secrets = [written_s3.root.storage_options[name] for name in ("access_key_id", "secret_access_key")]
    for shown in (
        repr(store),
        repr(snapshot),
        repr(snapshot.view("late")),
        str(store.views.table()),
        str(store.ledger.sources()),
    ):
        assert not any(secret in shown for secret in secrets)


def test_reading_loads_neither_ray_nor_spark(written: WrittenRoot) -> None:
    program = (
        "import sys, slackwater as sw; store = sw.open(sys.argv[1]); store.ledger.files();"
        "store.ledger.why('day=1/a.csv');"
        "print(sum(store.snapshot().view('by_carrier').to_arrow()['n'].to_pylist()));"
        "print([name for name in ('ray', 'raydp', 'pyspark', 'py4j') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(written.root)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split("\n")[:2] == ["1005", "[]"], done.stderr
