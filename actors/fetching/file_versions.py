"""The versions of objects in one fetch actor: the one that is read, and those before and after it.

One version of an object is read at a time.  A later one is noted (`changed_epoch`) and waits for the end of the one
before.  Then it is read if that had no row, or if its source appends or replaces changed files: an empty, unreadable or
vanished version never blocks its successor.

A version that *replaces* keeps no offset.  It is read whole, its rows are staged and not emitted, and in the epoch of
its end they come in place of all that the views hold of the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.state_changes import StateChanges
from actors.fetching.version_set import VersionSet
from actors.files import (
    ChangedFile,
    DeletedFile,
    FileKey,
    FileVersion,
    ForgottenFile,
    PathKey,
    ReadingOrder,
    RetriedFile,
    Vanished,
)
from actors.protocol.reports import CorrectedFile

_CHANGED = Ending("vanished", "the object changed before this version was read")
_READ_AGAIN = Ending("quarantined", "this version is read again from its beginning")
_FORGOTTEN = Ending("forgotten")


class FileVersions:
    """Versions to read, taken from what the list step and the user say of objects.

    Attributes:
        queue: the files that are read now or next.
        state: the rows of the tables that change.
        successors: object → the version to read after the one in `queue`.
        without_rows: ended versions without an ingested row.
        changed: ended versions whose objects have changed since this attempt began.
        held: objects of which a version was to replace others and could not be read: the next one replaces them, too.

    Args:
        unfinished: rows of the `queue` table at the last commit.
        without_rows: versions in the ledger without an ingested row.
        appending: sources whose later versions are read whatever became of the earlier ones.
        replacing: sources whose later versions replace the earlier ones.
        held: see above, as of the last commit.
        orders: source → the order in which its files are read, of the sources that have one.
    """

    def __init__(
        self,
        unfinished: Iterable[FileProgress],
        without_rows: VersionSet,
        appending: Iterable[str] = (),
        replacing: Iterable[str] = (),
        held: Iterable[PathKey] = (),
        orders: Mapping[str, ReadingOrder] = MappingProxyType({}),
    ) -> None:
        self.state = StateChanges()
        self.queue = FileQueue(orders, self.state)
        self.successors: dict[PathKey, FileProgress] = {}
        self.without_rows, self.changed, self.held = without_rows, VersionSet(orders), set(held)
        self._appending, self._replacing = frozenset(appending), frozenset(replacing)
        current: set[PathKey] = set()
        for progress in sorted(unfinished, key=FileProgress.reading_order):
            if progress.path_key in current:
                self.successors[progress.path_key] = progress
            else:
                current.add(progress.path_key)
                self.queue.add(progress)

    def add(self, file: FileVersion, epoch: int, *, replaces: bool = False) -> None:
        """Queues a new file, or with `replaces` a version to read in place of others."""
        replaces = replaces or (file.source, file.path) in self.held
        progress = FileProgress(file, listed_epoch=epoch, replaces=replaces)
        self.without_rows.discard(progress.key)
        self.changed.discard(progress.key)
        self.queue.add(self.state.touch(progress))

    def retry(self, files: Iterable[RetriedFile]) -> None:
        """Moves quarantined versions from the ledger back into the queue; each continues behind its last row.

        A version stays quarantined while another version of its object is being read, and if the object has changed:
        the files were chosen at an earlier epoch.
        """
        unfinished = {each.path_key for each in self.queue}
        for each in files:
            progress = FileProgress.of_retried(each)
            if progress.path_key not in unfinished and progress.key not in self.changed:
                self.without_rows.discard(progress.key)
                self.state.delete_ledger(progress)
                self.queue.add(self.state.touch(progress))
                self.queue.tally(each.source).add(quarantined=-1)

    def is_without_rows(self, changed: ChangedFile) -> bool:
        """True if the version before a change has ended without an ingested row."""
        return (changed.source, changed.path, changed.version) in self.without_rows

    def change(self, changed: ChangedFile, epoch: int) -> None:
        """Queues or notes the new version of an object that was handed on in another one."""
        source, path = changed.source, changed.path
        key = (source, path, changed.version)
        successor = self.successors.get((source, path))
        replaces = source in self._replacing
        if changed.version == changed.now.version:
            # It was deleted, and so are its rows; now it is back.
            if key not in self.queue:
                self.without_rows.discard(key)
                self.add(changed.now, epoch, replaces=True)
        elif key in self.without_rows:
            self.without_rows.discard(key)
            self.add(changed.now, epoch, replaces=replaces)
        elif key in self.queue or (successor is not None and successor.key == key):
            if successor is not None:
                self.state.drop(self.successors.pop((source, path)))
            later = FileProgress(changed.now, listed_epoch=epoch, replaces=replaces)
            if later.key not in self.queue:
                self.successors[source, path] = self.state.touch(later)
        else:
            self.state.patch_ledger(key, changed_epoch=epoch)
            self.changed.add(key)
            if source in self._appending or replaces:
                self.add(changed.now, epoch, replaces=replaces)
            else:
                self.queue.tally(source).add(changes_ignored=1)

    def note_deleted(self, files: Sequence[DeletedFile], epoch: int) -> list[ForgottenFile]:
        """Notes in the ledger that objects are deleted; a version that is being read notes it at its end.

        Returns:
            The objects whose rows are retracted from the views: only objects of sources with `on_change="replace"`.
        """
        for file in files:
            key = file.source, file.path, file.version
            if key in self.queue:
                self.queue[key].deleted_epoch = epoch
            else:
                self.state.patch_ledger(key, deleted_epoch=epoch)
        objects = (ForgottenFile(each.source, each.path) for each in files if each.source in self._replacing)
        return list(dict.fromkeys(objects))

    def remove(self, progress: FileProgress, epoch: int) -> ForgottenFile:
        """Notes that the object of a half-read version is deleted.

        Returns:
            The object, whose rows of all versions are retracted from the views.
        """
        progress.deleted_epoch = epoch
        self.state.vanished.append(Vanished(*progress.key, is_removed=True))
        return ForgottenFile(*progress.path_key)

    def forget(self, files: Iterable[ForgottenFile], epoch: int) -> list[FileProgress]:
        """Ends all versions of objects; the commit of the epoch corrects the ledger rows of earlier ones.

        Returns:
            The unfinished versions, of which no further row must come.
        """
        current = {each.path_key: each for each in self.queue}
        ended = []
        for file in files:
            path = file.source, file.path
            ended += [each for each in (current.get(path), self.successors.pop(path, None)) if each is not None]
            self.state.corrected.append(CorrectedFile(*path, None, "forgotten"))
            self.held.discard(path)
        for progress in ended:
            row = progress.kept_row or progress.ledger_row(_FORGOTTEN, done_epoch=epoch, changed_epoch=None)
            self.state.finish(progress, row | {"status": _FORGOTTEN.status})
            if not progress.row_offset:
                self.without_rows.add(progress.key)
            if progress.key in self.queue:
                self.queue.pending.remove(progress)
                self.queue.end(progress, _FORGOTTEN.status)
        return ended

    def reread(self, files: Iterable[FileVersion], epoch: int) -> list[FileProgress]:
        """Queues versions that replace all that the views hold of their objects.

        Returns:
            The versions of these objects that were being read, of which no further row must come.
        """
        current = {each.path_key: each for each in self.queue}
        ended = []
        for file in files:
            path = file.source, file.path
            successor = self.successors.pop(path, None)
            if successor is not None:
                self.state.drop(successor)
            progress = current.get(path)
            if progress is not None and progress.key == (*path, file.version):
                if not progress.replaces:
                    ended.append(progress)
                    self._begin_again(progress, epoch)
                continue
            if progress is not None:
                ended.append(progress)
                self.queue.pending.remove(progress)
                self.finish(progress, _CHANGED, epoch)
            self.add(file, epoch, replaces=True)
        return ended

    def finish(self, progress: FileProgress, ending: Ending, epoch: int) -> None:
        """Moves a file from the queue to the ledger, and queues its successor, if that is to be read."""
        source = progress.file.source
        if progress.replaces and source in self._replacing:
            # Rows of an earlier version may be in the views.  They are retracted when a second sign confirms that the
            # object was deleted; then all of its versions are recorded as deleted.
            ending = replace(ending, is_deleted=False)
        self.queue.end(progress, ending.status)
        successor = self.successors.pop(progress.path_key, None)
        changed_epoch = None
        if successor is not None:
            changed_epoch = successor.listed_epoch
        elif ending.status == "vanished" and not ending.is_deleted and progress.row_offset:
            # The object is another one: of a retried version a listing noted that before, and does not note it again.
            changed_epoch = epoch
        row = progress.ledger_row(ending, done_epoch=epoch, changed_epoch=changed_epoch)
        if progress.replaces:
            row = self._replaced(progress, ending, row)
        self.state.finish(progress, row)
        is_read = not progress.row_offset or source in self._appending or source in self._replacing
        if successor is not None and is_read:
            successor.replaces = successor.replaces or progress.replaces
            self.queue.add(successor)
        elif successor is not None:
            self.state.drop(successor)
            self.queue.tally(source).add(changes_ignored=1)
        if not progress.row_offset and successor is None:
            self.without_rows.add(progress.key)
            if ending.status == "vanished":
                replaces = progress.replaces and source in self._replacing
                self.state.vanished.append(Vanished(*progress.key, replaces=replaces))

    def give_up(self, reasons: Mapping[FileKey, str], epoch: int) -> int:
        """Quarantines pending files, each with its reason; a version with a successor has vanished.

        Returns:
            The number of versions that ended.
        """
        given_up = 0
        while (progress := next((each for each in self.queue.pending if each.key in reasons), None)) is not None:
            self.queue.pending.remove(progress)
            is_replaced = progress.path_key in self.successors
            # The successor is pending from here on, and is the next to be looked at.
            self.finish(progress, _CHANGED if is_replaced else Ending("quarantined", reasons[progress.key]), epoch)
            given_up += 1
        return given_up

    def unfinished_since(self) -> dict[str, int]:
        """Source → the epoch in which its oldest unfinished file was listed."""
        since: dict[str, int] = {}
        for each in (*self.queue, *self.successors.values()):
            source = each.file.source
            since[source] = min(each.listed_epoch, since.get(source, each.listed_epoch))
        return since

    def _begin_again(self, progress: FileProgress, epoch: int) -> None:
        """Queues a version that is being read once more; its earlier rows stay in the views until its end."""
        self.queue.pending.remove(progress)
        self.queue.leave(progress)
        again = FileProgress(progress.file, listed_epoch=progress.listed_epoch, replaces=True, stored=progress.stored)
        if progress.row_offset:
            again.kept_row = progress.ledger_row(_READ_AGAIN, done_epoch=epoch, changed_epoch=None)
            self.state.put_ledger(progress, again.kept_row)
        self.queue.add(self.state.touch(again))

    def _replaced(self, progress: FileProgress, ending: Ending, row: dict[str, object]) -> dict[str, object]:
        """The ledger row of a version that replaces the others, or that could not be read and lets them stay."""
        is_done = ending.status == "done"
        self.state.corrected.append(CorrectedFile(*progress.key, "replaced" if is_done else "kept"))
        if is_done:
            self.held.discard(progress.path_key)
            return row
        self.held.add(progress.path_key)
        return row if progress.kept_row is None else progress.kept_row | {"error": ending.error}
