"""The history of a backfill: the rows that were ingested before its first epoch."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from actors.files import FileKey
from state.tables.records import ViewVersion
from state.tables.tables import REMOVED_STATUSES
from tests.simulation.memory.file_tables import file_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.world.bucket import Content
from tests.simulation.world.file_rows import Span

_SPAN_ROWS = 3


def taken_spans(recorded: ViewVersion) -> int:
    """The number of spans of its history that a recorded backfill has."""
    return 0 if recorded.progress is None else int(json.loads(recorded.progress)["history"] or 0)


def first_epoch(recorded: ViewVersion) -> int:
    """The last epoch whose rows a view had when it was resumed; 0 if a recorded backfill began without rows."""
    return 0 if recorded.progress is None else int(json.loads(recorded.progress).get("since", 0))


def offsets_of(ledger: Iterable[Row], queue: Iterable[Row], sources: frozenset[str]) -> dict[FileKey, int]:
    """File version → the number of its ingested records, good and bad, at an epoch."""
    return {
        file_of(row): row[offset]
        for rows, offset in ((ledger, "rows_read"), (queue, "row_offset"))
        for row in rows
        if row["source"] in sources and row[offset] and row.get("status") not in REMOVED_STATUSES
    }


def history_of(
    ledger: Iterable[Row],
    queue: Iterable[Row],
    contents: Mapping[FileKey, Content],
    sources: frozenset[str],
    had: Mapping[FileKey, int] = MappingProxyType({}),
) -> list[Span]:
    """The ingested rows of some sources at an epoch, in the order of their files.

    Args:
        ledger: rows of the ledger at the epoch.
        queue: rows of the queue at the epoch.
        contents: file version → its content.
        sources: the names of the sources.
        had: the offsets of an earlier epoch, whose rows are left out.
    """
    offsets = offsets_of(ledger, queue, sources)
    return [
        span
        for file in sorted(offsets)
        for span in _spans(
            file, tuple(row for row in contents[file].good_rows(offsets[file]) if row >= had.get(file, 0))
        )
    ]


def _spans(file: FileKey, rows: tuple[int, ...]) -> list[Span]:
    """Spans of at most `_SPAN_ROWS` rows; a bad record between two rows ends a span."""
    borders = [at for at in range(1, len(rows)) if rows[at] != rows[at - 1] + 1]
    runs = [rows[start:end] for start, end in itertools.pairwise([0, *borders, len(rows)])]
    return [
        Span(file, run[at], run[min(at + _SPAN_ROWS, len(run)) - 1] + 1)
        for run in runs
        for at in range(0, len(run), _SPAN_ROWS)
    ]
