"""Records that lack a value which every row of their source must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from actors.formats.salvage import MOST_RAW_BYTES, row_as_json
from actors.rows import BadRecord, Rows
from actors.schemas.metadata_columns import row_positions


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
    positions = np.asarray(row_positions(rows))
    bad = [
        BadRecord(
            int(positions[at]),
            row_as_json(rows.table, int(at))[:MOST_RAW_BYTES],
            f"column {next(name for name in there if nulls[name][at])} is null, and the key of the source needs it",
        )
        for at in np.flatnonzero(lacking)
    ]
    return replace(
        rows,
        table=rows.table.filter(pa.array(~lacking)),
        bad=tuple(sorted([*rows.bad, *bad], key=lambda each: each.row)),
    )
