"""The unfinished files of one fetch actor: pending, open, or read and not emitted yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from actors.fetching.file_progress import FileProgress, FileStatus
from actors.fetching.pending_files import PendingFiles
from actors.fetching.source_tally import SourceTally
from actors.fetching.state_changes import StateChanges
from actors.files import FileKey, FileVersion, PathKey, ReadingOrder
from actors.protocol.vnode_mapping import vnode_of_file
from actors.rows import Rows
from state.errors import ProtocolError


class FileQueue:
    """Files on their way from `pending` over `begun` to their end, and the counts of their sources.

    Attributes:
        pending: files that are not open yet.
        begun: files that were taken from `pending` and are not finished.
        tallies: source → its counts.

    Args:
        orders: source → the order in which its files are read, of the sources that have one.
        state: receives the rows of `queue` and `quarantine` that change.
    """

    def __init__(self, orders: Mapping[str, ReadingOrder], state: StateChanges) -> None:
        self._orders, self._state = orders, state
        self.pending = PendingFiles(orders)
        self.begun: dict[FileKey, FileProgress] = {}
        self.tallies: dict[str, SourceTally] = {}
        self._files: dict[FileKey, FileProgress] = {}

    def __iter__(self) -> Iterator[FileProgress]:
        return iter(self._files.values())

    def __contains__(self, key: FileKey) -> bool:
        return key in self._files

    def __getitem__(self, key: FileKey) -> FileProgress:
        return self._files[key]

    def get(self, file: FileVersion) -> FileProgress:
        """Progress of an unfinished file."""
        return self._files[file.source, file.path, file.version]

    def add(self, progress: FileProgress) -> None:
        """Adds a file that is to be opened.

        Raises:
            ProtocolError: the version is here already.
        """
        self._note(progress)
        self.pending.add(progress)

    def take_over(self, progress: FileProgress) -> None:
        """Adds a file of another fetch actor: a half-read one is opened before the others."""
        self._note(progress)
        if progress.ending is not None:
            self.begun[progress.key] = progress
        else:
            self.pending.add(progress, first=progress.has_begun)

    def begin(self, progress: FileProgress) -> None:
        """Notes that a file of `pending` is opened."""
        self.begun[progress.key] = progress
        self.tally(progress.file.source).begin_reading()
        progress.is_reading = True

    def put_back(self, progress: FileProgress) -> bool:
        """Makes a file pending again that was opened to infer a schema, if its source has an order."""
        if progress.file.source not in self._orders or progress.read_to.row:
            return False
        self.end_reading(progress)
        self.pending.end(progress)
        del self.begun[progress.key]
        self.pending.add(progress)
        return True

    def account(self, file: FileVersion, *, requests: int, bytes_read: int) -> FileProgress:
        """Adds the cost of one read to a file and to its source."""
        progress = self._state.touch(self.get(file))
        progress.requests += requests
        progress.bytes_read += bytes_read
        self.add_cost(file.source, requests=requests, bytes_read=bytes_read)
        return progress

    def add_cost(self, source: str, *, requests: int, bytes_read: int) -> None:
        """Adds the cost of one read to a source alone."""
        self.tally(source).add(requests=requests, bytes=bytes_read)

    def advance(self, progress: FileProgress, rows: Rows, epoch: int) -> int:
        """Moves the offset of a file behind rows that are emitted, and quarantines its bad records.

        Returns:
            The number of rows that fit the schema.
        """
        if rows.num_rows and progress.first_epoch is None:
            progress.first_epoch = epoch
        progress.row_offset, progress.anchor = rows.end_row, rows.anchor
        progress.rows_bad += len(rows.bad)
        self._state.quarantine(progress, rows.bad)
        self._state.touch(progress)
        self._state.note_event_time(progress, rows.event_high)
        good = rows.num_rows - len(rows.bad)
        self._count_rows(progress, good, len(rows.bad))
        return good

    def advance_whole(self, progress: FileProgress, epoch: int) -> int:
        """Moves the offset of a file that replaces to its end: all its rows come in this epoch.

        Returns:
            The number of rows that fit the schema.
        """
        rows = progress.read_to.row
        progress.first_epoch = epoch if rows else None
        progress.row_offset, progress.rows_bad = rows, len(progress.bad)
        self._state.quarantine(progress, progress.bad)
        self._state.note_event_time(progress, progress.event_high)
        good = rows - progress.rows_bad
        self._count_rows(progress, good, progress.rows_bad)
        return good

    def end_reading(self, progress: FileProgress) -> None:
        """Notes that no more of a file is read."""
        if progress.is_reading:
            progress.is_reading = False
            self.tally(progress.file.source).end_reading()

    def end(self, progress: FileProgress, status: FileStatus) -> None:
        """Removes a finished file, which is not pending."""
        self._remove(progress)
        self.tally(progress.file.source).finish(status)

    def leave(self, progress: FileProgress) -> None:
        """Removes a file that is not finished: it is read again, or by another fetch actor.

        The caller takes it from `pending`, one by one or all at once.
        """
        self.end_reading(progress)
        self._remove(progress)
        self.tally(progress.file.source).add(waiting=-1)

    def vnode_of(self, path: PathKey) -> int:
        """The vnode whose owner reads an object."""
        return vnode_of_file(*path, self._orders)

    def tally(self, source: str) -> SourceTally:
        """The counts of a source."""
        tally = self.tallies.get(source)
        if tally is None:
            tally = self.tallies[source] = SourceTally()
        return tally

    def _note(self, progress: FileProgress) -> None:
        if progress.key in self._files:
            raise ProtocolError(f"{progress.file.path} of {progress.file.source} was sent twice in one version")
        self._files[progress.key] = progress
        self.tally(progress.file.source).add(waiting=1)

    def _remove(self, progress: FileProgress) -> None:
        del self._files[progress.key]
        self.begun.pop(progress.key, None)
        self.pending.end(progress)

    def _count_rows(self, progress: FileProgress, good: int, bad: int) -> None:
        self.tally(progress.file.source).add(rows=good, rows_bad=bad)
