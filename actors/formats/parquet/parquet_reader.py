"""Reader of Parquet files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.formats.asked_arrow import ask_arrow
from actors.formats.limits import CpuTime, Expansion
from actors.formats.parquet.bounds import ParquetBounds
from actors.formats.parquet.encryption import TRAILER_BYTES, require_plain_columns, require_plain_footer
from actors.formats.parquet.int96 import exact_times, int96_columns
from actors.formats.template import DecodedTable, OpenedFile, ReadRequest, TableReader
from actors.formats.windows import ChunkWindows
from actors.objects.object_file import Fetched, ObjectFile
from actors.objects.ranges import range_plan
from actors.rows import Rows
from actors.schemas.chosen_columns import only_columns
from actors.schemas.conform import Timestamps
from actors.settings import MIB, ReadLimits


class ParquetReader(TableReader[pq.ParquetFile]):
    """Reads Parquet files; see `FileReader`.

    The footer of a large file is one request.  Then the chunks of the wanted columns are fetched, a few row groups
    together, and the next few while these are decoded.
    """

    declared, magics = "Parquet", (b"PAR1", b"PARE")

    def _open(self, file: ObjectFile) -> OpenedFile[pq.ParquetFile]:
        last_start = max(0, file.size - file.settings.footer_bytes)
        last_bytes = file.fetch([(last_start, file.size)])
        stream = last_bytes.stream()
        held = bytes(last_bytes.read_at(last_start, file.size - last_start))
        require_plain_footer(held)
        parquet = _parquet_file(stream, file.size, self._limits)

        def footer(nbytes: int) -> bytes:
            end = file.size - TRAILER_BYTES
            return bytes(last_bytes.read_at(end - nbytes, nbytes))

        require_plain_columns(held, parquet.metadata.serialized_size, footer)
        return OpenedFile(parquet, parquet.schema_arrow)

    def _tables(
        self, opened: OpenedFile[pq.ParquetFile], request: ReadRequest, cpu: CpuTime, expansion: Expansion
    ) -> Iterator[DecodedTable]:
        columns = only_columns(opened.schema, request.wanted.names)
        reading = _Reading(request.file, opened.head, columns, self._limits, self._timestamps)
        return reading.tables(request.offset.row, request.piece_bytes)

    def _cut(self, parts: Iterator[Rows], piece_bytes: int, cpu: CpuTime) -> Iterator[Rows]:
        # Small row groups were decoded together.
        for rows in parts:
            yield from rows.cut(piece_bytes)

    def planned_gets(self, file: ObjectFile) -> int:
        """The number of GETs that reading all columns of a file takes; the footer of a large file is fetched.

        Raises:
            UnreadableFile: the file is not a Parquet file, or exceeds the limits.
        """
        if file.is_whole:
            return 1
        opened = self._open(file)
        return 1 + _Reading(file, opened.head, opened.schema, self._limits).num_gets()


class _ParquetFile(pq.ParquetFile):  # type: ignore[misc]
    """Arrow makes the schema again whenever it is asked for it."""

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        return super().schema_arrow


def _parquet_file(
    stream: pa.NativeFile,
    size: int,
    limits: ReadLimits,
    metadata: pq.FileMetaData | None = None,
    dictionaries: Sequence[str] = (),
    buffer_bytes: int = 0,
    int96_unit: str | None = None,
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
            schema_depth_limit=limits.max_nesting + 1,
            coerce_int96_timestamp_unit=int96_unit,
        )
        num_columns = parquet.metadata.num_columns
        if num_columns > limits.max_columns:
            raise UnreadableFile(
                f"it has {num_columns} columns, more than {limits.max_columns} (ReadLimits.max_columns)"
            )
        # A file may claim a type that Arrow does not have.
        _ = parquet.schema_arrow
        return parquet

    return ask_arrow(opened, "not a Parquet file")


class _Reading:
    """One reading of columns of a file.

    Args:
        columns: the columns, as they are in the file.
        limits: the limits of the reader.
        timestamps: the treatment of digits below microseconds.
    """

    def __init__(
        self,
        file: ObjectFile,
        parquet: pq.ParquetFile,
        columns: pa.Schema,
        limits: ReadLimits,
        timestamps: Timestamps = "exact",
    ) -> None:
        self._file, self._parquet, self._limits = file, parquet, limits
        self._columns = list(dict.fromkeys(columns.names))
        self._int96, self._timestamps = int96_columns(parquet.schema, columns), timestamps
        self._bounds = ParquetBounds(parquet, 0 if file.is_whole else file.size, columns, limits)
        self._num_rows = self._bounds.num_rows

    def tables(self, offset_rows: int, piece_bytes: int) -> Iterator[DecodedTable]:
        """Yields the tables from an offset."""
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
                        yield DecodedTable(table.slice(skipped), start + skipped)
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
        if groups[0] in self._bounds.damaged:
            raise self._bounds.damaged[groups[0]]
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
        if long_texts or self._int96 or not self._file.is_whole:
            reopened = partial(
                _parquet_file, stream, self._file.size, self._limits, parquet.metadata, long_texts, buffer_bytes
            )
            parquet = reopened(int96_unit="us" if self._int96 else None)
        tables = self._batches(parquet, groups, piece_bytes, self._columns)
        if self._int96 and self._timestamps == "exact":
            tables = self._with_exact_times(tables, self._batches(reopened(), groups, piece_bytes, self._int96))
        for table in tables:
            yield from self._bounds.slices(table) if long_texts else [table]

    def _with_exact_times(self, in_us: Iterator[pa.Table], in_ns: Iterator[pa.Table]) -> Iterator[pa.Table]:
        for table, times in zip(in_us, in_ns, strict=True):
            yield from exact_times(table, times)

    def _batches(
        self, parquet: pq.ParquetFile, groups: list[int], piece_bytes: int, columns: list[str]
    ) -> Iterator[pa.Table]:
        """Yields the rows of a run of row groups; a group that is larger than a piece comes in batches."""
        num_rows, group_bytes = self._num_rows[groups[0]], self._bounds.group_bytes(groups[0])
        most_rows = self._bounds.most_rows(groups)
        place = f"damaged Parquet file, in row groups {groups[0]} to {groups[-1]}"
        if group_bytes <= 2 * piece_bytes and most_rows is None:
            yield ask_arrow(lambda: parquet.read_row_groups(groups, columns=columns, use_threads=False), place)
            return
        rows = max(1, min(num_rows * piece_bytes // group_bytes, most_rows or num_rows))
        batches = parquet.iter_batches(rows, row_groups=groups, columns=columns, use_threads=True)
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
