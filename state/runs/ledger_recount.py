"""Counts of the ledger after a change: only the rows that change are read."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from state.runs.table_reader import TableReader
from state.tables.ledger_counts import counted, summed
from state.tables.resolve import current_rows, latest_by_key


def recounted(counts: pa.Table, runs: TableReader, changes: Iterable[pa.Table]) -> pa.Table:
    """The counts of the ledger with some changes on top of its runs.

    Args:
        counts: the counts of the runs.
        runs: reads the runs, with the fields `COUNTED`.
        changes: later rows with the same columns, the latest of each key; no key comes twice.
    """
    parts = [counts]
    for rows in changes:
        before = runs.of_keys(rows["key"])
        after = latest_by_key(runs.table, pa.concat_tables([before, rows]))
        parts += [counted(current_rows(before), -1), counted(current_rows(after))]
    return summed(parts)
