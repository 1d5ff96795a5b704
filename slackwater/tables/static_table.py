"""The stored rows of a static table that came with a pipeline: a source of one file, below the root."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.schemas.column_names import source_names
from state.errors import CommandRefusedError, NotFoundError, SchemaError
from state.location import Location
from state.ownership.conditional_file import ConditionalFile, FileChangedError, ReadFile

FILE = "rows.parquet"
"""The file of a static table, below the location of its source."""
_DECLARED = b"slackwater.declared"


def table_location(root: Location, name: str) -> Location:
    """The place of a static table at a root."""
    return root.child(f"tables/{name}")


class StaticTable:
    """The stored rows of one static table.

    Its file stores a hash of the declared rows.  A start writes the declared rows only if the file is missing or has
    another hash.  So the rows of `replace` stay until the declaration changes.

    Args:
        location: see `table_location`.
    """

    def __init__(self, location: Location, name: str) -> None:
        self._name = name
        self._file = ConditionalFile(location, FILE)

    def declare(self, rows: pa.Table) -> None:
        """Stores the declared rows, unless the rows declared at the last start are equal.

        Raises:
            StorageError: the root cannot be read or written.
        """
        stored, declared = self._file.read(), _content_hash(rows)
        if stored is None or _parquet(stored).schema_arrow.metadata[_DECLARED] != declared:
            self._put(rows, declared, stored)

    def schema(self) -> pa.Schema:
        """The columns of the table.  Errors as `replace`."""
        return _parquet(self._read()).schema_arrow.remove_metadata()

    def replace(self, rows: pa.Table) -> None:
        """Makes these the rows of the table.

        Raises:
            NotFoundError: the root has no such table.
            SchemaError: the rows have other columns than the table.
            StorageError: the root cannot be read or written.
        """
        stored = self._read()
        schema = _parquet(stored).schema_arrow
        self._put(self._fitting(rows, schema.remove_metadata()), schema.metadata[_DECLARED], stored)

    def _read(self) -> ReadFile:
        stored = self._file.read()
        if stored is None:
            raise NotFoundError(
                f"the root has no rows of a static table {self._name!r}: pipeline.table(...) declares one, and a table "
                "with a URL of its own is replaced by writing its files"
            )
        return stored

    def _fitting(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The rows with the columns of the table, in their order and types; names match in any case, as for files."""
        try:
            rows = rows.rename_columns(source_names(rows.column_names, schema.names))
        except UnreadableFile as error:
            raise SchemaError(f"table {self._name} cannot be replaced: {error.reason}") from None
        missing = [column for column in schema.names if column not in rows.column_names]
        more = [column for column in rows.column_names if column not in schema.names]
        if missing or more:
            without = f" without {', '.join(missing)}" if missing else ""
            with_more = f" with {', '.join(more)}" if more else ""
            raise SchemaError(
                f"table {self._name} cannot be replaced by rows{without}{with_more}: its columns are "
                f"{', '.join(schema.names)}; for other columns, declare a table of another name"
            )
        return pa.table([self._cast(rows[field.name], field) for field in schema], schema=schema)

    def _cast(self, values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        try:
            return values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(
                f"table {self._name}, column {field.name}: {values.type} does not become {field.type} ({error}); bring "
                "it in that type"
            ) from None

    def _put(self, rows: pa.Table, declared: bytes, stored: ReadFile | None) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(rows.replace_schema_metadata({_DECLARED: declared}), sink)
        try:
            self._file.replace(sink.getvalue().to_pybytes(), None if stored is None else stored.version)
        except FileChangedError as error:
            raise CommandRefusedError(
                f"table {self._name}: {error} at this moment; look at it, and try again"
            ) from None


def copy_table(source: Location, target: Location) -> None:
    """Copies the stored rows of a static table, unless the target has rows.

    Raises:
        StorageError: a place cannot be read or written.
    """
    stored = ConditionalFile(source, FILE).read()
    if stored is not None:
        with suppress(FileChangedError):
            ConditionalFile(target, FILE).replace(stored.content, None)


def _parquet(file: ReadFile) -> pq.ParquetFile:
    return pq.ParquetFile(pa.py_buffer(file.content))


def _content_hash(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest().encode()
