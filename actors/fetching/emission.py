"""Emission: rows leave the buffers as blocks, and the offsets of their files move with them."""

from __future__ import annotations

from actors.fetching.file_versions import FileVersions
from actors.fetching.instructions import EmitBlock, FetchInstruction
from actors.fetching.open_epoch import OpenEpoch
from actors.fetching.read_buffers import Piece, ReadBuffers
from actors.fetching.schema_reports import UnmatchedColumns


class Emission:
    """The way of one fetch actor's rows into the open epoch.

    Args:
        buffers: rows that were read.
        files: the versions, whose offsets move or which end.
        unmatched: columns that files and their sources do not share.
    """

    def __init__(
        self, *, epoch: OpenEpoch, buffers: ReadBuffers, files: FileVersions, unmatched: UnmatchedColumns
    ) -> None:
        self._epoch, self._buffers, self._files, self._unmatched = epoch, buffers, files, unmatched

    def emit(self, now_s: float, *, flush: bool) -> list[FetchInstruction]:
        """Emits full blocks, and with `flush` the rest, as far as credit and limits allow.

        Args:
            now_s: time of the monotonic clock.
            flush: whether no further rows will join those in the buffers.
        """
        instructions: list[FetchInstruction] = []
        for source, pieces, nbytes in self._buffers.take(now_s, self._epoch.files_left, flush=flush):
            if filled := tuple(piece for piece in pieces if piece.table is not None):
                self._epoch.unsealed_bytes += nbytes
                instructions.append(EmitBlock(source, filled, nbytes, self._epoch.number))
            for piece in pieces:
                self._advance(piece)
        return instructions

    def _advance(self, piece: Piece) -> None:
        """Moves the offset of a file behind the rows of a piece, or ends the file."""
        epoch = self._epoch
        if piece.rows is not None:
            epoch.rows += self._files.queue.advance(piece.progress, piece.rows, epoch.number)
            self._unmatched.note(piece.progress.file, piece.rows, epoch.number)
        if piece.ending is not None:
            self._files.finish(piece.progress, piece.ending, epoch.number)
            epoch.files += 1
        epoch.activity += 1
