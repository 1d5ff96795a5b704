"""Rows of a file as a reader yields them, and records that cannot be rows, with their positions in the file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True)
class Offset:
    """A position in a file, from which it is read.

    Args:
        row: the first row to read, counted from 0.
        anchor_row: a row at or before it at which a reader may begin.
        anchor_byte: the first byte of that row; 0 for the start of the file, also if a header comes before its rows.
    """

    row: int = 0
    anchor_row: int = 0
    anchor_byte: int = 0

    def at(self, row: int) -> Offset:
        """A later row with the same anchor."""
        return self if row == self.row else Offset(row, self.anchor_row, self.anchor_byte)


@dataclass(frozen=True)
class BadRecord:
    """A record that cannot be a row of its source.

    Args:
        row: its position in the file, counted from 0.
        raw: its bytes, or the first of them; for a Parquet file the row as JSON.
        reason: the reason in one line.
    """

    row: int
    raw: bytes
    reason: str


@dataclass(frozen=True)
class Rows:
    """Records of a file, one behind the other: `num_rows` from `first_row` on.

    Args:
        table: the records that fit, in file order, in the schema that was asked for.
        bad: the other records, in file order.
        anchor: a position behind all of them, or at a row of them, at which another reader may begin.
        others: columns of the file that the schema does not have, if the reader looks for them; of type null if it
            does not look for their type.
        missing: columns of the schema that the header of the file lacks; of JSON, that no record of the first block
            has, in the first rows of the file.
        renamed: columns of the file whose name the source cannot have, each with both names: `("", "_c0")`.
        event_high: the highest event time among the rows of `table`, in microseconds since 1970, or of rows of the
            file that were read with them; None without one.
    """

    table: pa.Table
    first_row: int
    bad: tuple[BadRecord, ...] = ()
    anchor: Offset = Offset()
    others: tuple[pa.Field, ...] = ()
    missing: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    event_high: int | None = None

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows) + len(self.bad)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the table.  To count them, Arrow gives the thread's turn away: they are counted once."""
        return int(self.table.nbytes)

    @property
    def end_row(self) -> int:
        return self.first_row + self.num_rows

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Several pieces as one; each begins at the end of the one before."""
        if len(parts) == 1:
            return parts[0]
        bad = tuple(each for part in parts for each in part.bad)
        return cls(
            pa.concat_tables(part.table for part in parts),
            parts[0].first_row,
            bad,
            parts[0].anchor,
            parts[-1].others,
            parts[0].missing,
            parts[-1].renamed,
            highest(*(part.event_high for part in parts)),
        )

    def between(self, start: int, end: int) -> Rows:
        """The records of the rows `start` (inclusive) to `end` (exclusive) of the file."""
        start, end = max(start, self.first_row), min(end, self.end_row)
        first_bad, end_bad = (bisect_left(self.bad, row, key=lambda bad: bad.row) for row in (start, end))
        good = start - self.first_row - first_bad
        table = self.table.slice(good, end - start - (end_bad - first_bad))
        return replace(self, table=table, first_row=start, bad=self.bad[first_bad:end_bad])

    def cut(self, piece_bytes: int) -> Iterator[Rows]:
        """Yields parts of about `piece_bytes`; one part if the rows are not larger than two of them."""
        if not self.num_rows:
            return
        pieces = 1 if self.nbytes <= 2 * piece_bytes else -(-self.nbytes // piece_bytes)
        rows = -(-self.num_rows // pieces)
        for start in range(self.first_row, self.end_row, rows):
            yield self.between(start, start + rows) if pieces > 1 else self


def highest(*times: int | None) -> int | None:
    """The highest of some event times; None if none is known."""
    return max((each for each in times if each is not None), default=None)
