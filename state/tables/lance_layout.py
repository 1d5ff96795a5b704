"""The memory layout of rows that Lance can write: some valid Arrow columns must be copied first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def for_lance(rows: pa.Table) -> pa.Table:
    """The same rows, with decimal and nested columns copied; in one chunk if a column is nested.

    Java aligns buffers to 8 bytes, and Lance panics at a decimal that is not aligned to 16.  Java omits the offsets of
    an empty array, and Lance refuses that inside a list.  Lance also refuses a slice of a struct with nulls and a
    boolean, or panics (`null_bit_buffer size too small`); a column is sliced where another column begins a chunk.
    """
    every_row = pa.array(np.arange(rows.num_rows))
    for index, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type) or pa.types.is_nested(field.type):
            rows = rows.set_column(index, field, rows.column(index).take(every_row))
    return rows.combine_chunks() if any(map(pa.types.is_nested, rows.schema.types)) else rows


def with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows under a schema, whose types may have other names within Arrow.

    Arrow's own cast refuses a null struct with a field that is never null, also to the same type.

    Args:
        rows: as many columns as the schema, in its order.
    """
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)
