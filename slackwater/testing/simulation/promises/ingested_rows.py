"""Rows of files that were ingested."""

from __future__ import annotations

from dataclasses import dataclass

from actors.files import FileKey
from slackwater.testing.simulation.world.file_rows import RowsByFile


@dataclass(frozen=True)
class IngestedRows:
    """The ingested rows at one version of the store.

    Args:
        rows: all rows that were ever ingested.
        removed: the file versions whose rows were removed from the views since.
    """

    rows: RowsByFile
    removed: frozenset[FileKey] = frozenset()

    @property
    def in_views(self) -> RowsByFile:
        """The rows that the views must have."""
        return {file: rows for file, rows in self.rows.items() if file not in self.removed}

    def count_since(self, before: IngestedRows, read_again: frozenset[FileKey] = frozenset()) -> int:
        """Number of rows that were ingested since an earlier version.

        A removed file that is back counts again, and so does a file that was read again.
        """
        again = (before.removed - self.removed) | read_again
        return sum(
            len(rows) - (0 if file in again else len(before.rows.get(file, ()))) for file, rows in self.rows.items()
        )
