"""Rows that were read and wait to be emitted, in the order they were read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pyarrow as pa

from actors.file_progress import Ending, FileProgress


@dataclass(frozen=True)
class Piece:
    """Some rows of one file, up to row `end_row` (exclusive), and its ending if these are the last."""

    progress: FileProgress
    table: pa.Table | None
    end_row: int
    ending: Ending | None = None

    @property
    def nbytes(self) -> int:
        return self.table.nbytes if self.table is not None else 0


class ReadBuffer:
    """The pieces of one source.  Small pieces leave together as one block, in `take`."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self.nbytes = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.nbytes += piece.nbytes

    def next_bytes(self, block_bytes: int) -> int:
        """The bytes that `take(block_bytes)` would give."""
        total = 0
        for piece in self._pieces:
            if total and total + piece.nbytes > block_bytes:
                break
            total += piece.nbytes
        return total

    def take(self, block_bytes: int) -> list[Piece]:
        """The next pieces, together at most `block_bytes`, at least one."""
        taken: list[Piece] = []
        total = 0
        while self._pieces and (not total or total + self._pieces[0].nbytes <= block_bytes):
            piece = self._pieces.popleft()
            total += piece.nbytes
            taken.append(piece)
        self.nbytes -= total
        return taken
