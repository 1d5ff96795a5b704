"""The rows of all sources that were read and wait to be emitted, as far as limits and credit let them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from actors.exchange.edge import Outlet
from actors.fetching.fetch_limits import FetchLimits
from actors.fetching.file_progress import FileProgress
from actors.fetching.read_buffer import Piece, ReadBuffer


class ReadBuffers:
    """One buffer for each source.

    Args:
        block_bytes: rows leave in blocks of about this size.
        limits: how many rows may leave in a second.
        outlet: its credit decides what may leave.
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
        """Whether rows wait that would be a block."""
        return any(buffer.nbytes >= self._block_bytes for buffer in self._buffers.values())

    def add(self, piece: Piece) -> None:
        self._buffers.setdefault(piece.progress.file.source, ReadBuffer()).add(piece)

    def drop(self, files: Set[FileProgress]) -> None:
        """Takes the pieces of some files out again."""
        for buffer in self._buffers.values():
            buffer.drop(files)

    def take(
        self, now_s: float, files_left: Callable[[], int], *, flush: bool
    ) -> Iterator[tuple[str, list[Piece], int]]:
        """Full blocks, and with `flush` also the rest.

        Args:
            now_s: of the monotonic clock.
            files_left: how many more files may end; is asked for each block.
            flush: whether nothing more will join.

        Yields:
            Source, pieces, and their bytes, for which credit is taken.
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
