"""What every format's reader does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from actors.object_file import ObjectFile
from actors.readers.csv import CsvReader
from actors.readers.json import JsonReader
from actors.readers.parquet import ParquetReader
from actors.settings import MIB, ReadLimits
from actors.source import Csv, Format, Parquet


class FileReader(Protocol):
    """Reads the files of one format.  Has no state: one reader serves many files and threads."""

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        """The safe schema that the file suggests for its source; text is judged by its first block.

        Raises:
            EmptyFile: it is empty and suggests nothing.
            UnreadableFile: it cannot be read, or asks for more than the reader's limits.
            SchemaError: a column cannot be carried to Spark.
        """
        ...

    def read(
        self, file: ObjectFile, schema: pa.Schema, offset_rows: int = 0, piece_bytes: int = 8 * MIB
    ) -> Iterator[pa.Table]:
        """Yields the rows from `offset_rows` on, in file order, with exactly the columns of the schema.

        Args:
            file: stays usable afterwards; what it has fetched is not fetched again.
            schema: the safe schema of the source.
            offset_rows: how many rows of the file to leave out.
            piece_bytes: about how large a piece becomes; a file up to this size is one piece, an empty one none.

        Raises:
            UnreadableFile: at the piece that cannot be read within the reader's limits; the pieces before are valid.
        """
        ...


def reader_for(format: Format, limits: ReadLimits = ReadLimits()) -> FileReader:
    """The reader of a format."""
    if isinstance(format, Parquet):
        return ParquetReader(limits)
    if isinstance(format, Csv):
        return CsvReader(format, limits)
    return JsonReader(limits)
