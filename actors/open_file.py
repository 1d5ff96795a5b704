"""One file that is being read, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from actors.object_file import ObjectFile
from actors.read_errors import UnreadableFile
from actors.readers import FileReader
from state.errors import SchemaError


class OpenFile:
    """A file between its first piece and its last.  One thread at a time.

    Args:
        content: the object.
        reader: of the source's format.
        piece_bytes: about how large a piece is.
    """

    def __init__(self, content: ObjectFile, reader: FileReader, piece_bytes: int) -> None:
        self._content, self._reader, self._piece_bytes = content, reader, piece_bytes
        self._pieces: Iterator[pa.Table] | None = None
        self._ahead: pa.Table | None = None
        self._error_ahead: UnreadableFile | None = None
        self._told_requests = self._told_bytes = 0

    def infer_schema(self) -> pa.Schema:
        """The schema that the file shows; what was read for it is not read again.  Errors as `FileReader`."""
        try:
            return self._reader.infer_schema(self._content)
        except SchemaError as error:
            raise SchemaError(f"{self._content.path}: {error}, or give the source a schema") from error

    def next_piece(self, schema: pa.Schema, offset_rows: int) -> tuple[pa.Table, bool]:
        """The next rows, at the first call those from `offset_rows` on, and whether they are the last.

        One piece is read ahead, so that the last one is known as such.

        Raises:
            UnreadableFile: the file cannot be read further; the pieces before are valid.
        """
        if self._pieces is None:
            self._pieces = self._reader.read(self._content, schema, offset_rows, self._piece_bytes)
            self._read_ahead()
        if self._error_ahead is not None:
            raise self._error_ahead
        if self._ahead is None:
            return schema.empty_table(), True
        piece = self._ahead
        self._read_ahead()
        return piece, self._ahead is None and self._error_ahead is None

    def take_cost(self) -> tuple[int, int]:
        """The requests and bytes since the last call."""
        requests, bytes_read = self._content.requests, self._content.bytes_read
        cost = requests - self._told_requests, bytes_read - self._told_bytes
        self._told_requests, self._told_bytes = requests, bytes_read
        return cost

    def _read_ahead(self) -> None:
        assert self._pieces is not None
        try:
            self._ahead = next(self._pieces, None)
        except UnreadableFile as error:
            self._ahead, self._error_ahead = None, error
