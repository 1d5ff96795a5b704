"""Rows in the layout that Lance can read: not every column that Arrow takes can be written as it lies in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def for_lance(rows: pa.Table) -> pa.Table:
    """The rows, with those columns copied that Lance may not be able to write, in one chunk if one is nested.

    Java puts buffers at multiples of 8 bytes, and Lance panics at a decimal that is not at a multiple of 16; Java
    leaves out the offsets of an empty array, and Lance refuses that inside a list.  A slice of a struct with nulls and
    a boolean is refused, too, or panics: `null_bit_buffer size too small`; and a column is sliced where another one
    begins a chunk.
    """
    every_row = pa.array(np.arange(rows.num_rows))
    for index, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type) or pa.types.is_nested(field.type):
            rows = rows.set_column(index, field, rows.column(index).take(every_row))
    return rows.combine_chunks() if any(map(pa.types.is_nested, rows.schema.types)) else rows
