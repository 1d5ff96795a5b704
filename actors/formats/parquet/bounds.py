"""Bounds on the memory that decoding a Parquet file takes, and the places where a small file asks for much.

A file of 3 KB can hold a million rows of 100 KB each: its dictionary has one long text, and its rows are one run of the
same index.  A file of 2 MB can hold pages of 2 GB each.  The footer does not show.  Therefore suspect texts are decoded
as dictionaries and unfolded a few rows at a time, and pages are judged by their headers, from bytes that are read
anyway.  A chunk that is too small to hide much is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.formats.asked_arrow import ask_arrow
from actors.formats.limits import row_bytes
from actors.formats.parquet.long_texts import longest_text, may_be_long
from actors.formats.parquet.pages import Page, PageWalk, pages
from actors.objects.ranges import Range, seekable
from actors.settings import ReadLimits

# The bytes that one compressed byte can unfold to; less with most codecs.  Arrow ends the process when it is asked for
# an unknown codec, so the codec is not asked for.
_EXPANSION = 40_000
# The size up to which a chunk is not checked, in units of `max_batch_bytes`.
_UNSEEN = 4
_VALUE_BYTES = 8
# Arrow's own, for readers that do not set another.
_BATCH_ROWS = 1 << 16
# The claimed size of a damaged row group: it is read together with no other.
_ALONE_BYTES = 1 << 62


@dataclass(frozen=True)
class _Chunk:
    """A column chunk whose pages are checked."""

    path: str
    group: int
    start: int
    end: int
    num_values: int
    is_repeated: bool
    most_bytes: int

    def check(self, page: Page) -> None:
        """Refuses a page that takes more than `most_bytes` of memory."""
        page_bytes = max(page.num_bytes, page.num_values * _VALUE_BYTES if self.is_repeated else 0)
        if page_bytes > self.most_bytes:
            raise UnreadableFile(
                f"column {self.path}: a page takes {page_bytes} bytes of memory, more than {self.most_bytes} "
                "(ReadLimits.max_batch_bytes)"
            )


class _NotRead(Exception):
    """Arrow has accepted the metadata, and begins to read values."""


def _probe(parquet: pq.ParquetFile, group: int, columns: list[int], batch_rows: int) -> None:
    """Lets Arrow look at the metadata of columns where its errors are exceptions.

    pyarrow ends the process when C++ refuses the metadata of a column, for example its histograms.  A reader of batches
    looks at the same metadata before it reads their first byte, and its errors are exceptions.

    Args:
        batch_rows: 0 to read nothing; with 1 the stream of the file refuses to be read.

    Raises:
        UnreadableFile: the metadata are damaged.
    """
    # `ParquetFile.iter_batches` refuses 0.
    batches = parquet.reader.iter_batches(batch_rows, [group], columns, use_threads=False)
    with suppress(_NotRead):
        ask_arrow(lambda: next(batches, None), f"damaged Parquet file, in row group {group}")


def _refuse(start: int, nbytes: int) -> bytes:
    raise _NotRead


class ParquetBounds:
    """The bounds of the row groups of one file, over the columns that are read.

    Args:
        parquet: the file.
        size: the size of a file that is not in memory, in bytes; 0 for a file in memory.
        columns: the columns, as they are in the file.
        limits: the limits of the reader; `max_batch_bytes` counts.

    Attributes:
        damaged: row group → the error in the metadata of its columns, which are not looked at.
        num_rows: row group → the number of its rows, as the footer claims it; 0 for a negative one.
    """

    def __init__(self, parquet: pq.ParquetFile, size: int, columns: pa.Schema, limits: ReadLimits) -> None:
        self._metadata, self._most_bytes = parquet.metadata, limits.max_batch_bytes
        self._row_bytes = row_bytes(columns)
        schema, names = parquet.schema, frozenset(columns.names)
        leaves = [(index, schema.column(index)) for index in range(self._metadata.num_columns)]
        read = [(index, leaf, path) for index, leaf in leaves if _is_within(path := leaf.path, names)]
        self._repeated = [index for index, leaf, _ in read if leaf.max_repetition_level > 0]
        self._ranges: dict[int, list[Range]] = {}
        self._claimed_bytes: dict[int, int] = {}
        self._watched: list[_Chunk] = []
        self._texts: dict[str, list[tuple[int, int]]] = {}
        self._most_rows: dict[int, int] = {}
        self.num_rows: list[int] = []
        self.damaged: dict[int, UnreadableFile] = {}
        self._group_bytes: list[int] = []
        probe, batch_rows = parquet, 0
        if size:
            stream = seekable(size, _refuse)
            # A stream that is not in memory would be read ahead.
            probe, batch_rows = pq.ParquetFile(stream, metadata=self._metadata, buffer_size=1, pre_buffer=False), 1
        for group in range(self._metadata.num_row_groups):
            chunks = self._metadata.row_group(group)
            if chunks.num_columns != self._metadata.num_columns:
                raise UnreadableFile(
                    f"damaged Parquet file: row group {group} has {chunks.num_columns} columns, and the schema "
                    f"{self._metadata.num_columns}"
                )
            self.num_rows.append(max(0, chunks.num_rows))
            try:
                _probe(probe, group, [index for index, _, _ in read], batch_rows)
            except UnreadableFile as error:
                self.damaged[group] = error
                self._group_bytes.append(_ALONE_BYTES)
                continue
            for index, _, path in read:
                self._judge(chunks.column(index), path, group, index)
            self._group_bytes.append(self._bytes_of(chunks, group))
        # Arrow divides by it.
        parquet.reader.set_batch_size(_BATCH_ROWS)

    def _judge(self, chunk: pq.ColumnChunkMetaData, path: str, group: int, index: int) -> None:
        is_text = chunk.physical_type == "BYTE_ARRAY"
        stored_bytes, claimed_bytes = chunk.total_compressed_size, chunk.total_uncompressed_size
        could_become = stored_bytes * _EXPANSION
        unseen_bytes = _UNSEEN * self._most_bytes
        repeats = index in self._repeated
        # Each text of a delta-encoded page may repeat a prefix of the text before it.
        is_incremental = is_text and "DELTA_BYTE_ARRAY" in chunk.encodings
        if is_incremental:
            rows = max(1, unseen_bytes // max(1, claimed_bytes))
            self._most_rows[group] = min(rows, self._most_rows.get(group, rows))
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
            start = chunk.dictionary_page_offset
        self._ranges.setdefault(group, []).append((start, start + stored_bytes))
        self._claimed_bytes[group] = self._claimed_bytes.get(group, 0) + max(0, claimed_bytes)
        if repeats or is_incremental or could_become > unseen_bytes:
            most_bytes = min(self._most_bytes, claimed_bytes) if is_incremental else self._most_bytes
            self._watched.append(
                _Chunk(path, group, start, start + stored_bytes, chunk.num_values, repeats, most_bytes)
            )
        if is_text and chunk.has_dictionary_page and could_become * max(1, chunk.num_values) > unseen_bytes:
            self._texts.setdefault(path, []).append((group, index))

    def _bytes_of(self, chunks: pq.RowGroupMetaData, group: int) -> int:
        elements = sum(max(0, chunks.column(index).num_values) for index in self._repeated)
        in_memory = chunks.num_rows * self._row_bytes + elements * _VALUE_BYTES
        return int(max(self._claimed_bytes.get(group, 0), in_memory))

    def group_bytes(self, group: int) -> int:
        """The approximate bytes of a row group, in the file or in memory; the larger of both."""
        return self._group_bytes[group]

    def stored_bytes(self, group: int) -> int:
        """The bytes of its chunks in the file."""
        if group in self.damaged:
            return _ALONE_BYTES
        return sum(end - start for start, end in self._ranges.get(group, []))

    def most_rows(self, groups: Sequence[int]) -> int | None:
        """The largest number of rows that may be decoded at once, regardless of their average size; None for all."""
        return min((self._most_rows[group] for group in groups if group in self._most_rows), default=None)

    def ranges(self, groups: Sequence[int]) -> list[Range]:
        """The ranges of the chunks of row groups in the file."""
        return [each for group in groups for each in self._ranges.get(group, [])]

    def long_texts(self, stream: pa.NativeFile, groups: Sequence[int]) -> list[str]:
        """The columns of row groups that must be decoded as dictionaries.

        Args:
            stream: a stream over the file.
        """
        return [
            path
            for path, chunks in self._texts.items()
            if any(
                may_be_long(stream, self._metadata, path, group, index, self._most_bytes)
                for group, index in chunks
                if group in groups
            )
        ]

    def check_pages(self, stream: pa.NativeFile, groups: Sequence[int]) -> None:
        """Checks the pages of row groups.

        Args:
            stream: a stream over the file.

        Raises:
            UnreadableFile: a page takes more than `max_batch_bytes` of memory.
        """
        for chunk in self._watched:
            if chunk.group in groups:
                for page in pages(stream, chunk.start, chunk.end, chunk.num_values):
                    chunk.check(page)

    def watch(self, group: int) -> Callable[[pa.NativeFile, int, int], None]:
        """A check of the pages of a row group, for use while the group is fetched.

        Returns:
            A function of (a stream with the part, the start of the chunk, the end of the part), to be called for each
            part of a chunk.  Errors as `check_pages`.
        """
        walks = {
            chunk.start: (chunk, PageWalk(chunk.start, chunk.end, chunk.num_values))
            for chunk in self._watched
            if chunk.group == group
        }

        def look(stream: pa.NativeFile, start: int, end: int) -> None:
            if start in walks:
                chunk, walk = walks[start]
                for page in walk.pages(stream, end):
                    chunk.check(page)

        return look

    def slices(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yields a table in parts whose dictionaries can be unfolded within the limit, nearly always in one.

        Raises:
            UnreadableFile: one row takes more than `max_batch_bytes` of memory.
        """
        longest = sum(max(map(longest_text, column.chunks), default=0) for column in table.columns)
        if longest > self._most_bytes:
            raise UnreadableFile(
                f"a row may take {longest} bytes of memory, more than {self._most_bytes} (ReadLimits.max_batch_bytes)"
            )
        rows = max(1, self._most_bytes // max(1, longest))
        for start in range(0, table.num_rows, rows):
            yield table.slice(start, rows)


def _is_within(path: str, columns: Collection[str]) -> bool:
    """True if a leaf may be within one of these columns, whose names may have dots as a path has."""
    parts = path.split(".")
    return any(".".join(parts[:count]) in columns for count in range(1, len(parts) + 1))
