"""Scheduler of reads: open files first, then pending ones, while there is room and the limits allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence, Set

from actors.fetching.file_progress import FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.instructions import FetchInstruction, InferSchema, ReadFiles, ReadPiece
from actors.fetching.limits import FetchLimits
from actors.fetching.open_epoch import OpenEpoch
from actors.files import FileKey
from actors.settings import MIB, FetchSettings

_BUFFERED_PIECES = 4
_FIRST_REST_S, _LONGEST_REST_S = 0.5, 60.0
"""Pauses between two tries of a source that its store refuses: each is twice as long as the pause before."""
_SMALL_BYTES = 256 << 10
"""A file up to this size costs more to hand around than to read: many are one piece of work."""
_BATCH_FILES, _BATCH_BYTES = 64, MIB
_SMALL_AT_ONCE = 3 * _BATCH_FILES
"""One batch is decoded while another is fetched and a third one emitted; more would only hold a rescaling up."""


class ReadScheduler:
    """The files of one fetch actor that are being read, and behind them those to read next.

    Files of vnodes that are about to move are not opened.  Open files of them are read to their end, or with `rest`
    (see `move`) only to the end of their piece.

    Args:
        settings: limits on reads at the same time.
        limits: limits on reads in a second.
        decided: sources whose schema is decided; files of others are opened wherever their vnodes go.
        epoch: the open epoch: its corrected objects are read again from the next one on.
    """

    def __init__(
        self, *, settings: FetchSettings, limits: FetchLimits, queue: FileQueue, decided: Set[str], epoch: OpenEpoch
    ) -> None:
        self._settings, self._limits = settings, limits
        self._queue, self._decided, self._epoch = queue, decided, epoch
        self._active: dict[FileKey, int] = {}
        self._open: deque[FileProgress] = deque()
        self._delayed: list[tuple[float, FileProgress]] = []
        self._undecided: dict[FileKey, FileProgress] = {}
        self._moving: Set[int] = frozenset()
        self._rest_moving = False
        self._abandoned: set[FileKey] = set()
        self._rests: dict[str, float] = {}
        self._rests_until_s: dict[str, float] = {}

    @property
    def is_active(self) -> bool:
        """True while a piece is being read or staged."""
        return bool(self._active)

    @property
    def is_waiting(self) -> bool:
        """True if a file could be read on or opened, but for room and limits."""
        return bool(self._open or self._queue.pending)

    def start(self, now_s: float, buffered_bytes: int) -> list[FetchInstruction]:
        """Starts reads while there is room.

        Args:
            now_s: time of the monotonic clock.
            buffered_bytes: bytes that were read and not emitted.
        """
        instructions: list[FetchInstruction] = []
        batch: list[ReadPiece] = []
        room = _BUFFERED_PIECES * self._settings.piece_bytes - buffered_bytes - sum(self._active.values())
        small = sum(map(_is_small, self._active.values()))
        while room > 0 and self._has_slot(small) and not self._limits.read.wait_s(now_s):
            if (progress := self._next(now_s)) is None:
                break
            nbytes = self._active[progress.key] = min(progress.file.size, self._settings.piece_bytes)
            self._limits.read.take(nbytes)
            room -= nbytes
            small += _is_small(nbytes)
            if progress.file.source not in self._decided:
                instructions.append(InferSchema(progress.file))
            elif _is_small(nbytes):
                batch.append(ReadPiece(progress.file, progress.read_to))
            else:
                instructions.append(ReadPiece(progress.file, progress.read_to))
        return [*instructions, *_batched(batch)]

    def _has_slot(self, small: int) -> bool:
        """True if a further file may be read, small or large, beside so many small ones."""
        return small < _SMALL_AT_ONCE and len(self._active) - small < self._settings.concurrency

    def store(self, progress: FileProgress, nbytes: int) -> None:
        """Notes that a piece is being staged: its bytes take room until `stored`."""
        self._active[progress.key] = nbytes

    def end(self, progress: FileProgress, bytes_read: int) -> None:
        """Notes that a read has ended, well or not, at this cost."""
        self._limits.read.take(bytes_read - self._active.pop(progress.key))

    def stored(self, progress: FileProgress) -> None:
        """Notes that a piece is staged."""
        del self._active[progress.key]

    def read_on(self, progress: FileProgress) -> None:
        """Reads the next piece of a file, in its turn."""
        self._open.append(progress)

    def retry_at(self, progress: FileProgress, at_s: float) -> None:
        """Reads a file on at a time of the monotonic clock."""
        self._delayed.append((at_s, progress))

    def refuse(self, progress: FileProgress, now_s: float) -> None:
        """Notes that the store refuses the source of a file: none of its files is read for a while."""
        source = progress.file.source
        if source not in self._rests_until_s:  # reads that began before are refused, too
            self._rests[source] = min(_LONGEST_REST_S, 2 * self._rests.get(source, _FIRST_REST_S / 2))
            self._rests_until_s[source] = now_s + self._rests[source]
        self._open.append(progress)

    def grant(self, source: str) -> None:
        """Notes that a file of a source was read."""
        self._rests.pop(source, None)

    def await_schema(self, progress: FileProgress) -> None:
        """Reads a file on when the schema of its source is decided, or has its columns."""
        self._undecided[progress.key] = progress

    def on_schema(self, source: str) -> None:
        """Reads on the files that wait for the schema of a source."""
        for key in [key for key in self._undecided if key[0] == source]:
            progress = self._undecided.pop(key)
            if not self._queue.put_back(progress):
                self._open.append(progress)
        self._set_aside()

    def on_time(self, now_s: float) -> None:
        """Reads on the files whose time has come."""
        self._open.extend(progress for at_s, progress in self._delayed if at_s <= now_s)
        self._delayed = [each for each in self._delayed if each[0] > now_s]
        self._rests_until_s = {source: at_s for source, at_s in self._rests_until_s.items() if at_s > now_s}

    @property
    def times_s(self) -> list[float]:
        """Times at which files are read on."""
        return [*(at_s for at_s, _ in self._delayed), *self._rests_until_s.values()]

    def drop(self, progress: FileProgress) -> bool:
        """Gives a file up.  Returns whether an answer about it is still to come."""
        if progress in self._open:
            self._open.remove(progress)
        self._delayed = [each for each in self._delayed if each[1] is not progress]
        self._undecided.pop(progress.key, None)
        if progress.key in self._active:
            self._abandoned.add(progress.key)
        return progress.key in self._active

    def is_dropped(self, key: FileKey) -> bool:
        """True if an answer is about a file that was given up; it is the last one, and frees its room."""
        if key not in self._abandoned:
            return False
        self._abandoned.discard(key)
        del self._active[key]
        return True

    # -- vnodes that move ------------------------------------------------------------------------------------------

    def move(self, vnodes: Set[int], *, rest: bool) -> None:
        """Opens no further file of vnodes that are about to move; no vnodes: the move is over.

        Args:
            rest: whether open files of them stop at the end of their piece.
        """
        self._moving, self._rest_moving = vnodes, rest
        self._set_aside()

    @property
    def active(self) -> Container[FileKey]:
        """The files of which a piece is being read or staged."""
        return self._active.keys()

    @property
    def may_move(self) -> bool:
        """True if every row that was read of the moving vnodes is emitted or staged."""
        begun = self._queue.begun.values()
        return all(not self._moves(each) or self._is_at_rest(each) for each in begun)

    def _is_at_rest(self, progress: FileProgress) -> bool:
        if progress.key in self._active or progress.key in self._undecided:
            return False
        if progress.replaces:
            return self._rest_moving or progress.ending is not None
        return self._rest_moving and progress.is_reading and progress.read_to.row == progress.row_offset

    def _set_aside(self) -> None:
        self._queue.pending.set_aside(self._stays if self._moving else None)

    def _stays(self, progress: FileProgress) -> bool:
        return not self._moves(progress) or progress.file.source not in self._decided

    def _moves(self, progress: FileProgress) -> bool:
        return self._queue.vnode_of(progress.path_key) in self._moving

    # -- the next file ---------------------------------------------------------------------------------------------

    def _next(self, now_s: float) -> FileProgress | None:
        """The file to read on or to open; None if no file may be read now."""
        if (progress := self._pop_open()) is not None:
            return progress
        if self._limits.opened.wait_s(now_s):
            return None
        may_be_read = None if self._may_all_be_read else self._may_be_read
        if (progress := self._queue.pending.pop(self._decided, may_be_read)) is not None:
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
        may_all = self._epoch.admitted is None and not self._epoch.corrected
        return may_all and not self._abandoned and not self._rest_moving and not self._rests_until_s

    def _may_be_read(self, progress: FileProgress) -> bool:
        if progress.path_key in self._epoch.corrected or progress.key in self._abandoned:
            return False
        if progress.file.source in self._rests_until_s:
            return False
        if self._rest_moving and not self._stays(progress):
            return False
        return self._epoch.admitted is None or progress.key in self._epoch.admitted


def _is_small(nbytes: int) -> bool:
    return nbytes <= _SMALL_BYTES


def _batched(reads: Sequence[ReadPiece]) -> Iterator[FetchInstruction]:
    """Yields reads of small files as a few instructions; one that is alone stays as it is."""
    begin = nbytes = 0
    for end, read in enumerate(reads, start=1):
        nbytes += read.file.size
        if end == len(reads) or end - begin == _BATCH_FILES or nbytes >= _BATCH_BYTES:
            yield ReadFiles(tuple(reads[begin:end])) if end - begin > 1 else read
            begin, nbytes = end, 0
