"""Keys of the log: most look-ups end here, without a read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa
import pyarrow.compute as pc

from state.runs.fragments import data_file
from state.runs.recent_rows import RecentRows
from state.tables.row_selection import KeyRange

MOST_ROWS = 1 << 16
"""A log with more rows is searched by Lance: a fold is due, and its keys may not fit into the memory."""


@dataclass(frozen=True)
class _Keys:
    """The keys of one table in one fragment, ascending, and the positions of their rows."""

    keys: Sequence[bytes]
    rows: Sequence[int]


class LogKeys:
    """The keys of fragments of the log, read once for each fragment, which never changes.

    Args:
        recent: rows that are in memory.
    """

    def __init__(self, recent: RecentRows) -> None:
        self._recent = recent
        self._known: dict[str, dict[str, _Keys]] = {}

    def found(
        self, dataset: lance.LanceDataset, log: Sequence[lance.LanceFragment], table: str, ranges: Sequence[KeyRange]
    ) -> list[tuple[str, list[int]]]:
        """For each fragment with such rows: its data file, and the positions of the rows, in the order of the log.

        Args:
            log: the fragments of its log, with `MOST_ROWS` rows at most in all.
            ranges: ranges of keys; sorted, without overlaps.

        Raises:
            OSError, ValueError: an error of Lance.
        """
        paths = [data_file(fragment) for fragment in log]
        known = {path: keys for path in paths if (keys := self._known.get(path)) is not None}
        known |= self._read(dataset, {path: each for path, each in zip(paths, log, strict=True) if path not in known})
        self._known = known  # keys of another version are read again
        starts = [start for start, _ in ranges]
        found = []
        for path in paths:
            own = known[path].get(table)
            if own is not None and (rows := sorted(_within(own, starts, ranges))):
                found.append((path, rows))
        return found

    def _read(
        self, dataset: lance.LanceDataset, fragments: Mapping[str, lance.LanceFragment]
    ) -> dict[str, dict[str, _Keys]]:
        if not fragments:
            return {}
        rows = self._recent.read(dataset, list(fragments.values()), ["table", "key"])
        found = {}
        at = 0
        for path, fragment in fragments.items():
            count = fragment.count_rows()
            found[path] = _by_table(rows.slice(at, count))
            at += count
        return found


def _by_table(rows: pa.Table) -> dict[str, _Keys]:
    found = {}
    for table in rows["table"].unique().to_pylist():
        at = pc.indices_nonzero(pc.equal(rows["table"], table))
        keys = rows["key"].take(at)
        order = pc.sort_indices(keys)
        found[table] = _Keys(keys.take(order).to_pylist(), at.take(order).to_pylist())
    return found


def _within(own: _Keys, starts: Sequence[bytes], ranges: Sequence[KeyRange]) -> Iterator[int]:
    for at in range(bisect_left(own.keys, ranges[0][0]), bisect_left(own.keys, ranges[-1][1])):
        key = own.keys[at]
        if key < ranges[bisect_right(starts, key) - 1][1]:
            yield own.rows[at]
