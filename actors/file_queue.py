"""The files that a fetch actor owns and has not finished, and what it writes about them into the store.

One version of an object is read.  A later one is noted (`changed_epoch`), and is read when the earlier one has ended,
if that ended without a row, or if its source appends what has changed: an empty, unreadable or vanished version never
blocks its successor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from actors.file_progress import Ending, FileProgress
from actors.messages import ChangedFile, FileKey, FileVersion, GoneFile, PathKey, RetriedFile, Vanished
from actors.rows import BadRecord, Rows
from actors.source_tally import SourceTally
from state.delta import Delta, DeltaBuilder
from state.errors import ProtocolError
from state.keys import encode_key
from state.vnode import vnode_of

_REPLACED = "it was another version when it was to be read"


class FileQueue:
    """Waiting and open files of one fetch actor.

    Args:
        unfinished: what the `queue` table held at the last commit.
        without_rows: versions in the ledger of which no row was ingested.
        appending: sources whose later versions are read whatever became of the earlier ones.
    """

    def __init__(
        self, unfinished: Iterable[FileProgress], without_rows: Iterable[FileKey], appending: Iterable[str] = ()
    ) -> None:
        self.waiting: deque[FileProgress] = deque()
        self.tallies: dict[str, SourceTally] = {}
        self._files: dict[FileKey, FileProgress] = {}
        self._successors: dict[tuple[str, str], FileProgress] = {}
        self._without_rows, self._appending = set(without_rows), frozenset(appending)
        self._touched: dict[FileKey, FileProgress] = {}
        self._vanished: list[Vanished] = []
        self._delta = DeltaBuilder()
        current: dict[tuple[str, str], FileKey] = {}
        for progress in sorted(unfinished, key=FileProgress.reading_order):
            path = progress.key[:2]
            if path in current:
                self._successors[path] = progress
            else:
                current[path] = progress.key
                self._enqueue(progress)

    def get(self, file: FileVersion) -> FileProgress:
        return self._files[file.source, file.path, file.version]

    def add(self, file: FileVersion, epoch: int) -> None:
        """A new file from the listing."""
        self._without_rows.discard((file.source, file.path, file.version))
        self._enqueue(self._touch(FileProgress(file, listed_epoch=epoch)))

    def retry(self, files: Iterable[RetriedFile]) -> None:
        """Quarantined versions move from the ledger back into the queue, to be read on where they ended.

        One of a path that is being read in another version stays where it is.
        """
        unfinished = {key[:2] for key in self._files}
        for each in files:
            if (each.file.source, each.file.path) not in unfinished:
                self._retry(each)

    def _retry(self, retried: RetriedFile) -> None:
        progress = FileProgress.of_retried(retried)
        self._without_rows.discard(progress.key)
        self._delta.delete("ledger", progress.state_key, progress.vnode)
        self._enqueue(self._touch(progress))
        self._tally(retried.file.source).quarantined -= 1

    def is_without_rows(self, changed: ChangedFile) -> bool:
        """Whether no row of the version that was handed on was ingested, and none will be."""
        return (changed.now.source, changed.path, changed.version) in self._without_rows

    def change(self, changed: ChangedFile, epoch: int) -> None:
        """An object has another version than the one that was handed on."""
        source, path = changed.now.source, changed.now.path
        key = (source, path, changed.version)
        successor = self._successors.get((source, path))
        if key in self._without_rows:
            self._without_rows.discard(key)
            self.add(changed.now, epoch)
        elif key in self._files or (successor is not None and successor.key == key):
            if successor is not None:
                self._drop(self._successors.pop((source, path)))
            later = FileProgress(changed.now, listed_epoch=epoch)
            if later.key not in self._files:
                self._successors[source, path] = self._touch(later)
        else:
            self._delta.patch("ledger", encode_key(*key), vnode_of(path), changed_epoch=epoch)
            if source in self._appending:
                self.add(changed.now, epoch)

    def note_gone(self, files: Iterable[GoneFile], epoch: int) -> None:
        """Finished versions whose objects are not there any more; one that is read again will say so at its end."""
        for file in files:
            key = file.source, file.path, file.version
            if key in self._files:
                self._files[key].gone_epoch = epoch
            else:
                self._delta.patch("ledger", encode_key(*key), vnode_of(file.path), gone_epoch=epoch)

    def account(self, file: FileVersion, *, requests: int, bytes_read: int) -> FileProgress:
        """Reading a file has cost something."""
        progress = self._touch(self.get(file))
        progress.requests += requests
        progress.bytes_read += bytes_read
        tally = self._tally(file.source)
        tally.requests += requests
        tally.bytes += bytes_read
        return progress

    def advance(self, progress: FileProgress, rows: Rows, epoch: int) -> int:
        """These rows are emitted, and those that do not fit are quarantined.  Returns how many do fit."""
        if rows.num_rows and progress.first_epoch is None:
            progress.first_epoch = epoch
        progress.row_offset, progress.anchor = rows.end_row, rows.anchor
        progress.rows_bad += len(rows.bad)
        self.quarantine(progress, rows.bad)
        self._touch(progress)
        good = rows.num_rows - len(rows.bad)
        tally = self._tally(progress.file.source)
        tally.rows += good
        tally.rows_bad += len(rows.bad)
        return good

    def quarantine(self, progress: FileProgress, records: Iterable[BadRecord]) -> None:
        """Keeps bad records, each with its position."""
        for bad in records:
            self._delta.put("quarantine", progress.quarantine_key(bad), progress.vnode, **progress.quarantine_row(bad))

    def finish(self, progress: FileProgress, ending: Ending, epoch: int) -> None:
        """The file ends: its row moves from `queue` to `ledger`."""
        del self._files[progress.key]
        self._drop(progress)
        successor = self._successors.pop(progress.key[:2], None)
        changed_epoch = successor.listed_epoch if successor is not None else None
        row = progress.ledger_row(ending, done_epoch=epoch, changed_epoch=changed_epoch)
        self._delta.put("ledger", progress.state_key, progress.vnode, **row)
        self._tally(progress.file.source).finish(ending.status)
        if successor is not None and (not progress.row_offset or progress.file.source in self._appending):
            self._enqueue(successor)
        elif successor is not None:
            self._drop(successor)
        if not progress.row_offset and successor is None:
            self._without_rows.add(progress.key)
            if ending.status == "vanished":
                self._vanished.append(Vanished(*progress.key))

    def give_up(self, reasons: Mapping[PathKey, str], epoch: int) -> int:
        """Ends the waiting files of these paths as quarantined; of several versions only the last is there.

        Returns how many.
        """
        given_up = 0
        while (progress := next((each for each in self.waiting if each.key[:2] in reasons), None)) is not None:
            self.waiting.remove(progress)
            path = progress.key[:2]
            ending = Ending("vanished", _REPLACED) if path in self._successors else Ending("quarantined", reasons[path])
            # What follows it waits from here on, and is next.
            self.finish(progress, ending, epoch)
            given_up += 1
        return given_up

    def seal(self) -> Delta:
        """Everything that changed since the last seal."""
        for progress in self._touched.values():
            self._delta.put("queue", progress.state_key, progress.vnode, **progress.queue_row())
            progress.stored = True
        self._touched = {}
        return self._delta.build()

    def take_vanished(self) -> tuple[Vanished, ...]:
        """The versions that have vanished without a row since the last call."""
        vanished, self._vanished = tuple(self._vanished), []
        return vanished

    def unfinished_since(self) -> dict[str, int]:
        """Source → the epoch in which the oldest of its unfinished files was listed."""
        since: dict[str, int] = {}
        for each in (*self._files.values(), *self._successors.values()):
            source = each.file.source
            since[source] = min(each.listed_epoch, since.get(source, each.listed_epoch))
        return since

    def _enqueue(self, progress: FileProgress) -> None:
        if progress.key in self._files:
            raise ProtocolError(f"{progress.file.path} of {progress.file.source} was sent twice in one version")
        self._files[progress.key] = progress
        self.waiting.append(progress)
        self._tally(progress.file.source).unfinished += 1

    def _touch(self, progress: FileProgress) -> FileProgress:
        self._touched[progress.key] = progress
        return progress

    def _drop(self, progress: FileProgress) -> None:
        self._touched.pop(progress.key, None)
        if progress.stored:
            self._delta.delete("queue", progress.state_key, progress.vnode)

    def _tally(self, source: str) -> SourceTally:
        return self.tallies.setdefault(source, SourceTally())
