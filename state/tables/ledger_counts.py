"""Counts of the ledger: one row per source and status, with sums over files.

`rows_read`, `rows_bad`, `bytes_read` and `requests` are summed.  `files` counts all files, and `files_bad` the files
with a bad record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from state.tables.tables import COUNTS

_BY = ("source", "status")
_SUMS = ("rows_read", "rows_bad", "bytes_read", "requests")
COUNTED = (*_BY, *_SUMS)
"""The fields of the ledger that are counted."""

_FILES = ("files", "files_bad")
_COUNTS = pa.schema(list(COUNTS))


def counted(files: pa.Table, sign: int = 1) -> pa.Table:
    """The counts of some rows of the ledger, or of rows with the same columns.

    Args:
        files: rows with the columns `COUNTED`.
        sign: -1 to take them away from other counts.
    """
    columns = {name: files[name] for name in _BY}
    columns |= {name: pc.multiply(files[name], sign) for name in _SUMS}
    is_bad = pc.fill_null(pc.greater(files["rows_bad"], 0), False).cast(pa.int64())
    columns |= {"files": pa.repeat(pa.scalar(sign), files.num_rows), "files_bad": pc.multiply(is_bad, sign)}
    return summed([pa.table(columns, _COUNTS)])


def of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Counts from rows as dictionaries."""
    return pa.Table.from_pylist(list(rows), _COUNTS)


def summed(counts: Sequence[pa.Table]) -> pa.Table:
    """The sums of counts by source and status, without sums of no file; null counts as 0."""
    every = pa.concat_tables([_COUNTS.empty_table(), *counts])
    sums = (*_SUMS, *_FILES)
    grouped = every.group_by(list(_BY), use_threads=False).aggregate([(name, "sum") for name in sums])
    columns = {name: grouped[name] for name in _BY}
    columns |= {name: pc.fill_null(grouped[f"{name}_sum"], 0) for name in sums}
    table = pa.table(columns, _COUNTS)
    return table.filter(pc.not_equal(table["files"], 0))
