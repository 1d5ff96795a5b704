"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.conform import conform, require_common_column
from actors.object_file import ObjectFile
from actors.read_errors import UnreadableFile, one_line
from actors.readers.expansion import Expansion
from actors.readers.parquet_bounds import ParquetBounds
from actors.readers.pieces import cut
from actors.readers.watched_stream import watched
from actors.safe_types import safe_schema
from actors.settings import MIB, ReadLimits


class ParquetReader:
    """Reads Parquet files; see `FileReader`.

    Row groups that lie before the offset are not read.  The columns of a row group are read one after the other as they
    lie in the file, and `ObjectFile` answers from its blocks: their number costs no requests.

    Args:
        limits: what a file may ask for.
    """

    def __init__(self, limits: ReadLimits = ReadLimits()) -> None:
        self._limits = limits

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return safe_schema(self._open(file.stream(), file.size).schema_arrow)

    def read(
        self, file: ObjectFile, schema: pa.Schema, offset_rows: int = 0, piece_bytes: int = 8 * MIB
    ) -> Iterator[pa.Table]:
        parquet = self._open(file.stream(), file.size)
        require_common_column(parquet.schema_arrow.names, schema)
        columns = [name for name in parquet.schema_arrow.names if name in schema.names]
        bounds = ParquetBounds(parquet, columns, self._limits)
        long_texts = bounds.long_texts(file.stream())
        if long_texts or not file.is_whole:
            stream = file.stream() if file.is_whole else watched(file.stream(), bounds.check_pages)
            parquet = self._open(stream, file.size, parquet.metadata, long_texts)
        expansion = Expansion(file.size, self._limits)
        for groups, start in _pieces(parquet.metadata, bounds, offset_rows, piece_bytes):
            if file.is_whole:
                bounds.check_pages(file.stream(), 0, file.size, groups)
            for table in _tables(parquet, bounds, groups, columns, piece_bytes):
                skipped = min(max(offset_rows - start, 0), table.num_rows)
                first_row = start + skipped
                start += table.num_rows
                table = table.slice(skipped)
                for part in bounds.slices(table) if long_texts else [table]:
                    rows = conform(part, schema, first_row=first_row)
                    first_row += part.num_rows
                    expansion.add(rows.nbytes)
                    yield from cut(rows, piece_bytes)

    def _open(
        self,
        stream: pa.NativeFile,
        size: int,
        metadata: pq.FileMetaData | None = None,
        dictionaries: Sequence[str] = (),
    ) -> pq.ParquetFile:
        if not size:
            raise UnreadableFile("the file is empty, which no Parquet file is")

        def opened() -> pq.ParquetFile:
            parquet = pq.ParquetFile(
                stream,
                metadata=metadata,
                read_dictionary=list(dictionaries),
                schema_depth_limit=self._limits.max_nesting + 1,
            )
            num_columns = parquet.metadata.num_columns
            if num_columns > self._limits.max_columns:
                raise UnreadableFile(
                    f"it has {num_columns} columns, more than {self._limits.max_columns} (ReadLimits.max_columns)"
                )
            # Not every type that a file may claim is one of Arrow's.
            _ = parquet.schema_arrow
            return parquet

        return _ask(opened, "not a Parquet file")


def _pieces(
    metadata: pq.FileMetaData, bounds: ParquetBounds, offset_rows: int, piece_bytes: int
) -> Iterator[tuple[list[int], int]]:
    """Yields runs of row groups that are read together, each with the number of rows before it."""
    groups: list[int] = []
    start = row = nbytes = 0
    for index in range(metadata.num_row_groups):
        num_rows, group_bytes = metadata.row_group(index).num_rows, bounds.group_bytes(index)
        if row + num_rows > offset_rows:
            if groups and nbytes + group_bytes > piece_bytes:
                yield groups, start
                groups = []
            if not groups:
                start, nbytes = row, 0
            groups.append(index)
            nbytes += group_bytes
        row += num_rows
    if groups:
        yield groups, start


def _tables(
    parquet: pq.ParquetFile, bounds: ParquetBounds, groups: list[int], columns: list[str], piece_bytes: int
) -> Iterator[pa.Table]:
    """Yields the rows of a run of row groups; one that is larger than a piece comes in batches."""
    num_rows, group_bytes = parquet.metadata.row_group(groups[0]).num_rows, bounds.group_bytes(groups[0])
    most_rows = bounds.most_rows(groups)
    place = f"damaged Parquet file, in row groups {groups[0]} to {groups[-1]}"
    if group_bytes <= 2 * piece_bytes and most_rows is None:
        yield _ask(lambda: parquet.read_row_groups(groups, columns=columns, use_threads=False), place)
        return
    rows = max(1, min(num_rows * piece_bytes // group_bytes, most_rows or num_rows))
    batches = parquet.iter_batches(rows, row_groups=groups, columns=columns, use_threads=True)
    while (batch := _ask(lambda: next(batches, None), place)) is not None:
        yield pa.Table.from_batches([batch])


def _ask(call: Callable[[], Any], place: str) -> Any:
    """What Arrow answers.

    Raises:
        UnreadableFile: the content is to blame; `place` says where.
    """
    try:
        return call()
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = f"{place}: {one_line(error)}"
    raise UnreadableFile(reason)
