"""Buffers of rows that were read and not emitted yet, one for each source."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.limits import FetchLimits
from actors.rows import Rows


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one file, and the end of the file if they are the last."""

    progress: FileProgress
    rows: Rows | None
    ending: Ending | None = None

    @cached_property
    def table(self) -> pa.Table | None:
        """The rows that fit the schema; None if no row does."""
        return self.rows.table if self.rows is not None and self.rows.table.num_rows else None

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes if self.rows is not None else 0


class ReadBuffer:
    """Pieces of one source.  `take` puts small ones together into one block."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self.nbytes = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.nbytes += piece.nbytes

    def drop(self, files: Set[FileProgress]) -> None:
        """Removes the pieces of some files."""
        self._pieces = deque(piece for piece in self._pieces if piece.progress not in files)
        self.nbytes = sum(piece.nbytes for piece in self._pieces)

    def next_bytes(self, block_bytes: int) -> int:
        """Bytes of the pieces that `take(block_bytes)` would return."""
        return sum(piece.nbytes for piece in self._next(block_bytes))

    def take(self, block_bytes: int, most_files: int) -> list[Piece]:
        """The next pieces, together at most `block_bytes`, at least one, in which at most `most_files` end."""
        taken: list[Piece] = []
        for piece in self._next(block_bytes):
            if not most_files:
                break
            most_files -= piece.ending is not None
            taken.append(piece)
        for piece in taken:
            self._pieces.popleft()
            self.nbytes -= piece.nbytes
        return taken

    def _next(self, block_bytes: int) -> Iterator[Piece]:
        """Yields the next pieces that fit one block: their tables have the same columns."""
        total = 0
        columns: list[str] | None = None
        for piece in self._pieces:
            if total and total + piece.nbytes > block_bytes:
                return
            if piece.table is not None:
                names = piece.table.column_names
                if columns is not None and names != columns:
                    return
                columns = names
            total += piece.nbytes
            yield piece


class ReadBuffers:
    """The buffers of all sources of one fetch actor.

    Args:
        block_bytes: approximate size of a block.
        limits: limits the rows that leave in a second.
        outlet: its credit limits the bytes that leave.
    """

    def __init__(self, block_bytes: int, limits: FetchLimits, outlet: Outlet) -> None:
        self._block_bytes, self._limits, self._outlet = block_bytes, limits, outlet
        self._buffers: dict[str, ReadBuffer] = {}

    def __bool__(self) -> bool:
        return any(self._buffers.values())

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())

    @property
    def has_full_block(self) -> bool:
        """True if the rows of a source fill a block."""
        return any(buffer.nbytes >= self._block_bytes for buffer in self._buffers.values())

    def add(self, piece: Piece) -> None:
        self._buffers.setdefault(piece.progress.file.source, ReadBuffer()).add(piece)

    def drop(self, files: Set[FileProgress]) -> None:
        """Removes the pieces of some files."""
        for buffer in self._buffers.values():
            buffer.drop(files)

    def take(
        self, now_s: float, files_left: Callable[[], int], *, flush: bool
    ) -> Iterator[tuple[str, list[Piece], int]]:
        """Full blocks, and with `flush` also the rest.

        Args:
            now_s: time of the monotonic clock.
            files_left: number of files that may still end; called for each block.
            flush: whether no further rows will join.

        Yields:
            Source, pieces, and their bytes, for which credit has been taken.
        """
        for source, buffer in self._buffers.items():
            while buffer and (flush or buffer.nbytes >= self._block_bytes):
                if not files_left() or self._limits.emitted.wait_s(now_s):
                    break
                if not self._outlet.may_send(buffer.next_bytes(self._block_bytes)):
                    break
                pieces = buffer.take(self._block_bytes, files_left())
                nbytes = sum(piece.nbytes for piece in pieces if piece.table is not None)
                self._outlet.reserve(nbytes)
                self._limits.emitted.take(sum(piece.table.num_rows for piece in pieces if piece.table is not None))
                yield source, pieces, nbytes
