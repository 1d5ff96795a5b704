"""Which files a fetch actor is reading, and which it reads on or opens next: open ones before those that are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Set

from actors.fetching.file_progress import FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.instructions import FetchInstruction as Instruction
from actors.fetching.instructions import InferSchema, ReadPiece
from actors.fetching.limits import FetchLimits
from actors.files import FileKey, PathKey
from actors.settings import FetchSettings

_BUFFERED_PIECES = 4


class ReadScheduler:
    """The files that are being read, those that are begun and are not just now, and behind them the queue.

    Files of vnodes that are about to move are not opened.  What is open of them is read to its end, or with
    `rest_moving` only to the end of its piece, and then stays where it is.

    Args:
        settings: how much is read at once.
        limits: how much in a second.
        queue: the files of this fetch actor.
        decided: the sources whose schema is decided; those of others are opened wherever they go.
        corrected: objects that are held back until the next epoch.

    Only `admitted` versions are read; None for all.
    """

    def __init__(
        self,
        *,
        settings: FetchSettings,
        limits: FetchLimits,
        queue: FileQueue,
        decided: Set[str],
        corrected: Set[PathKey],
    ) -> None:
        self._settings, self._limits = settings, limits
        self._queue, self._decided, self._corrected = queue, decided, corrected
        self._active: dict[FileKey, int] = {}
        self._open: deque[FileProgress] = deque()
        self._delayed: list[tuple[float, FileProgress]] = []
        self._undecided: dict[FileKey, FileProgress] = {}
        self._moving: Set[int] = frozenset()
        self._rest_moving = False
        self._abandoned: set[FileKey] = set()
        self.admitted: Container[FileKey] | None = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether anything is being read or stored."""
        return bool(self._active)

    @property
    def is_waiting(self) -> bool:
        """Whether there are files that could be read on or opened."""
        return bool(self._open or self._queue.waiting)

    def start(self, now_s: float, buffered_bytes: int) -> list[Instruction]:
        """Starts reads while there is room."""
        instructions: list[Instruction] = []
        piece_bytes = self._settings.piece_bytes
        room = _BUFFERED_PIECES * piece_bytes - buffered_bytes - sum(self._active.values())
        while len(self._active) < self._settings.concurrency and room > 0 and not self._limits.read.wait_s(now_s):
            if (progress := self._next(now_s)) is None:
                break
            nbytes = self._active[progress.key] = min(progress.file.size, piece_bytes)
            self._limits.read.take(nbytes)
            room -= nbytes
            if progress.file.source in self._decided:
                instructions.append(ReadPiece(progress.file, progress.read_to))
            else:
                instructions.append(InferSchema(progress.file))
        return instructions

    def store(self, progress: FileProgress, nbytes: int) -> None:
        """What was read of a file is being stored: it has its place."""
        self._active[progress.key] = nbytes

    def end(self, progress: FileProgress, bytes_read: int) -> None:
        """A piece has been read, at this cost."""
        self._limits.read.take(bytes_read - self._active.pop(progress.key))

    def stored(self, progress: FileProgress) -> None:
        """What was being stored is."""
        del self._active[progress.key]

    def read_on(self, progress: FileProgress) -> None:
        """A file is not at its end."""
        self._open.append(progress)

    def retry_at(self, progress: FileProgress, at_s: float) -> None:
        """A file is read on from a time on."""
        self._delayed.append((at_s, progress))

    def await_schema(self, progress: FileProgress) -> None:
        """A file is read on when the schema of its source is decided, or has got its columns."""
        self._undecided[progress.key] = progress

    def on_schema(self, source: str) -> None:
        """A schema is decided, or has got columns."""
        for key in [key for key in self._undecided if key[0] == source]:
            progress = self._undecided.pop(key)
            if not self._queue.put_back(progress):
                self._open.append(progress)
        self._set_aside()

    def on_time(self, now_s: float) -> None:
        """Those whose time has come are read on."""
        self._open.extend(progress for at_s, progress in self._delayed if at_s <= now_s)
        self._delayed = [each for each in self._delayed if each[0] > now_s]

    @property
    def times_s(self) -> list[float]:
        """When files are to be read on."""
        return [at_s for at_s, _ in self._delayed]

    def drop(self, progress: FileProgress) -> bool:
        """Nothing comes of a file.  Returns whether an answer about it is still to come."""
        if progress in self._open:
            self._open.remove(progress)
        self._delayed = [each for each in self._delayed if each[1] is not progress]
        self._undecided.pop(progress.key, None)
        if progress.key in self._active:
            self._abandoned.add(progress.key)
        return progress.key in self._active

    def is_dropped(self, key: FileKey) -> bool:
        """Whether an answer is about what was dropped; with that it has come."""
        if key not in self._abandoned:
            return False
        self._abandoned.discard(key)
        del self._active[key]
        return True

    # -- vnodes that move ------------------------------------------------------------------------------------------

    def move(self, vnodes: Set[int], *, rest: bool) -> None:
        """These vnodes are about to move; no vnodes: those that were have moved."""
        self._moving, self._rest_moving = vnodes, rest
        self._set_aside()

    @property
    def active(self) -> Container[FileKey]:
        """The files of which something is being read or stored."""
        return self._active.keys()

    @property
    def may_move(self) -> bool:
        """Whether no file of a moving vnode would have to be read again somewhere else."""
        begun = self._queue.begun.values()
        return all(not self._moves(each) or self._is_at_rest(each) for each in begun)

    def _is_at_rest(self, progress: FileProgress) -> bool:
        if progress.key in self._active or progress.key in self._undecided:
            return False
        if progress.replaces:
            return self._rest_moving or progress.ending is not None
        return self._rest_moving and progress.is_reading and progress.read_to.row == progress.row_offset

    def _set_aside(self) -> None:
        self._queue.set_aside(self._stays if self._moving else None)

    def _stays(self, progress: FileProgress) -> bool:
        return not self._moves(progress) or progress.file.source not in self._decided

    def _moves(self, progress: FileProgress) -> bool:
        return self._queue.vnode_of(progress.path_key) in self._moving

    # -- inside ----------------------------------------------------------------------------------------------------

    def _next(self, now_s: float) -> FileProgress | None:
        """The file that is read on or opened next."""
        if (progress := self._pop_open()) is not None:
            return progress
        if self._limits.opened.wait_s(now_s):
            return None
        may_be_read = None if self._may_all_be_read else self._may_be_read
        if (progress := self._queue.waiting.pop(self._decided, may_be_read)) is not None:
            self._limits.opened.take(1)
            self._queue.begin(progress)
        return progress

    def _pop_open(self) -> FileProgress | None:
        if self._may_all_be_read:
            return self._open.popleft() if self._open else None
        progress = next(filter(self._may_be_read, self._open), None)
        if progress is not None:
            self._open.remove(progress)
        return progress

    @property
    def _may_all_be_read(self) -> bool:
        return self.admitted is None and not self._corrected and not self._abandoned and not self._rest_moving

    def _may_be_read(self, progress: FileProgress) -> bool:
        if progress.path_key in self._corrected or progress.key in self._abandoned:
            return False
        if self._rest_moving and not self._stays(progress):
            return False
        return self.admitted is None or progress.key in self.admitted
