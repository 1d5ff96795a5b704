"""The history of a backfill has every ingested row once, wherever the reading was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from slackwater.backfill.stored_history import StoredHistory
from spark_bridge.ingest.dataset_frame import rows_of_span
from spark_bridge.ingest.history import History, HistoryPiece, StoredSpan
from state.location import Location
from state.tables.records import ViewVersion

Opened = Callable[..., StoredHistory]
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])


def stored(root: Path) -> dict[str, ViewVersion]:
    """Stored rows in fragments of five; some rows are deleted, and the first rows lack `n`."""
    uri = str(root / "views" / "s.rows-1.lance")
    early = pa.table({"__sw_row": range(12), "k": [f"a{each}" for each in range(12)]})
    lance.write_dataset(early, uri, max_rows_per_file=5)
    dataset = lance.dataset(uri)
    dataset.add_columns(pa.schema([("n", pa.int64())]))
    later = pa.table({"__sw_row": range(12), "k": [f"b{each}" for each in range(12)], "n": range(12)})
    lance.write_dataset(later, uri, mode="append", max_rows_per_file=5)
    dataset = lance.dataset(uri)
    dataset.delete("k IN ('a3', 'b7')")
    version = dataset.version
    lance.write_dataset(later, uri, mode="append")
    return {"s": ViewVersion("s.rows", "views/s.rows-1.lance", version)}


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    versions = stored(tmp_path)

    def history(progress: str | None = None, columns: frozenset[str] = frozenset({"k", "n"})) -> StoredHistory:
        return StoredHistory(Location(str(tmp_path)), versions, {"s": SCHEMA}, {"s": columns}, progress)

    return history


def read(piece: HistoryPiece) -> list[dict[str, object]]:
    """The rows of a piece, as they are read without Spark."""
    span = piece.rows["s"]
    assert isinstance(span, StoredSpan)
    few = rows_of_span(None, span, 1).few
    assert few is not None
    found: list[dict[str, object]] = few.to_pylist()
    return found


def rows(made: History, nbytes: int) -> list[dict[str, object]]:
    found = []
    while (piece := made.take(nbytes)) is not None:
        found += read(piece)
    return found


def expected() -> list[dict[str, object]]:
    early: list[dict[str, object]] = [{"k": f"a{each}", "n": None} for each in range(12) if each != 3]
    return early + [{"k": f"b{each}", "n": each} for each in range(12) if each != 7]


@pytest.mark.parametrize("nbytes", [1, 60, 1 << 20])
def test_stored_rows_of_the_epoch_are_taken_once(opened: Opened, nbytes: int) -> None:
    made = opened()
    assert made.fraction == 0
    assert rows(made, nbytes) == expected()
    assert made.fraction == 1


def test_reading_stored_rows_continues_wherever_it_was_interrupted(opened: Opened) -> None:
    found, progress, pieces = [], None, 0
    while True:
        made = opened(progress)
        piece = made.take(1)
        if piece is None:
            break
        found += read(piece)
        progress, pieces = piece.progress, pieces + 1
    assert found == expected()
    assert pieces > 3


def test_a_position_at_the_end_of_a_fragment_continues_with_the_next_one(opened: Opened) -> None:
    # The first fragment has five rows, of which one is deleted; the epochs of older versions record this form too.
    assert rows(opened("[0, 4]"), 1 << 20) == rows(opened("[1, 0]"), 1 << 20) == expected()[4:]


def test_a_small_rest_comes_with_the_last_piece(opened: Opened) -> None:
    every = opened().take(1 << 20)
    assert every is not None
    made = opened()
    first = made.take(every.nbytes // 2)
    assert first is not None and 0 < made.fraction < 1
    last = made.take(every.nbytes * 2 // 5)
    assert last is not None and made.fraction == 1
    assert read(first) + read(last) == expected()


def test_a_view_that_only_counts_gets_rows_too(opened: Opened) -> None:
    assert len(rows(opened(columns=frozenset()), 1 << 20)) == len(expected())


def test_a_source_without_ingested_rows_has_no_history(tmp_path: Path) -> None:
    made = StoredHistory(Location(str(tmp_path)), {}, {"s": SCHEMA}, {"s": frozenset({"k"})}, None)
    assert made.take(1) is None
    assert made.fraction == 1
