"""Replacements: files whose rows come in place of earlier ones, stored piece by piece and shown in one epoch."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from actors.fetching.file_progress import FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.instructions import FetchInstruction, StagePiece
from actors.fetching.open_epoch import OpenEpoch
from actors.fetching.read_buffers import Piece
from actors.fetching.read_scheduler import ReadScheduler
from actors.fetching.schema_reports import UnmatchedColumns
from actors.files import ForgottenFile
from actors.protocol.blocks import Correction, StoredBlock
from actors.protocol.instructions import Send
from actors.rows import highest


class Replacements:
    """The replacing files of one fetch actor: a piece is read, staged, and only then the next one is read.

    Args:
        epoch: the open epoch, whose corrections begin here.
        files: the versions, of which these end here.
        reads: reads a file on when its last piece is staged.
        unmatched: columns that files and their sources do not share.
    """

    def __init__(
        self, *, epoch: OpenEpoch, files: FileVersions, reads: ReadScheduler, unmatched: UnmatchedColumns
    ) -> None:
        self._epoch, self._files, self._reads, self._unmatched = epoch, files, reads, unmatched
        self._at_end: deque[FileProgress] = deque()

    def add(self, piece: Piece) -> list[FetchInstruction]:
        """Takes a piece, or the end, of a file; rows are staged before the file is read on."""
        progress = piece.progress
        if piece.rows is not None:
            self._unmatched.note(progress.file, piece.rows, self._epoch.number)
            progress.bad += piece.rows.bad
            progress.event_high = highest(progress.event_high, piece.rows.event_high)
        progress.ending = piece.ending
        if piece.ending is not None:
            self._files.queue.end_reading(progress)
        if piece.table is None:
            self._continue(progress)
            return []
        self._reads.store(progress, piece.nbytes)
        return [StagePiece(piece, self._epoch.number)]

    def on_staged(self, progress: FileProgress, stored: StoredBlock) -> None:
        """Notes that the rows of the last piece are durable."""
        self._reads.stored(progress)
        progress.staged.append(stored)
        self._continue(progress)

    def take_over(self, progress: FileProgress) -> None:
        """Takes a file that another fetch actor has read and stored to its end."""
        self._at_end.append(progress)

    def correct(self) -> list[FetchInstruction]:
        """Brings the files that are stored to their end into the open epoch, as far as files may end in it."""
        instructions: list[FetchInstruction] = []
        while self._at_end and self._epoch.files_left():
            progress = self._at_end.popleft()
            assert progress.ending is not None, "it is at its end"
            if progress.ending.status == "done":
                self._epoch.corrected.add(progress.path_key)
                self._epoch.rows += self._files.queue.advance_whole(progress, self._epoch.number)
                instructions.append(Send(Correction(*progress.key, tuple(progress.staged))))
            self._files.finish(progress, progress.ending, self._epoch.number)
            self._epoch.files += 1
            self._epoch.activity += 1
        return instructions

    def forget(self, files: Collection[ForgottenFile]) -> list[FetchInstruction]:
        """Takes the rows of objects out of the views in the open epoch."""
        self._epoch.corrected.update((file.source, file.path) for file in files)
        return [Send(Correction(file.source, file.path)) for file in files]

    def drop(self, progress: FileProgress) -> None:
        """Removes a file, if it is here."""
        if progress in self._at_end:
            self._at_end.remove(progress)

    def _continue(self, progress: FileProgress) -> None:
        """Reads a file on, all of whose rows so far are staged, or lets it come into an epoch at its end."""
        if progress.ending is None:
            self._reads.read_on(progress)
        else:
            self._at_end.append(progress)
