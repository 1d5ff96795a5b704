"""Look-ups of single rows: of a file among millions they read a few blocks, and nothing of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.runs.sources import BLOCK_ROWS
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import row_column
from state.upkeep.fold import FoldSizes

ROWS = 600


def commit(store: LanceStateStore, epoch: int, *numbers: int) -> None:
    builder = DeltaBuilder()
    for number in numbers:
        builder.put("ledger", key(number), 1, source="s", path=f"{number}", status="done", rows_read=epoch)
    store.commit(epoch=epoch, delta=builder.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def key(number: int) -> bytes:
    return f"{number:06}".encode()


def found(store: LanceStateStore, *numbers: int) -> dict[bytes, int]:
    rows = store.scan("ledger", keys=[key(number) for number in numbers], fields=["rows_read"])
    return dict(zip(rows["key"].to_pylist(), rows["rows_read"].to_pylist(), strict=True))


def counted_takes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each `take` from now on."""
    takes: list[int] = []
    take = lance.LanceDataset.take

    def counted(self: lance.LanceDataset, places: list[int], **options: Any) -> pa.Table:
        takes.append(len(places))
        return take(self, places, **options)

    monkeypatch.setattr(lance.LanceDataset, "take", counted)
    return takes


@pytest.fixture
def store(tmp_path: Path) -> LanceStateStore:
    """Rows with even numbers in one run, with an index, and a few later ones in the log."""
    made = LanceStateStore.create(Location(str(tmp_path)), ManualClock())
    made.take_over()
    commit(made, 1, *range(0, 2 * ROWS, 2))
    for epoch in range(2, 18):
        commit(made, epoch)
    fold = made.stage_fold()
    assert fold is not None
    made.commit_fold(fold)
    commit(made, 20, 4, 5)
    commit(made, 21, 4)
    return made


@pytest.mark.parametrize("most_rows", [0, 1 << 16])
def test_rows_of_the_log_come_before_those_of_runs(
    store: LanceStateStore, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr("state.runs.table_reader.MOST_ROWS", most_rows)
    for _ in range(2):
        assert found(store, 2, 3, 4, 5) == {key(2): 1, key(4): 21, key(5): 20}
    commit(store, 22, 3)
    assert found(store, 2, 3, 4, 5) == {key(2): 1, key(3): 22, key(4): 21, key(5): 20}
    assert found(store, 7) == {}


def test_a_look_up_does_not_read_a_log_that_it_knows(store: LanceStateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(store, 2) == {key(2): 1}
    scans: list[Any] = []
    monkeypatch.setattr(lance.LanceDataset, "scanner", lambda *_, **options: scans.append(options))
    assert found(store, 4, 6) == {key(4): 21, key(6): 1}
    assert scans == []


def test_a_look_up_reads_one_block_of_keys_and_its_row(store: LanceStateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    takes = counted_takes(monkeypatch)
    assert found(store, 300) == {key(300): 1}
    assert takes == [BLOCK_ROWS, 1]


def test_no_row_of_a_run_is_null_also_none_of_its_index(store: LanceStateStore) -> None:
    fragments = [each for each in store._dataset.get_fragments() if each.count_rows() > ROWS]
    [rows] = [each.to_table(columns=["table", row_column("ledger")]) for each in fragments]
    assert set(rows["table"].to_pylist()) == {"ledger", "index"}
    assert rows[row_column("ledger")].null_count == 0


def test_many_pieces_are_read_in_two_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanceStateStore, "fold_sizes", FoldSizes(log_fragments=1, piece_rows=20))
    store = LanceStateStore.create(Location(str(tmp_path)), ManualClock())
    store.take_over()
    commit(store, 1, *range(ROWS))
    commit(store, 2)
    while (fold := store.stage_fold()) is not None:
        store.commit_fold(fold)
    numbers = range(0, ROWS + 50, 3)
    expected = {key(number): 1 for number in numbers if number < ROWS}
    takes = counted_takes(monkeypatch)
    assert found(store, *numbers) == expected
    assert len(takes) == 4
