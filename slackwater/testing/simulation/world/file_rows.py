"""Rows as spans of files, in place of Arrow tables and of objects in Ray's store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from actors.files import FileKey

ROW_BYTES = 10
SCHEMA = pa.schema([("x", pa.int64())])


class Span(NamedTuple):
    """The rows `start` to `end` (exclusive) of a file version."""

    file: FileKey
    start: int
    end: int


class FileRows:
    """Spans of rows.  Executors ask a table only for its size and its columns, and this one answers, too.

    Args:
        spans: in the order in which they were read.
    """

    __slots__ = ("nbytes", "num_rows", "spans")
    column_names = ("x",)

    def __init__(self, spans: tuple[Span, ...]) -> None:
        self.spans = spans
        self.num_rows = sum(span.end - span.start for span in spans)
        self.nbytes = ROW_BYTES * self.num_rows

    @classmethod
    def joined(cls, tables: Iterable[FileRows]) -> FileRows:
        """The rows of several tables, one after the other."""
        return cls(tuple(span for table in tables for span in table.spans))
