"""Records that lack a value which every row of their source must have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from actors.formats.salvage import set_aside
from actors.rows import Rows


def with_values(rows: Rows, columns: Sequence[str]) -> Rows:
    """The rows, of which those with a null in one of these columns are bad records.

    Args:
        rows: with all columns of the source that are wanted; a column that is not among them is not looked at.
        columns: the columns.
    """
    there = [name for name in columns if name in rows.table.column_names]
    if not any(rows.table.column(name).null_count for name in there):
        return rows
    nulls = {name: np.asarray(pc.is_null(rows.table.column(name))) for name in there}
    lacking = np.logical_or.reduce(list(nulls.values()))

    def reason(at: int) -> str:
        lacks = next(name for name in there if nulls[name][at])
        return f"column {lacks} is null, and the key of the source needs it"

    return set_aside(rows, rows.table, lacking, reason)
