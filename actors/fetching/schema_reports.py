"""Reports on schemas: proposals for sources without one, and columns that files and a schema do not share."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from actors.fetching.file_progress import FileProgress
from actors.files import FileVersion
from actors.protocol.instructions import ProposeSchema
from actors.rows import Rows
from state.tables.records import UnmatchedColumn


class SchemaProposals:
    """Schemas of files that were sent ahead, for the coordinator to decide the schema of their source.

    Attributes:
        samples: source → number of files sent ahead so far, to all fetch actors, as far as this one has heard.
    """

    def __init__(self) -> None:
        self.samples: dict[str, int] = {}

    def learn(self, samples: Mapping[str, int]) -> None:
        """Takes the larger numbers of another fetch actor."""
        for source, sample in samples.items():
            self.samples[source] = max(sample, self.samples.get(source, 0))

    def propose(self, progress: FileProgress, schema: pa.Schema | None) -> list[ProposeSchema]:
        """Proposes the schema of a file, once, wherever it is read; None for a file that has ended without one."""
        if progress.has_proposed:
            return []
        progress.has_proposed = True
        file = progress.file
        return [ProposeSchema(file.source, file.path, schema, self.samples.get(file.source, 0))]


class UnmatchedColumns:
    """Columns that files have and the schema of their source does not, the other way round, or by another name.

    Each is reported once.
    """

    def __init__(self) -> None:
        self._new: list[UnmatchedColumn] = []
        self._reported: set[tuple[str, str, bool, str | None]] = set()

    def note(self, file: FileVersion, rows: Rows, epoch: int) -> None:
        """Notes the columns of rows that come in an epoch."""
        for column in rows.others:
            self._note(file, column.name, epoch)
        for name in rows.missing:
            self._note(file, name, epoch, is_missing=True)
        left_out = {column.name for column in rows.others}
        for was, name in rows.renamed:
            if name not in left_out:
                self._note(file, name, epoch, was=was)

    def _note(
        self, file: FileVersion, column: str, epoch: int, *, is_missing: bool = False, was: str | None = None
    ) -> None:
        key = file.source, column, is_missing, was
        if key not in self._reported:
            self._reported.add(key)
            self._new.append(UnmatchedColumn(file.source, column, file.path, epoch, is_missing, was))

    def take(self) -> tuple[UnmatchedColumn, ...]:
        """The columns that were not reported yet."""
        new, self._new = tuple(self._new), []
        return new
