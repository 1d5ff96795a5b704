"""The history of a backfill, in the stored rows of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType

import lance
import pyarrow as pa

from slackwater.backfill.position import HistoryPosition
from spark_bridge.ingest.dataset_frame import columns_there
from spark_bridge.ingest.history import FragmentRows, HistoryPiece, NotResumableError, StoredSpan
from spark_bridge.plans.columns import columns_to_read
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, PATH_COLUMN, source_of_rows

_SAMPLE_ROWS = 1_000
_REST = 1.5


class StoredHistory:
    """The stored rows of some sources at one epoch, fragment by fragment.

    Args:
        root: the directory of the pipeline.
        stored: source → the version of its stored rows; a source without rows is missing.
        schemas: source → its schema.
        columns: source → its used columns.
        progress: the position to continue from; None for the start.
        had: source → the version of its stored rows at an earlier epoch, whose rows are left out.

    Raises:
        NotResumableError: rows of the earlier epoch were corrected or compacted since.
    """

    is_stored = True

    def __init__(
        self,
        root: Location,
        stored: Mapping[str, ViewVersion],
        schemas: Mapping[str, pa.Schema],
        columns: Mapping[str, frozenset[str]],
        progress: str | None,
        had: Mapping[str, ViewVersion] = MappingProxyType({}),
    ) -> None:
        self._row = {
            source: _one_row(root, source, each, schemas[source], columns[source])
            for source, each in sorted(stored.items())
        }
        self._fragments = [
            (source, FragmentRows(each.fragment_id, 0, each.count_rows()))
            for source, row in self._row.items()
            for each in _new_fragments(root, row.dataset, stored[source], had.get(source))
        ]
        self._at = HistoryPosition((each.rows for _, each in self._fragments), progress)
        sizes = [each.rows * self._row[source].nbytes for source, each in self._fragments]
        self._bytes_from = [*accumulate(reversed(sizes), initial=0)][::-1]

    @property
    def fraction(self) -> float:
        """The share of the rows already taken, from 0 to 1."""
        return self._at.fraction

    @property
    def missing(self) -> tuple[str, ...]:
        """Empty: stored rows are never lost."""
        return ()

    def take(self, nbytes: int) -> HistoryPiece | None:
        """See `History.take`.  A small rest comes with the last piece: it would touch all groups once more."""
        if self._bytes_left <= _REST * nbytes:
            nbytes = self._bytes_left
        parts: dict[str, list[FragmentRows]] = {}
        taken = dict.fromkeys(self._row, 0)
        while not self._at.is_at_end and (left := nbytes - sum(taken.values())) > 0:
            source, fragment = self._fragments[self._at.part]
            row_bytes = self._row[source].nbytes
            count = min(-(-left // row_bytes), fragment.rows - self._at.row)
            if count:
                parts.setdefault(source, []).append(FragmentRows(fragment.number, self._at.row, count))
                taken[source] += count * row_bytes
                self._at.go_to(self._at.row + count)
            if self._at.row == fragment.rows:
                self._at.go_to_next_part()
        rows = {source: replace(self._row[source], parts=each, nbytes=taken[source]) for source, each in parts.items()}
        return HistoryPiece(rows, sum(taken.values()), self._at.to_json()) if rows else None

    @property
    def _bytes_left(self) -> int:
        """Size of the rows behind the position, in bytes."""
        if self._at.is_at_end:
            return 0
        source, _ = self._fragments[self._at.part]
        return self._bytes_from[self._at.part] - self._at.row * self._row[source].nbytes

    def close(self) -> None:
        """Nothing is open: Spark's tasks read the rows."""


def _new_fragments(
    root: Location, dataset: lance.LanceDataset, stored: ViewVersion, had: ViewVersion | None
) -> list[lance.LanceFragment]:
    """The fragments of a source that an earlier version does not have."""
    fragments: list[lance.LanceFragment] = dataset.get_fragments()
    if had is None:
        return fragments
    if (had.path, had.progress) != (stored.path, stored.progress):
        raise NotResumableError(f"files of source {source_of_rows(stored.name)} were corrected")
    before = open_dataset(root.child(had.path), had.version).get_fragments()
    if [_rows_of(each) for each in before] != [_rows_of(each) for each in fragments[: len(before)]]:
        raise NotResumableError(f"the stored rows of source {source_of_rows(stored.name)} were compacted")
    return fragments[len(before) :]


def _rows_of(fragment: lance.LanceFragment) -> tuple[int, int]:
    return fragment.fragment_id, fragment.count_rows()


def _one_row(root: Location, source: str, stored: ViewVersion, schema: pa.Schema, used: frozenset[str]) -> StoredSpan:
    """The span of one row of a source, without its place."""
    location = root.child(stored.path)
    dataset = open_dataset(location, stored.version)
    there = columns_there(dataset, columns_to_read(schema.append(FILE_FIELD), [used]))
    read = [PATH_COLUMN if name == FILE_FIELD.name else name for name in there]
    sample = dataset.to_table(columns=read, limit=_SAMPLE_ROWS)
    return StoredSpan(source, location, dataset, there, (), max(1, sample.nbytes // max(1, sample.num_rows)))
