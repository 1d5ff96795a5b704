"""Reader of Parquet files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.formats.asked_arrow import ask_arrow
from actors.formats.conformed import conformed
from actors.formats.limits import Expansion
from actors.formats.parquet.bounds import ParquetBounds
from actors.formats.windows import ChunkWindows
from actors.objects.object_file import Fetched, ObjectFile
from actors.objects.ranges import range_plan
from actors.rows import Offset, Rows
from actors.schemas.chosen_columns import missing_columns, only_columns, without_columns
from actors.schemas.conform import Timestamps, require_common_column, require_fitting_columns
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits


class ParquetReader:
    """Reads Parquet files; see `FileReader`.

    The footer of a large file is one request.  Then the chunks of the wanted columns are fetched, a few row groups
    together, and the next few while these are decoded.

    Args:
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds.
    """

    def __init__(self, limits: ReadLimits = ReadLimits(), timestamps: Timestamps = "exact") -> None:
        self.limits, self._timestamps = limits, timestamps

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return safe_schema(self._footer(file).schema_arrow, null=pa.null())

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 8 * MIB,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        parquet = self._footer(file)
        found = parquet.schema_arrow
        require_common_column(found.names, schema)
        require_fitting_columns(found, schema)
        wanted = only_columns(schema, columns)
        reading = _Reading(file, parquet, only_columns(found, wanted.names), self)
        others = tuple(without_columns(found, schema.names)) if {*found.names} - {*schema.names} else ()
        missing = missing_columns(wanted, found.names)
        expansion = Expansion(file.size, self.limits)
        num_bad = 0
        for table, first_row in reading.tables(offset.row, piece_bytes):
            rows = conformed(table, wanted, first_row, self._timestamps, num_bad, self.limits)
            rows = replace(rows, others=others, missing=missing) if others or missing else rows
            num_bad += len(rows.bad)
            expansion.add(rows.nbytes)
            yield from rows.cut(piece_bytes)

    def planned_gets(self, file: ObjectFile) -> int:
        """The number of GETs that reading all columns of a file takes; the footer of a large file is fetched.

        Raises:
            UnreadableFile: the file is not a Parquet file, or exceeds the limits.
        """
        if file.is_whole:
            return 1
        parquet = self._footer(file)
        return 1 + _Reading(file, parquet, parquet.schema_arrow, self).num_gets()

    def _footer(self, file: ObjectFile) -> pq.ParquetFile:
        last_bytes = file.fetch([(max(0, file.size - file.settings.footer_bytes), file.size)])
        return self.open(last_bytes.stream(), file.size)

    def open(
        self,
        stream: pa.NativeFile,
        size: int,
        metadata: pq.FileMetaData | None = None,
        dictionaries: Sequence[str] = (),
        buffer_bytes: int = 0,
    ) -> pq.ParquetFile:
        """The file over a stream: `buffer_bytes` of each column at a time, or a whole chunk if that is 0."""
        if not size:
            raise UnreadableFile("the file is empty; a Parquet file has at least a footer")

        def opened() -> pq.ParquetFile:
            parquet = _ParquetFile(
                stream,
                metadata=metadata,
                read_dictionary=list(dictionaries),
                buffer_size=buffer_bytes,
                # Other threads would fetch ahead what is here.
                pre_buffer=not isinstance(stream, pa.BufferReader),
                schema_depth_limit=self.limits.max_nesting + 1,
            )
            num_columns = parquet.metadata.num_columns
            if num_columns > self.limits.max_columns:
                raise UnreadableFile(
                    f"it has {num_columns} columns, more than {self.limits.max_columns} (ReadLimits.max_columns)"
                )
            # A file may claim a type that Arrow does not have.
            _ = parquet.schema_arrow
            return parquet

        return ask_arrow(opened, "not a Parquet file")


class _ParquetFile(pq.ParquetFile):  # type: ignore[misc]
    """Arrow makes the schema anew whenever it is asked for it."""

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        return super().schema_arrow


class _Reading:
    """One reading of columns of a file.

    Args:
        file: the object.
        parquet: its footer.
        columns: the columns, as they are in the file.
        reader: the reader, which opens streams.
    """

    def __init__(self, file: ObjectFile, parquet: pq.ParquetFile, columns: pa.Schema, reader: ParquetReader) -> None:
        self._file, self._parquet, self._columns, self._reader = file, parquet, columns.names, reader
        self._bounds = ParquetBounds(parquet, columns, reader.limits)
        self._num_rows = self._bounds.num_rows

    def tables(self, offset_rows: int, piece_bytes: int) -> Iterator[tuple[pa.Table, int]]:
        """Yields the tables from an offset, each with the number of rows before it."""
        stretches = iter(self._stretches(offset_rows))
        groups = next(stretches, [])
        content = self._fetch(groups)
        start = sum(self._num_rows[: groups[0]]) if groups else 0
        while groups:
            following = next(stretches, [])
            ahead = self._fetch(following)
            for run in self._runs(groups, piece_bytes):
                for table in self._decoded(content, run, piece_bytes):
                    skipped = min(max(offset_rows - start, 0), table.num_rows)
                    if skipped < table.num_rows:
                        yield table.slice(skipped), start + skipped
                    start += table.num_rows
            groups, content = following, ahead

    def num_gets(self) -> int:
        """The number of GETs that `tables` makes."""
        settings = self._file.settings
        gets = 0
        for groups in self._stretches(0):
            ranges = self._bounds.ranges(groups)
            if self._is_too_large(groups):
                gets += ChunkWindows(self._file, ranges, settings.max_held_bytes, _unwatched).num_windows
            else:
                gap_bytes, span_bytes = settings.max_gap_bytes, settings.max_span_bytes
                gets += len(range_plan(ranges, max_gap_bytes=gap_bytes, max_span_bytes=span_bytes))
        return gets

    def _stretches(self, offset_rows: int) -> Iterator[list[int]]:
        """Yields row groups that are fetched together, from the offset."""
        ends = itertools.accumulate(self._num_rows)
        wanted = [group for group, end in enumerate(ends) if end > offset_rows and self._num_rows[group]]
        return _together(wanted, self._bounds.stored_bytes, self._file.settings.max_span_bytes)

    def _runs(self, groups: list[int], piece_bytes: int) -> Iterator[list[int]]:
        """Yields row groups that are decoded together."""
        return _together(groups, self._bounds.group_bytes, piece_bytes)

    def _fetch(self, groups: list[int]) -> Fetched:
        """The content of row groups; a single group that is too large is fetched by windows later."""
        return self._file.fetch([] if self._is_too_large(groups) else self._bounds.ranges(groups))

    def _is_too_large(self, groups: list[int]) -> bool:
        if self._file.is_whole:
            return False
        return sum(map(self._bounds.stored_bytes, groups)) > self._file.settings.max_held_bytes

    def _decoded(self, content: Fetched, groups: list[int], piece_bytes: int) -> Iterator[pa.Table]:
        if self._is_too_large(groups):
            held_bytes = self._file.settings.max_held_bytes
            watch = self._bounds.watch(groups[0])
            windows = ChunkWindows(self._file, self._bounds.ranges(groups), held_bytes, watch)
            stream, buffer_bytes = windows.stream(), min(windows.window_bytes, MIB)
        else:
            stream, buffer_bytes = content.stream(), 0
            self._bounds.check_pages(stream, groups)
        long_texts = self._bounds.long_texts(stream, groups)
        parquet = self._parquet
        if long_texts or not self._file.is_whole:
            parquet = self._reader.open(stream, self._file.size, parquet.metadata, long_texts, buffer_bytes)
        for table in self._batches(parquet, groups, piece_bytes):
            yield from self._bounds.slices(table) if long_texts else [table]

    def _batches(self, parquet: pq.ParquetFile, groups: list[int], piece_bytes: int) -> Iterator[pa.Table]:
        """Yields the rows of a run of row groups; a group that is larger than a piece comes in batches."""
        num_rows, group_bytes = self._num_rows[groups[0]], self._bounds.group_bytes(groups[0])
        most_rows = self._bounds.most_rows(groups)
        place = f"damaged Parquet file, in row groups {groups[0]} to {groups[-1]}"
        if group_bytes <= 2 * piece_bytes and most_rows is None:
            yield ask_arrow(lambda: parquet.read_row_groups(groups, columns=self._columns, use_threads=False), place)
            return
        rows = max(1, min(num_rows * piece_bytes // group_bytes, most_rows or num_rows))
        batches = parquet.iter_batches(rows, row_groups=groups, columns=self._columns, use_threads=True)
        while (batch := ask_arrow(lambda: next(batches, None), place)) is not None:
            yield pa.Table.from_batches([batch])


def _unwatched(stream: pa.NativeFile, start: int, end: int) -> None:
    """A check of nothing, for windows that are only counted."""


def _together(groups: Iterable[int], nbytes: Callable[[int], int], most_bytes: int) -> Iterator[list[int]]:
    """Yields runs of neighbours of at most `most_bytes` together; a larger group is alone."""
    together: list[int] = []
    total = 0
    for group in groups:
        if together and total + nbytes(group) > most_bytes:
            yield together
            together, total = [], 0
        together.append(group)
        total += nbytes(group)
    if together:
        yield together
