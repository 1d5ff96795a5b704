"""Portal: the rows of a question on their way to a client, in parts of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from slackwater.plugins.serve.messages import BINARY, TEXT, WireColumn, data_row, row_description
from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, TOO_MUCH, SqlError
from slackwater.plugins.serve.value_types import encoded, modifier_of, type_of

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 256, 1 << 20


@dataclass(frozen=True)
class AnswerLimits:
    """Limits of one answer; None for no limit.

    Args:
        rows: the largest number of rows.
        nbytes: the largest number of bytes.
    """

    rows: int | None = None
    nbytes: int | None = None


class RowSource(Protocol):
    """Rows that are computed as they are read."""

    @property
    def schema(self) -> pa.Schema: ...

    def next_batch(self) -> pa.RecordBatch | None: ...

    def close(self) -> None: ...


class TableRows:
    """The rows of a table."""

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self._batches = iter(table.to_batches())

    def next_batch(self) -> pa.RecordBatch | None:
        return next(self._batches, None)

    def close(self) -> None:
        """Nothing is open."""


class Portal:
    """Rows for one client.

    Args:
        formats: the formats of the columns: none for text, one for all, or one each.
        limits: the limits of the answer.

    Raises:
        SqlError: the formats do not fit the columns.
    """

    def __init__(self, rows: RowSource, formats: Sequence[int] = (), limits: AnswerLimits = AnswerLimits()) -> None:
        self._rows, self._limits = rows, limits
        self._formats = self._spread(formats)
        self._rest: pa.RecordBatch | None = None
        self.is_over = False
        self.sent, self._sent_bytes = 0, 0

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def in_formats(self, formats: Sequence[int]) -> Portal:
        """This portal, which sends its next rows in these formats."""
        self._formats = self._spread(formats)
        return self

    @property
    def description(self) -> bytes:
        """The message that describes the columns."""
        return row_description(wire_columns(self._rows.schema, self._formats))

    def take(self, count: int | None) -> Iterator[bytes]:
        """The messages of the next rows, several rows at a time.

        Args:
            count: the number of rows; None for all.

        Raises:
            SqlError: the rows cannot be computed, or are more than the limit.
        """
        while count is None or count > 0:
            batch = self._next_batch()
            if batch is None:
                return
            fit = max(1, _BYTES_AT_ONCE * batch.num_rows // max(1, batch.nbytes))
            wanted = min(_ROWS_AT_ONCE, fit, batch.num_rows, batch.num_rows if count is None else count)
            self._rest = batch.slice(wanted) if wanted < batch.num_rows else None
            self._count(wanted)
            count = None if count is None else count - wanted
            messages = self._messages(batch.slice(0, wanted))
            self._count_bytes(len(messages))
            yield messages

    def skip(self, count: int | None) -> int:
        """Drops rows, and returns their number."""
        skipped = 0
        while (count is None or skipped < count) and (batch := self._next_batch()) is not None:
            wanted = batch.num_rows if count is None else min(batch.num_rows, count - skipped)
            self._rest = batch.slice(wanted) if wanted < batch.num_rows else None
            skipped += wanted
        return skipped

    def close(self) -> None:
        """Drops the unread rows."""
        self._rest, self.is_over = None, True
        self._rows.close()

    def _spread(self, formats: Sequence[int]) -> list[int]:
        count = len(self._rows.schema)
        spread = list(formats) * count if len(formats) == 1 else list(formats) or [TEXT] * count
        if len(spread) != count or any(each not in (TEXT, BINARY) for each in spread):
            raise SqlError(PROTOCOL_VIOLATION, f"{len(formats)} formats do not fit the {count} columns of the result")
        return spread

    def _next_batch(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
        while not self.is_over and (batch is None or not batch.num_rows):
            batch = self._rows.next_batch()
            self.is_over = batch is None
        return batch

    def _count(self, rows: int) -> None:
        self.sent += rows
        if self._limits.rows is not None and self.sent > self._limits.rows:
            raise SqlError(
                TOO_MUCH,
                f"the query has more than {self._limits.rows:,} rows, the limit of this server (--max-rows): group or "
                "filter its rows, or add LIMIT",
            )

    def _count_bytes(self, nbytes: int) -> None:
        self._sent_bytes += nbytes
        if self._limits.nbytes is not None and self._sent_bytes > self._limits.nbytes:
            raise SqlError(
                TOO_MUCH,
                f"the answer has more than {self._limits.nbytes / 2**20:,.0f} MiB, the limit of this server "
                "(--max-answer-mib): select fewer rows or columns, or add LIMIT",
            )

    def _messages(self, batch: pa.RecordBatch) -> bytes:
        if not batch.num_columns:
            return b"".join(data_row(()) for _ in range(batch.num_rows))
        columns = [encoded(column, format) for column, format in zip(batch.columns, self._formats, strict=True)]
        return b"".join(map(data_row, zip(*columns, strict=True)))


def wire_columns(schema: pa.Schema, formats: Sequence[int] = ()) -> list[WireColumn]:
    """The columns of a result; in text without formats."""
    columns = []
    for field, format in zip(schema, formats or [TEXT] * len(schema), strict=True):
        kind = type_of(field.type)
        columns.append(WireColumn(field.name, kind.oid, kind.size, modifier_of(field.type), format))
    return columns
