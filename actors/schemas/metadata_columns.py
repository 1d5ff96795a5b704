"""Metadata columns: the file of a row, its position in it, and the epoch that ingested it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from actors.files import FileVersion
from actors.rows import Rows

PATH, ROW, EPOCH = "_path", "_row", "_epoch"
_TYPES: Mapping[str, pa.DataType] = {
    PATH: pa.string(),
    "_size": pa.int64(),
    "_last_modified": pa.timestamp("us", "UTC"),
    "_etag": pa.string(),
    ROW: pa.int64(),
    EPOCH: pa.int64(),
}


def metadata_fields(names: Iterable[str]) -> list[pa.Field]:
    """The columns of the given names of `METADATA`."""
    return [pa.field(f"_{name}", _TYPES[f"_{name}"]) for name in names]


def file_scalars(file: FileVersion, url: str) -> Mapping[str, pa.Scalar]:
    """Column → its value, for the columns that are equal in all rows of a file.

    Args:
        url: the URL of its source.
    """
    values = (f"{url}/{file.path}", file.size, file.last_modified, file.etag)
    return {
        name: pa.scalar(value, _TYPES[name])
        for name, value in zip((PATH, "_size", "_last_modified", "_etag"), values, strict=True)
    }


def row_positions(rows: Rows) -> pa.Array:
    """The position in the file of each good row."""
    positions = np.arange(rows.first_row, rows.end_row, dtype=np.int64)
    bad = [each.row - rows.first_row for each in rows.bad]
    return pa.array(np.delete(positions, bad) if bad else positions)


def with_epoch(table: pa.Table, epoch: int) -> pa.Table:
    """The rows with the epoch that ingests them, if they have the column `_epoch`."""
    at = table.schema.get_field_index(EPOCH)
    if at < 0:
        return table
    return table.set_column(at, table.schema.field(at), pa.repeat(pa.scalar(epoch, pa.int64()), table.num_rows))
