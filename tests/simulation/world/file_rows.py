"""Rows as spans of files, in place of Arrow tables and of objects in Ray's store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from zlib import crc32

import pyarrow as pa

from actors.files import FileKey

ROW_BYTES = 10
_PLACES, _SPREAD_US = 1_000, 10
_AT = "@"
SCHEMA = pa.schema([("x", pa.timestamp("us"))])
"""The column `x` is the event time of a row, of a source with one."""

LACKED = "lacked"
"""A column that some files lack."""
_LACKING = 4

RowsByFile: TypeAlias = Mapping[FileKey, tuple[int, ...]]
"""File version → positions of its ingested rows, ascending, without bad records."""


class Span(NamedTuple):
    """The rows `start` to `end` (exclusive) of a file version."""

    file: FileKey
    start: int
    end: int


def path_at(path: str, time_us: int) -> str:
    """The path of a file whose first row has happened at a time, in microseconds since 1970."""
    return f"{path}{_AT}{time_us}"


def event_time_us(file: FileKey, row: int) -> int:
    """The event time of a row: it grows with the row, and files are in no order of it."""
    _, at, time_us = file[1].partition(_AT)
    if at:
        return int(time_us) + row
    return _SPREAD_US * (1 + crc32(repr(file).encode()) % _PLACES) + row


def lacks_column(path: str) -> bool:
    """True for the files that lack the column `LACKED`: a quarter of all."""
    return crc32(path.encode()) % _LACKING == 0


class FileRows:
    """Spans of rows.  Executors ask a table only for its size and its columns, and this one answers, too.

    Args:
        spans: in the order in which they were read.
        column_names: the columns that they were read with.
    """

    __slots__ = ("column_names", "nbytes", "num_rows", "spans")

    def __init__(self, spans: tuple[Span, ...], column_names: Sequence[str] = SCHEMA.names) -> None:
        self.spans, self.column_names = spans, tuple(column_names)
        self.num_rows = sum(span.end - span.start for span in spans)
        self.nbytes = ROW_BYTES * self.num_rows

    @classmethod
    def joined(cls, tables: Iterable[FileRows]) -> FileRows:
        """The rows of several tables, one after the other."""
        first, *others = tables
        return cls(tuple(span for table in (first, *others) for span in table.spans), first.column_names)
