"""The protocols of a format: its options, and the reader of its files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import pyarrow as pa

from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.settings import MIB, ReadLimits


class FileReader(Protocol):
    """Reader of the files of one format.  It has no state: one reader serves many files and threads."""

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        """The safe schema that the file suggests for its source; of a text file, its first block decides.

        A column without a value has type null.

        Raises:
            EmptyFile: the file is empty.
            UnreadableFile: the file cannot be read, or exceeds the limits of the reader.
            SchemaError: a column has a type without a form in Spark.
        """
        ...

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 8 * MIB,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        """Yields the rows from an offset, in file order, with exactly the columns of the schema.

        Args:
            file: the object; it stays usable afterwards, and fetched bytes are not fetched again.
            schema: the safe schema of the source.
            offset: the first wanted row, and a place at or before it.
            piece_bytes: the wanted size of a piece, in bytes; a smaller file is one piece, an empty file none.
            columns: the columns in the tables, at least one of the schema; as far as the format allows, only these
                are fetched.  None for all.
            every_column: True if `Rows.others` must have every extra column of the records, with its type; otherwise
                it has the columns that are cheap to find.

        Raises:
            UnreadableFile: the next piece cannot be read within the limits of the reader; earlier pieces are valid.
        """
        ...


class CustomFormat(Protocol):
    """A format of a third party: a frozen dataclass whose fields are its options, and survive JSON.

    With an entry point of the group `slackwater.formats`, named as the format and leading to the class, a source can be
    declared by that name, and the files that were read by it can be verified.
    """

    @property
    def name(self) -> str:
        """The name of the entry point."""
        ...

    def reader(self, limits: ReadLimits) -> FileReader:
        """The reader of its files."""
        ...
