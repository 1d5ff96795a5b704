"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from actors.conform import conform, require_common_column
from actors.object_file import ObjectFile
from actors.read_errors import UnreadableFile, one_line
from actors.readers.pieces import cut
from actors.safe_types import safe_schema
from actors.settings import MIB


class ParquetReader:
    """Reads Parquet files; see `FileReader`.

    Row groups that lie before the offset are not read.  The columns of a row group are read one after the other as they
    lie in the file, and `ObjectFile` answers from its blocks: their number costs no requests.
    """

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return safe_schema(_open(file).schema_arrow)

    def read(
        self, file: ObjectFile, schema: pa.Schema, offset_rows: int = 0, piece_bytes: int = 8 * MIB
    ) -> Iterator[pa.Table]:
        parquet = _open(file)
        require_common_column(parquet.schema_arrow.names, schema)
        columns = [name for name in parquet.schema_arrow.names if name in schema.names]
        for groups, start in _pieces(parquet.metadata, offset_rows, piece_bytes):
            for table in _tables(parquet, groups, columns, piece_bytes):
                skipped = min(max(offset_rows - start, 0), table.num_rows)
                yield from cut(conform(table.slice(skipped), schema, first_row=start + skipped), piece_bytes)
                start += table.num_rows


def _open(file: ObjectFile) -> pq.ParquetFile:
    if not file.size:
        raise UnreadableFile("the file is empty, which no Parquet file is")
    try:
        return pq.ParquetFile(file.stream())
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except (pa.ArrowException, OSError) as error:
        reason = f"not a Parquet file: {one_line(error)}"
    raise UnreadableFile(reason)


def _pieces(metadata: pq.FileMetaData, offset_rows: int, piece_bytes: int) -> Iterator[tuple[list[int], int]]:
    """Yields runs of row groups that are read together, each with the number of rows before it."""
    groups: list[int] = []
    start = row = nbytes = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        if row + group.num_rows > offset_rows:
            if groups and nbytes + group.total_byte_size > piece_bytes:
                yield groups, start
                groups = []
            if not groups:
                start, nbytes = row, 0
            groups.append(index)
            nbytes += group.total_byte_size
        row += group.num_rows
    if groups:
        yield groups, start


def _tables(parquet: pq.ParquetFile, groups: list[int], columns: list[str], piece_bytes: int) -> Iterator[pa.Table]:
    """Yields the rows of a run of row groups; one that is larger than a piece comes in batches."""
    first = parquet.metadata.row_group(groups[0])
    try:
        if first.total_byte_size <= 2 * piece_bytes:
            yield parquet.read_row_groups(groups, columns=columns, use_threads=False)
            return
        rows = max(1, first.num_rows * piece_bytes // first.total_byte_size)
        for batch in parquet.iter_batches(rows, row_groups=groups, columns=columns, use_threads=True):
            yield pa.Table.from_batches([batch])
        return
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except (pa.ArrowException, OSError) as error:
        reason = f"damaged Parquet file, in row groups {groups[0]} to {groups[-1]}: {one_line(error)}"
    raise UnreadableFile(reason)
