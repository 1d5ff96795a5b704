"""The history of a view that resumes: the rows ingested after its own epoch, and none twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from actors.files import FileVersion
from actors.formats.options import Csv
from actors.objects.object_store import ObjectStore
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from slackwater.backfill.backfill_input import record_of, rows_after
from slackwater.backfill.ledger_history import LedgerHistory
from slackwater.backfill.stored_history import StoredHistory
from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from spark_bridge.ingest.history import HistoryPiece, NotResumableError
from state.clock import ManualClock
from state.location import Location
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds, ViewVersion
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, FileVersion]:
    """Three files of four rows: a has 0 to 3, b 4 to 7, c 8 to 11."""
    for number, name in enumerate("abc"):
        (tmp_path / name).write_text("n\n" + "".join(f"{4 * number + row}\n" for row in range(4)))
    listed = next(ObjectStore(Location(str(tmp_path))).list_pages()).objects()
    return {path: FileVersion("s", path, b"", etag, size, modified) for path, etag, size, modified in listed}


def source(files: Mapping[str, FileVersion], rows: Mapping[str, int], root: Path) -> RecordedSource:
    definition = SourceDefinition(name="s", location=Location(str(root)), format=Csv(), schema=SCHEMA)
    return RecordedSource(definition, tuple(IngestedFile(files[name], count) for name, count in rows.items()))


def read(now: RecordedSource, progress: str | None = None) -> list[int]:
    history = LedgerHistory([now], {"s": frozenset({"n"})}, FetchSettings(), progress)
    found = list[int]()
    while (piece := history.take(1)) is not None:
        found += _numbers(piece)
    assert not history.missing
    history.close()
    return found


def _numbers(piece: HistoryPiece) -> list[int]:
    rows = piece.rows["s"]
    assert isinstance(rows, pa.Table)
    numbers: list[int] = rows.column("n").to_pylist()
    return numbers


@pytest.mark.parametrize(
    ("had", "expected"),
    [
        pytest.param({}, range(12), id="all rows"),
        pytest.param({"a": 4, "b": 4}, range(8, 12), id="whole files"),
        pytest.param({"a": 4, "b": 1}, range(5, 12), id="a part of a file"),
        pytest.param({"a": 4, "b": 4, "c": 4}, (), id="no rows"),
    ],
)
def test_the_rows_of_files_since_an_epoch(
    files: dict[str, FileVersion], tmp_path: Path, had: dict[str, int], expected: range
) -> None:
    now = source(files, {"a": 4, "b": 4, "c": 4}, tmp_path)
    assert read(rows_after(now, source(files, had, tmp_path))) == [*expected]


def test_the_rows_since_an_epoch_continue_from_a_position(files: dict[str, FileVersion], tmp_path: Path) -> None:
    after = rows_after(source(files, {"a": 4, "b": 4}, tmp_path), source(files, {"a": 2}, tmp_path))
    history = LedgerHistory([after], {"s": frozenset({"n"})}, FetchSettings(), None)
    first = history.take(1)
    assert first is not None
    history.close()
    assert _numbers(first) + read(after, first.progress) == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("change", ["replaced", "removed", "shorter"])
def test_a_view_does_not_resume_over_a_changed_file(files: dict[str, FileVersion], tmp_path: Path, change: str) -> None:
    had = source(files, {"a": 4, "b": 3}, tmp_path)
    files["a"] = replace(files["a"], version=b"other") if change == "replaced" else files["a"]
    now = {"removed": {"b": 4}, "shorter": {"a": 2, "b": 4}}.get(change, {"a": 4, "b": 4})
    with pytest.raises(NotResumableError, match=r"^a of source s was replaced or removed$"):
        rows_after(source(files, now, tmp_path), had)


def test_the_record_of_an_older_epoch_does_not_replace_the_one_of_the_view() -> None:
    """A tag retains an older epoch, with fewer rows, for longer than the last epoch of the view."""
    store = MemoryRoot(MemoryDisk(), ManualClock()).create_or_open()
    store.take_over("run")
    for epoch in (1 << 50, 3 << 50):
        delta = DeltaBuilder().build()
        store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    assert record_of(store, 0) is None
    known = record_of(store, 1 << 50)
    assert known is not None and known.epoch == 1 << 50
    with pytest.raises(NotResumableError, match="is no longer retained"):
        record_of(store, 2 << 50)


def stored(root: Path, *numbers: int) -> ViewVersion:
    """The version of the stored rows after further ones."""
    uri = str(root / "views" / "s.rows-1.lance")
    rows = pa.table({"__sw_row": numbers, "n": numbers})
    return ViewVersion("s.rows", "views/s.rows-1.lance", lance.write_dataset(rows, uri, mode="append").version)


def rows_since(root: Path, now: ViewVersion, had: ViewVersion) -> int:
    columns = {"s": frozenset({"n"})}
    history = StoredHistory(Location(str(root)), {"s": now}, {"s": SCHEMA}, columns, None, {"s": had})
    piece = history.take(1 << 20)
    assert history.take(1 << 20) is None
    return 0 if piece is None else piece.num_rows


def test_the_stored_rows_since_an_epoch(tmp_path: Path) -> None:
    had = stored(tmp_path, 0, 1, 2)
    now = stored(tmp_path, 3, 4)
    assert rows_since(tmp_path, now, had) == 2
    assert rows_since(tmp_path, now, now) == 0


@pytest.mark.parametrize("change", ["corrected", "compacted", "deleted"])
def test_a_view_does_not_resume_over_changed_stored_rows(tmp_path: Path, change: str) -> None:
    stored(tmp_path, 0, 1)
    had = stored(tmp_path, 2)
    now = stored(tmp_path, 3)
    dataset = lance.dataset(str(tmp_path / now.path))
    if change == "corrected":
        now = replace(now, progress="7")
    elif change == "compacted":
        dataset.optimize.compact_files()
    else:
        dataset.delete("n = 0")
    now = replace(now, version=lance.dataset(str(tmp_path / now.path)).version)
    with pytest.raises(NotResumableError, match="source s were"):
        rows_since(tmp_path, now, had)
