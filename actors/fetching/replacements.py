"""Files whose rows come in place of others: stored piece by piece, whatever epochs pass, and shown in one."""

from __future__ import annotations

from collections import deque

from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.read_buffers import Piece
from actors.files import PathKey


class Replacements:
    """Those of one fetch actor that are being stored or have come to their end.

    `corrected` has the objects that are corrected in the open epoch.  No other row of them comes in it: the rows of an
    epoch are in the views before its corrections.
    """

    def __init__(self) -> None:
        self.corrected: set[PathKey] = set()
        self._at_end: deque[FileProgress] = deque()

    def __bool__(self) -> bool:
        return bool(self._at_end)

    def add(self, piece: Piece) -> bool:
        """Takes a piece that was read.  Returns whether it has rows to store before the file goes on."""
        progress = piece.progress
        if piece.rows is not None:
            progress.bad += piece.rows.bad
        progress.ending = piece.ending
        return piece.table is not None

    def goes_on(self, progress: FileProgress) -> bool:
        """Everything that was read is stored.  Returns whether there is more to read."""
        if progress.ending is None:
            return True
        self._at_end.append(progress)
        return False

    def drop(self, progress: FileProgress) -> None:
        """Nothing comes of a file, if it is here."""
        if progress in self._at_end:
            self._at_end.remove(progress)

    def take(self) -> tuple[FileProgress, Ending]:
        """The file that came to its end first, and how it ended; one that is done is corrected in this epoch."""
        progress = self._at_end.popleft()
        assert progress.ending is not None, "it has come to its end"
        if progress.ending.status == "done":
            self.corrected.add(progress.path_key)
        return progress, progress.ending
