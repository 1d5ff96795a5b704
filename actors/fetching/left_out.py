"""The columns of files that their sources do not have, each told once."""

from __future__ import annotations

from actors.files import FileVersion
from actors.rows import Rows
from state.tables.records import LeftOutColumn


class LeftOut:
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
