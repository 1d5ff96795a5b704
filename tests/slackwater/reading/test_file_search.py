"""Files that are looked for in a ledger, page by page."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slackwater as sw
from slackwater.reading.tables.file_table import FileStatus
from state.clock import ManualClock
from state.errors import NotFoundError, UsageError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import put_source
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogSource, EpochCounts, EpochSeconds
from tests.slackwater.reading.bad_records import BIG, DONE, quarantine
from tests.slackwater.reading.written_root import RootWriter, WrittenRoot

HOSTILE = (
    "it's.csv",
    "back\\slash.csv",
    "<img src=x onerror=alert(1)>.csv",
    "percent%_.csv",
    "ÄÖ ü\u202e.csv",
    '"q".csv',
)


def names(page: sw.Page) -> list[str]:
    return [path.rpartition("/")[2] for path in page.rows["path"].to_pylist()]


def every_page(store: sw.Store, limit: int, status: FileStatus | None = None) -> pa.Table:
    pages, after = [], None
    while True:
        page = store.ledger.find_files(status=status, after=after, limit=limit)
        pages.append(page.rows)
        assert page.rows.num_rows == limit or page.after is None
        assert page.rows.num_rows or after is None, "no page but the first is empty"
        if page.after is None:
            return pa.concat_tables(pages)
        after = page.after


@pytest.mark.more
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("status", [None, "waiting", "reading", "done", "quarantined", "vanished"])
def test_all_pages_together_are_the_table_of_files(written: WrittenRoot, status: FileStatus | None, limit: int) -> None:
    store = sw.open(written.root.url)
    assert every_page(store, limit, status).equals(store.ledger.files(status=status))


def test_a_file_is_found_by_a_part_of_its_path_and_by_its_url(written: WrittenRoot) -> None:
    store = sw.open(written.root.url)
    assert names(store.ledger.find_files("day=2/B")) == ["bad.csv", "big.csv"]
    assert names(store.ledger.find_files("big", status="reading")) == ["big.csv"]
    assert names(store.ledger.find_files("big", status="done")) == []
    assert names(store.ledger.find_files(f"{written.raw.url}/day=1/a")) == ["a.csv"]
    assert names(store.ledger.find_files(f"{written.raw.path}/day=1/a")) == ["a.csv"]
    assert len(names(store.ledger.find_files(str(written.raw.path)))) == 5
    assert len(names(store.ledger.find_files(written.raw.url + "/"))) == 5
    assert names(store.ledger.find_files("day=9")) == []
    assert store.ledger.find_files("day=2").matches == 2


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    writer = RootWriter(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    put_source(writer.delta, CatalogSource("flights", f'{{"url": "{writer.raw.url}"}}', None))
    for name in HOSTILE:
        writer.finish(name, rows_read=1)
    writer.commit()
    store = sw.open(writer.root.url)
    for name in HOSTILE:
        assert names(store.ledger.find_files(name)) == [name]
    assert names(store.ledger.find_files("äö Ü")) == [HOSTILE[4]]
    assert names(store.ledger.find_files("' OR 1=1 --")) == []


@pytest.mark.more
def test_a_file_is_found_by_what_it_is_now(written: WrittenRoot) -> None:
    writer = LanceStateStore.open(written.root, ManualClock())
    rows = {row["path"]: row for row in writer.rows("ledger")}
    delta = DeltaBuilder()
    delta.patch("ledger", rows["day=2/bad.csv"]["key"], 1, status="done")
    delta.delete("ledger", rows["day=1/a.csv"]["key"], 1)
    writer.commit(
        epoch=written.epochs[-1] + 1,
        delta=delta.build(),
        views=writer.head.views,
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )
    store = sw.open(written.root.url)
    assert names(store.ledger.find_files(status="quarantined")) == []
    assert names(store.ledger.find_files("csv", status="done")) == ["b.csv", "bad.csv"]
    assert every_page(store, 2).equals(store.ledger.files())


def test_what_is_no_status_source_or_place_is_named(written: WrittenRoot) -> None:
    store = sw.open(written.root.url)
    with pytest.raises(UsageError, match="'lost' is not a valid status"):
        store.ledger.find_files(status="lost")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="no source 'trains'; the sources are: flights"):
        store.ledger.find_files(source="trains")
    with pytest.raises(UsageError, match="after='x' is not a valid position"):
        store.ledger.find_files(after="x")
    with pytest.raises(UsageError, match="limit=0: ask for 1"):
        store.ledger.find_files(limit=0)


def test_files_are_counted_by_what_they_are_now(written: WrittenRoot) -> None:
    store = sw.open(written.root.url)
    counts = {row["status"]: row for row in store.ledger.count_files().to_pylist()}
    assert {status: row["files"] for status, row in counts.items()} == {
        "done": 2,
        "quarantined": 1,
        "reading": 1,
        "waiting": 1,
    }
    assert (counts["done"]["rows_read"], counts["done"]["rows_bad"], counts["reading"]["rows_read"]) == (5, 1, 1000)
    files = store.ledger.files()
    assert sum(row["files"] for row in counts.values()) == files.num_rows
    assert sum(row["rows_read"] for row in counts.values()) == pc.sum(files["rows_read"]).as_py()


@pytest.mark.more
def test_bad_records_come_page_by_page_without_those_that_were_cleared(written: WrittenRoot) -> None:
    quarantine(written, DONE, (2, b"x", "no date"))
    quarantine(written, BIG, (7, b"y", "no date"), (8, b"z", "no date"), table="queue")
    store = sw.open(written.root.url)
    first = store.ledger.find_bad_records(limit=2)
    second = store.ledger.find_bad_records("flights", after=first.after, limit=2)
    assert (first.matches, second.after) == (3, None)
    together = pa.concat_tables([first.rows, second.rows])
    assert together.equals(store.ledger.quarantine())
    writer = LanceStateStore.open(written.root, ManualClock())
    delta = DeltaBuilder()
    delta.delete("quarantine", writer.rows("quarantine")[0]["key"], 1)
    writer.amend(delta.build())
    everything = store.ledger.quarantine()
    assert store.ledger.find_bad_records().rows.equals(everything) and everything.num_rows == 2


def test_the_head_of_a_view_has_so_many_rows_and_no_hidden_column(written: WrittenRoot) -> None:
    view = sw.open(written.root.url).snapshot().view("by_carrier")
    assert view.head(2).num_rows == 2 and view.head().num_rows == 3
    assert view.head(0).column_names == ["carrier", "n"]


@pytest.mark.more_after(1)
@pytest.mark.parametrize("status", [None, "done", "waiting"])
def test_batches_have_the_rows_of_the_table(written: WrittenRoot, status: FileStatus | None) -> None:
    store = sw.open(written.root.url)
    table = store.ledger.files(status=status)
    batches = pa.Table.from_batches(store.ledger.file_batches(status=status), table.schema)
    assert table.num_rows and batches == table
    assert pa.Table.from_batches(store.ledger.file_batches(status=status, limit=1), table.schema) == table.slice(0, 1)


@pytest.mark.more
def test_unfinished_files_stand_between_the_slices_of_the_ledger(
    written: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state.runs.table_reader.SLICE_ROWS", 1)
    store = sw.open(written.root.url)
    everything = store.ledger.files()
    assert {"waiting", "done"} < {*everything["status"].to_pylist()}
    assert everything["path"].to_pylist() == sorted(everything["path"].to_pylist())
    assert every_page(store, 1) == everything
    assert store.ledger.find_files(limit=1).matches == everything.num_rows
