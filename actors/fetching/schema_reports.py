"""Reports of the columns that files show."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from actors.fetching.file_progress import FileProgress
from actors.files import FileVersion
from actors.protocol.instructions import ProposeSchema
from actors.rows import Rows
from state.errors import SchemaError
from state.tables.records import LeftOutColumn


class SchemaProposals:
    """The files of one fetch actor that are sent ahead to show the schema of their source.

    `samples` has source → how many were sent ahead so far, as far as is known here.
    """

    def __init__(self) -> None:
        self.samples: dict[str, int] = {}

    def learn(self, samples: Mapping[str, int]) -> None:
        """Another fetch actor knows this."""
        for source, sample in samples.items():
            self.samples[source] = max(sample, self.samples.get(source, 0))

    def show(self, progress: FileProgress, schema: pa.Schema | SchemaError | None) -> list[ProposeSchema]:
        """Proposes what a file shows, unless it has done so somewhere else already."""
        if progress.has_shown:
            return []
        progress.has_shown = True
        file = progress.file
        return [ProposeSchema(file.source, file.path, schema, self.samples.get(file.source, 0))]


class ExtraColumns:
    """What one fetch actor has seen of them."""

    def __init__(self) -> None:
        self._new: dict[tuple[str, str], LeftOutColumn] = {}
        self._told: set[tuple[str, str]] = set()

    def note(self, file: FileVersion, rows: Rows, epoch: int) -> None:
        """Rows of a file come in an epoch."""
        for column in rows.others:
            key = file.source, column.name
            if key not in self._told:
                self._told.add(key)
                self._new[key] = LeftOutColumn(file.source, column.name, file.path, epoch)

    def take(self) -> tuple[LeftOutColumn, ...]:
        """Those that were not told yet."""
        new, self._new = tuple(self._new.values()), {}
        return new
