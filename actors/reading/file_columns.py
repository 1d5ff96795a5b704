"""Columns of one file: from its content, its path and its metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.files import FileVersion
from actors.formats.limits import row_bytes
from actors.reading.required_values import with_event_times, with_values, without
from actors.rows import Rows
from actors.schemas.chosen_columns import only_columns, without_columns
from actors.schemas.metadata_columns import EPOCH, ROW, file_scalars, row_positions
from actors.schemas.path_columns import path_fields, path_scalars, path_values
from actors.schemas.safe_types import without_marks
from actors.sources.source import SourceDefinition


class FileColumns:
    """The origin of each column of a source, for one file.  The path wins over a content column of the same name.

    Args:
        source: the source; it has a schema of its own only if that was declared.
        schema: the schema of the source in the catalog.
        columns: the columns that the views use; None for all.
        now: the wall time, which event times must not be far ahead of; None for a file that was read before.
        bad: the positions of bad records of a file that was read before.

    Raises:
        UnreadableFile: a value of the path does not fit its type, or the path has every column of the source.
    """

    def __init__(
        self,
        source: SourceDefinition,
        schema: pa.Schema,
        file: FileVersion,
        columns: Collection[str] | None = None,
        now: Callable[[], datetime] | None = None,
        bad: Collection[int] = (),
    ) -> None:
        metadata = {f"_{name}" for name in source.metadata}
        own = without_columns(schema, metadata)
        from_path = path_scalars(file.path, own, source.names)
        self.content = without_columns(own, from_path)
        """The schema that the content is read with."""
        if not self.content.names:
            raise UnreadableFile("its path has every column of the source; declare one that is in the files")
        self._metadata, self._from_path = metadata, frozenset(map(str.lower, from_path))
        self._needs = {} if source.event_time is None else {source.event_time.column: "event time"}
        self._needs |= {} if source.key is None else dict.fromkeys(source.key.required, "key")
        self._event_time, self._now, self._bad = source.event_time, now, bad
        if columns is not None and source.event_time is not None:
            columns = {*columns, source.event_time.column}
        self._scalars = {**(file_scalars(file, source.location.url) if metadata else {}), **from_path}
        self._schema = without_marks(only_columns(schema, columns))
        self.columns = None if columns is None else self._of_content(frozenset(columns))
        """The columns of the content that are read; None for all."""
        is_complete = source.schema is not None or len(path_values(file.path)) == len(from_path)
        of_path = [] if is_complete else path_fields([file.path])
        self._of_path = [field for field in of_path if field.name.lower() not in self._from_path]

    def complete(self, rows: Rows) -> Rows:
        """The rows of the content with all columns, in the order of the source; `_epoch` is null.

        A row without a value in a column of the source's key is a bad record, and so is one without an event time, or
        with one too far ahead of the clock.

        Raises:
            UnreadableFile: the content has a column with the name of a metadata column.
        """
        if rows.others or self._of_path:
            rows = replace(rows, others=self._others(rows))
        if not rows.table.schema.equals(self._schema):
            columns = [self._column(field, rows) for field in self._schema]
            rows = replace(rows, table=pa.Table.from_arrays(columns, schema=self._schema))
        if self._needs:
            rows = with_values(rows, self._needs)
        if self._event_time is not None:
            rows = with_event_times(rows, self._event_time, self._now)
        return without(rows, self._bad) if self._bad else rows

    def _others(self, rows: Rows) -> tuple[pa.Field, ...]:
        of_content = [field for field in rows.others if field.name.lower() not in self._from_path]
        for name in (field.name.lower() for field in of_content):
            if name in self._metadata:
                raise UnreadableFile(
                    f"column {name} is in the file and is a metadata column of the source; "
                    f"declare the source without metadata {name[1:]!r}, or rename the column"
                )
        return tuple({field.name: field for field in (*of_content, *self._of_path)}.values())

    def _column(self, field: pa.Field, rows: Rows) -> pa.Array | pa.ChunkedArray:
        num_rows = rows.table.num_rows
        if field.name in self.content.names:
            return rows.table.column(field.name)
        if field.name == ROW and ROW in self._metadata:
            return row_positions(rows)
        if field.name == EPOCH and EPOCH in self._metadata:
            return pa.nulls(num_rows, field.type)
        return pa.repeat(self._scalars[field.name], num_rows)

    def _of_content(self, columns: frozenset[str]) -> frozenset[str]:
        """The used columns of the content; the cheapest column if only the number of rows is used."""
        used = columns.intersection(self.content.names)
        return used or frozenset({min(self.content, key=lambda field: row_bytes([field])).name})
