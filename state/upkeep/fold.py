"""Folds of `state.lance`: superseded rows are dropped, and small fragments become one.

A fold replaces a run of fragments whose epochs are neighbours, never the fragment of the head.  It drops a row that a
later row of the run supersedes.  It drops a delete, and a patch without its row, only if the run begins with the oldest
epoch: otherwise they may still apply to an older row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import write_fragments

from state.store.store import StagedFold
from state.tables.lance_layout import for_lance
from state.tables.resolve import latest_by_key
from state.tables.tables import PUT, TABLES, row_column
from state.upkeep.fold_plan import next_run

_FLOOR_ROWS = 4_096
_FULL_ROWS = 100_000
_BATCH_ROWS = 16_384
_COMMON = ("vnode", "epoch", "op", "key")


@dataclass(frozen=True)
class _Piece:
    """Fragments whose epochs overlap: all of them are folded together, or none."""

    fragments: tuple[lance.LanceFragment, ...]
    rows: int
    first_epoch: int
    last_epoch: int


class StateFolder:
    """Stages folds of one `state.lance`, and remembers the epochs of the fragments that it has read."""

    def __init__(self) -> None:
        self._epochs: dict[str, tuple[int, int]] = {}

    def stage(self, dataset: lance.LanceDataset, *, head_fragment_id: int, epoch: int, term: int) -> StagedFold | None:
        """Reads, folds and writes the next run; None if no fold is due.

        Args:
            dataset: the version to fold; commits may run at the same time.
            head_fragment_id: the id of the fragment of the head.
            epoch: the last committed epoch.  Only fragments before it are folded: an amendment may still add rows to
                this epoch.
            term: the term of the head.

        Raises:
            OSError, RuntimeError: an error of Lance.
        """
        fragments = [each for each in dataset.get_fragments() if each.fragment_id != head_fragment_id]
        pieces = [piece for piece in self._pieces(fragments) if piece.last_epoch < epoch]
        run = next_run([piece.rows for piece in pieces], floor=_FLOOR_ROWS, full=_FULL_ROWS)
        if run is None:
            return None
        chosen = [fragment for at in run for fragment in pieces[at].fragments]
        tables = _folded(dataset, chosen, is_oldest=run.start == 0)
        rows_after = sum(rows.num_rows for rows in tables.values())
        new = write_fragments(_reader(tables), dataset, mode="append") if rows_after else []
        removed = tuple(sorted(fragment.fragment_id for fragment in chosen))
        return StagedFold(term, removed, tuple(new), sum(pieces[at].rows for at in run), rows_after)

    def _pieces(self, fragments: Sequence[lance.LanceFragment]) -> list[_Piece]:
        epochs = {}
        for fragment in fragments:
            path = fragment.metadata.files[0].path
            epochs[path] = self._epochs.get(path) or _epochs_of(fragment)
        self._epochs = epochs
        pieces: list[_Piece] = []
        for fragment in sorted(fragments, key=lambda each: (epochs[each.metadata.files[0].path], each.fragment_id)):
            first, last = epochs[fragment.metadata.files[0].path]
            piece = _Piece((fragment,), int(fragment.count_rows()), first, last)
            if pieces and first <= pieces[-1].last_epoch:
                before = pieces.pop()
                together = (*before.fragments, fragment)
                piece = _Piece(together, before.rows + piece.rows, before.first_epoch, max(last, before.last_epoch))
            pieces.append(piece)
        return pieces


def _epochs_of(fragment: lance.LanceFragment) -> tuple[int, int]:
    ends = pc.min_max(fragment.to_table(columns=["epoch"])["epoch"]).as_py()
    return ends["min"], ends["max"]


def _folded(
    dataset: lance.LanceDataset, fragments: Sequence[lance.LanceFragment], *, is_oldest: bool
) -> dict[str, pa.Table]:
    """The remaining rows by table: columns vnode, epoch, op, key and row."""
    # In the order of their ids: of two rows with one key and one epoch the later must stay the later.
    ordered = sorted(fragments, key=lambda fragment: int(fragment.fragment_id))
    tables = {}
    for table in TABLES:
        # Table by table: read together, every row would have the empty columns of all tables.
        columns = [*_COMMON, row_column(table)]
        scanner = dataset.scanner(columns=columns, filter=f"`table` = '{table}'", fragments=ordered)
        rows = latest_by_key(table, scanner.to_table().rename_columns([*_COMMON, "row"]))
        if is_oldest:
            rows = rows.filter(pc.equal(rows["op"], pa.scalar(PUT, pa.uint8())))
        if rows.num_rows:
            tables[table] = rows
    return tables


def _reader(tables: dict[str, pa.Table]) -> pa.RecordBatchReader:
    types = {table: rows["row"].type for table, rows in tables.items()}
    common = next(iter(tables.values())).select(list(_COMMON)).schema
    schema = pa.schema([("table", pa.string()), *common, *((row_column(table), each) for table, each in types.items())])

    def batches() -> Iterator[pa.RecordBatch]:
        for table, rows in tables.items():
            for start in range(0, rows.num_rows, _BATCH_ROWS):
                [batch] = for_lance(rows.slice(start, _BATCH_ROWS)).to_batches()
                columns = [pa.repeat(pa.scalar(table), batch.num_rows), *(batch[name] for name in _COMMON)]
                columns += [batch["row"] if each == table else pa.nulls(batch.num_rows, types[each]) for each in types]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
