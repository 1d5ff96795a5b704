"""What every format's reader does."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import pyarrow as pa

from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.settings import MIB, ReadLimits


class FileReader(Protocol):
    """Reads the files of one format.  Has no state: one reader serves many files and threads."""

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        """The safe schema that the file suggests for its source; text is judged by its first block.

        A column is of type null if no value of it is seen.

        Raises:
            EmptyFile: it is empty and suggests nothing.
            UnreadableFile: it cannot be read, or asks for more than the reader's limits.
            SchemaError: a column cannot be carried to Spark.
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
        """Yields the rows from an offset on, in file order, with exactly the columns of the schema.

        Args:
            file: stays usable afterwards; what it has fetched is not fetched again.
            schema: the safe schema of the source.
            offset: how many rows of the file to leave out, and what is known of where they end.
            piece_bytes: about how large a piece becomes; a file up to this size is one piece, an empty one none.
            columns: at least one of the schema's; only these are in the tables, and as far as the format allows only
                these are fetched.  None for all.
            every_column: whether `Rows.others` must have every column of the records, with its type; otherwise it has
                what a cheap look shows.

        Raises:
            UnreadableFile: at the piece that cannot be read within the reader's limits; the pieces before are valid.
        """
        ...


class CustomFormat(Protocol):
    """A format of somebody else's: a frozen dataclass whose fields are its options, and go to JSON and back.

    With an entry point of the group `slackwater.formats`, named as the format and leading to the class, a source can be
    declared by that name, and the files that were read by it can be verified.
    """

    @property
    def name(self) -> str:
        """As in the entry point."""
        ...

    def reader(self, limits: ReadLimits) -> FileReader:
        """What reads its files."""
        ...
