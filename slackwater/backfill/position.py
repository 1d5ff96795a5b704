"""How far a history has been read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate


class HistoryPosition:
    """A part of the history, and a row in it; the parts come one after the other.

    Args:
        sizes: rows of each part.
        progress: a position as `to_json` gave it; None for the start.
    """

    def __init__(self, sizes: Iterable[int], progress: str | None) -> None:
        self._ends: list[int] = [0, *accumulate(sizes)]
        begin: tuple[int, int] = json.loads(progress) if progress else (0, 0)
        self.part, self.row = begin

    @property
    def is_at_end(self) -> bool:
        """Whether no part is left."""
        return self.part + 1 >= len(self._ends)

    @property
    def fraction(self) -> float:
        """How much of all rows lies before, from 0 to 1."""
        return (self._ends[self.part] + self.row) / self._ends[-1] if self._ends[-1] else 1.0

    def go_to(self, row: int) -> None:
        """The rows before `row` of this part are read."""
        self.row = row

    def go_to_next_part(self) -> None:
        """Nothing more comes of this part."""
        self.part, self.row = self.part + 1, 0

    def to_json(self) -> str:
        """The position as a record keeps it."""
        return json.dumps((self.part, self.row))
