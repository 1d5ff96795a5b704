"""A file version that is being read, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from actors.file_errors import EmptyFile, ReaderFailed, UnreadableFile, one_line
from actors.files import FileVersion
from actors.formats.limits import CpuTime
from actors.formats.options import Text
from actors.formats.reader import FileReader
from actors.formats.salvage import too_many_bad
from actors.objects.object_file import ObjectFile
from actors.reading.file_columns import FileColumns
from actors.rows import Offset, Rows
from actors.schemas.chosen_columns import missing_columns
from actors.schemas.column_names import names_text, source_names
from actors.schemas.safe_types import without_marks
from actors.settings import ReadLimits
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import addable_columns, kept_schema
from state.errors import SchemaError, SlackwaterError


class NewColumns(Exception):
    """The next records have columns that the source lacks; reading continues when the source has them.

    Args:
        columns: the columns that the source lacks.
    """

    def __init__(self, columns: pa.Schema) -> None:
        super().__init__(columns)
        self.columns = columns


class OpenFile:
    """A file between its first piece and its last.  One thread uses it at a time.

    Args:
        reader: the reader of the source's format.
        piece_bytes: the wanted size of a piece, in bytes.
        limits: the limits of one file; `max_cpu_s_per_mib` and `max_bad_records` count, whatever its format is.
        now, bad: see `FileColumns`.
    """

    def __init__(
        self,
        content: ObjectFile,
        file: FileVersion,
        source: SourceDefinition,
        reader: FileReader,
        piece_bytes: int,
        limits: ReadLimits,
        now: Callable[[], datetime] | None = None,
        bad: Collection[int] = (),
    ) -> None:
        self._now, self._known_bad = now, bad
        self._content, self._file, self._source = content, file, source
        self._reader, self._piece_bytes = reader, piece_bytes
        self._cpu, self._most_bad = CpuTime(content.size, limits), limits.max_bad_records
        self._adds_columns = source.evolution == "add_columns"
        # A file that was read before has its rows in the views.
        self._is_strict = source.evolution == "strict" and now is not None
        self._pieces: Iterator[Rows] | None = None
        self._ahead: Rows | None = None
        self._error_ahead: UnreadableFile | NewColumns | None = None
        self._reported_requests = self._reported_bytes = 0

    def infer_schema(self) -> pa.Schema:
        """The schema that the file suggests; its bytes are not fetched again.

        Raises:
            EmptyFile, UnreadableFile: as `FileReader.infer_schema`; also if the source cannot have this schema, for
                example because a column of its key is missing.
        """
        try:
            with _errors_of_the_file(self._source):
                schema = self._reader.infer_schema(self._content)
            kept_schema(self._source, schema, [self._file.path])
        except SchemaError as error:
            reason = str(error)
        else:
            return schema
        raise UnreadableFile(reason)

    def next_piece(
        self, schema: pa.Schema, offset: Offset, columns: Collection[str] | None = None
    ) -> tuple[Rows, bool]:
        """The next records, and True if they are the last.  The first call begins at the offset.

        Args:
            schema: the schema of the source.
            offset: the begin of the first piece.
            columns: the columns that the views use; None for all.

        Raises:
            UnreadableFile: the file cannot be read further; the pieces before are valid.
            NewColumns: the source lacks columns; the next call begins at its offset again.
        """
        if self._pieces is None:
            self._pieces = self._read(schema, offset, columns)
            self._read_ahead()
        if isinstance(self._error_ahead, NewColumns):
            self._pieces, error, self._error_ahead = None, self._error_ahead, None
            raise error
        if self._error_ahead is not None:
            raise self._error_ahead
        if self._ahead is None:
            return Rows(without_marks(schema).empty_table(), offset.row, anchor=offset), True
        piece = self._ahead
        self._read_ahead()
        return piece, self._is_over()

    def ask(self) -> None:
        """Asks for the content of a small object and does not wait: `next_piece` finds it on its way."""
        self._content.ask()

    def settle(self) -> None:
        """Waits for abandoned requests, so that the cost is final."""
        self._content.settle()

    def take_cost(self) -> tuple[int, int]:
        """The requests and bytes since the last call of this method."""
        requests, bytes_read = self._content.requests, self._content.bytes_read
        cost = requests - self._reported_requests, bytes_read - self._reported_bytes
        self._reported_requests, self._reported_bytes = requests, bytes_read
        return cost

    def _read(self, schema: pa.Schema, offset: Offset, columns: Collection[str] | None) -> Iterator[Rows]:
        """Yields the records from an offset, with all columns of the source."""
        made, bad = FileColumns(self._source, schema, self._file, columns, self._now, self._known_bad), 0
        pieces = self._reader.read(
            self._content, made.content, offset, self._piece_bytes, made.columns, self._adds_columns
        )
        for piece in pieces:
            rows = made.complete(piece)
            if self._is_strict:
                self._require_columns(rows, made.content)
            bad += len(rows.bad)
            if bad > self._most_bad:
                raise too_many_bad(self._most_bad, rows.bad[-1].reason, rows.bad[-1].row)
            if self._adds_columns and rows.others:
                new = addable_columns(schema, rows.others, stored=self._source.materialize)
                if new.names:
                    raise NewColumns(new)
                # A column of nulls alone carries nothing.
                rows = replace(rows, others=tuple(each for each in rows.others if not pa.types.is_null(each.type)))
            yield rows

    def _require_columns(self, rows: Rows, schema: pa.Schema) -> None:
        """Refuses a file that lacks a column.  Of a format without a header, the fields of the first records count.

        Raises:
            UnreadableFile: a column is missing.
        """
        missing = rows.missing if self._source.shows_columns else ()
        if not self._source.shows_columns and not rows.first_row and not isinstance(self._source.format, Text):
            missing = missing_columns(schema, source_names(self._shown(), schema.names, self._source.names))
        if missing:
            raise UnreadableFile(_lacks(missing, rows.others))

    def _shown(self) -> list[str]:
        """The fields of the first records."""
        try:
            return list(self._reader.infer_schema(self._content).names)
        except EmptyFile:
            return []  # records without a field
        except SchemaError as error:
            reason = str(error)
        raise UnreadableFile(reason)

    def _is_over(self) -> bool:
        return self._ahead is None and self._error_ahead is None

    def _read_ahead(self) -> None:
        assert self._pieces is not None
        self._cpu.resume()
        try:
            with _errors_of_the_file(self._source):
                self._ahead = next(self._pieces, None)
            self._cpu.require()
        except (UnreadableFile, NewColumns) as error:
            self._ahead, self._error_ahead = None, error
        finally:
            self._cpu.pause()


def _lacks(missing: Sequence[str], others: Sequence[pa.Field]) -> str:
    """The reason against a file that lacks columns, with the extra columns: one may be a missing one, renamed."""
    extra = f", and has {names_text([field.name for field in others])}" if others else ""
    columns = "column" if len(missing) == 1 else "columns"
    return (
        f"it lacks the {columns} {names_text(missing)} of the source{extra}; correct the file, or declare the "
        'source with Schema(evolution="lenient") to read a missing column as null'
    )


@contextmanager
def _errors_of_the_file(source: SourceDefinition) -> Iterator[None]:
    """The edge to a reader: an error that is not ours becomes an error of the file.

    `MemoryError` passes: other files may hold the memory.  It ends the attempt, and recovery reads fewer files at once
    until one file is alone; a file that fails alone three times is quarantined.

    Raises:
        ReaderFailed: the reader raised an unexpected error, which is the cause.
    """
    try:
        yield
    except (SlackwaterError, NewColumns, MemoryError):
        raise
    except Exception as error:
        raise ReaderFailed(
            f"the reader of {source.format.name} failed with {type(error).__name__}: {one_line(error)}; the log has "
            "the traceback: report it with the file"
        ) from error
