"""Position in the history of a backfill: a part, and a row in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate


class HistoryPosition:
    """The next row to read; the parts of the history, files or fragments, follow one another.

    Args:
        sizes: the number of rows of each part.
        progress: a position from `to_json`; None for the start.
    """

    def __init__(self, sizes: Iterable[int], progress: str | None) -> None:
        self._ends: list[int] = [0, *accumulate(sizes)]
        begin: tuple[int, int] = json.loads(progress) if progress else (0, 0)
        self.part, self.row = begin

    @property
    def is_at_end(self) -> bool:
        """True if no part is left."""
        return self.part + 1 >= len(self._ends)

    @property
    def fraction(self) -> float:
        """The share of the rows before the position, from 0 to 1."""
        return (self._ends[self.part] + self.row) / self._ends[-1] if self._ends[-1] else 1.0

    def go_to(self, row: int) -> None:
        """Moves to a row of this part."""
        self.row = row

    def go_to_next_part(self) -> None:
        """Moves to the first row of the next part."""
        self.part, self.row = self.part + 1, 0

    def to_json(self) -> str:
        """The position as a text for an epoch record."""
        return json.dumps((self.part, self.row))
