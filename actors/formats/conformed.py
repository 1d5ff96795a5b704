"""Decoded tables as rows of their source: the rows that fit, and the bad records among them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.salvage import row_as_json, salvaged
from actors.rows import Rows
from actors.schemas.column_names import NameRule
from actors.schemas.conform import Timestamps, conform
from actors.settings import ReadLimits


def conformed(
    table: pa.Table,
    schema: pa.Schema,
    first_row: int,
    timestamps: Timestamps,
    bad_before: int,
    limits: ReadLimits,
    names: NameRule,
    require_time: Callable[[], None],
) -> Rows:
    """The records of a table in the schema of the source.

    Args:
        table: records of a file as they were decoded.
        schema: the wanted columns of the source.
        first_row: the position of the first record in the file, from 0.
        timestamps: the treatment of digits below microseconds.
        bad_before: the number of earlier bad records of the file.
        limits: the limits of the reader; `max_bad_records` counts.
        names: the match of the fields of structs.
        require_time: see `salvaged`.

    Raises:
        UnreadableFile: a column is of another kind, more records are bad, or the time of the file is used up.
    """
    try:
        return Rows(conform(table, schema, timestamps=timestamps, names=names), first_row)
    except UnreadableFile as error:
        if error.row is None:
            raise
    records = _TableRecords(table, schema, timestamps, names)
    return salvaged(records, first_row, lambda error: getattr(error, "reason", ""), bad_before, limits, require_time)


class _TableRecords:
    """The `Records` of a decoded table."""

    def __init__(self, table: pa.Table, schema: pa.Schema, timestamps: Timestamps, names: NameRule) -> None:
        self._table, self._schema, self._timestamps, self._names = table, schema, timestamps, names

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def parse(self, start: int, end: int) -> pa.Table:
        table = self._table.slice(start, end - start)
        return conform(table, self._schema, timestamps=self._timestamps, names=self._names)

    def raw(self, index: int) -> bytes:
        return row_as_json(self._table, index)
