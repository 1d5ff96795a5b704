"""The files that a fetch actor owns and has not finished, and what it writes about them into the store.

One version of an object is read.  A later one is noted (`changed_epoch`), and is read when the earlier one has ended,
if that ended without a row, or if its source appends or replaces what has changed: an empty, unreadable or vanished
version never blocks its successor.

A version that *replaces* keeps no offset.  It is read whole, its rows are staged and not emitted, and in the epoch of
its end they come in place of all that the views hold of the object.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.source_tally import SourceTally
from actors.fetching.vnode_moves import Handover
from actors.fetching.waiting_files import PendingFiles
from actors.files import ChangedFile, FileKey, FileVersion, ForgottenFile, GoneFile, PathKey, RetriedFile, Vanished
from actors.protocol.reports import CorrectedFile
from actors.protocol.vnode_mapping import vnode_of_file
from actors.rows import BadRecord, Rows
from state.errors import ProtocolError
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.vnode import vnode_of

_Item = TypeVar("_Item")
_REPLACED = "it was another version when it was to be read"
_READ_AGAIN = "it is read again from its beginning"
_FORGOTTEN = Ending("forgotten")


class FileQueue:
    """Waiting and open files of one fetch actor.

    Those that `begun` has were taken from `waiting`, and are not finished; `moved` is how many more files have come
    from other fetch actors than went to them.

    Args:
        unfinished: what the `queue` table held at the last commit.
        without_rows: versions in the ledger of which no row was ingested.
        appending: sources whose later versions are read whatever became of the earlier ones.
        replacing: sources whose later versions replace the earlier ones.
        held: objects of which a version was to replace others, and could not be read: the next one replaces them, too.
        orders: source → the order in which its files are read, of the sources that have one.
    """

    def __init__(
        self,
        unfinished: Iterable[FileProgress],
        without_rows: Iterable[FileKey],
        appending: Iterable[str] = (),
        replacing: Iterable[str] = (),
        held: Iterable[PathKey] = (),
        orders: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._orders = orders
        self.waiting = PendingFiles(orders)
        self.begun: dict[FileKey, FileProgress] = {}
        self.moved = 0
        self._aside: list[FileProgress] = []
        self._stays: Callable[[FileProgress], bool] | None = None
        self.tallies: dict[str, SourceTally] = {}
        self._files: dict[FileKey, FileProgress] = {}
        self._successors: dict[tuple[str, str], FileProgress] = {}
        self._without_rows, self._appending = set(without_rows), frozenset(appending)
        self._replacing, self._held = frozenset(replacing), set(held)
        self._corrected: list[CorrectedFile] = []
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

    def add(self, file: FileVersion, epoch: int, *, replaces: bool = False) -> None:
        """A new file from the listing, or a version that is to be read in place of others."""
        self._without_rows.discard((file.source, file.path, file.version))
        replaces = replaces or (file.source, file.path) in self._held
        self._enqueue(self._touch(FileProgress(file, listed_epoch=epoch, replaces=replaces)))

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
        replaces = source in self._replacing
        if changed.version == changed.now.version:
            # It was gone, and so are its rows; now it is back.
            if key not in self._files:
                self._without_rows.discard(key)
                self.add(changed.now, epoch, replaces=True)
        elif key in self._without_rows:
            self._without_rows.discard(key)
            self.add(changed.now, epoch, replaces=replaces)
        elif key in self._files or (successor is not None and successor.key == key):
            if successor is not None:
                self._drop(self._successors.pop((source, path)))
            later = FileProgress(changed.now, listed_epoch=epoch, replaces=replaces)
            if later.key not in self._files:
                self._successors[source, path] = self._touch(later)
        else:
            self._delta.patch("ledger", encode_key(*key), vnode_of(path), changed_epoch=epoch)
            if source in self._appending or replaces:
                self.add(changed.now, epoch, replaces=replaces)
            else:
                self._tally(source).changes_ignored += 1

    def forget(self, files: Iterable[ForgottenFile], epoch: int) -> list[FileProgress]:
        """Ends what there is of these objects; the ledger is told when the epoch is committed.

        Returns:
            Their unfinished versions, of which no further row must come.
        """
        current = self._by_path()
        ended = []
        for file in files:
            path = file.source, file.path
            ended += [each for each in (current.get(path), self._successors.pop(path, None)) if each is not None]
            self._corrected.append(CorrectedFile(*path, None, "forgotten"))
            self._held.discard(path)
        for progress in ended:
            row = progress.kept_row or progress.ledger_row(_FORGOTTEN, done_epoch=epoch, changed_epoch=None)
            self._withdraw(progress)
            self._end(progress, row | {"status": _FORGOTTEN.status})
            if not progress.row_offset:
                self._without_rows.add(progress.key)
            if self._files.pop(progress.key, None) is not None:
                self.begun.pop(progress.key, None)
                self._tally(progress.file.source).finish(_FORGOTTEN.status)
        return ended

    def reread(self, files: Iterable[FileVersion], epoch: int) -> list[FileProgress]:
        """Queues versions that replace whatever the views hold of their objects.

        Returns:
            The versions of these objects that were being read, of which no further row must come.
        """
        current = self._by_path()
        ended = []
        for file in files:
            path = file.source, file.path
            successor = self._successors.pop(path, None)
            if successor is not None:
                self._drop(successor)
            progress = current.get(path)
            if progress is not None and progress.key == (*path, file.version):
                if not progress.replaces:
                    ended.append(progress)
                    self._begin_anew(progress, epoch)
                continue
            if progress is not None:
                ended.append(progress)
                self._withdraw(progress)
                self.finish(progress, Ending("vanished", _REPLACED), epoch)
            self.add(file, epoch, replaces=True)
        return ended

    def _begin_anew(self, progress: FileProgress, epoch: int) -> None:
        """What is being read is read again from its beginning, and its rows of before stay until its end."""
        del self._files[progress.key]
        self.begun.pop(progress.key, None)
        self._touched.pop(progress.key, None)
        self.waiting.end(progress)
        self._withdraw(progress)
        self._tally(progress.file.source).unfinished -= 1
        anew = FileProgress(progress.file, listed_epoch=progress.listed_epoch, replaces=True, stored=progress.stored)
        if progress.row_offset:
            ending = Ending("quarantined", _READ_AGAIN)
            anew.kept_row = progress.ledger_row(ending, done_epoch=epoch, changed_epoch=None)
            self._delta.put("ledger", progress.state_key, progress.vnode, **anew.kept_row)
        self._enqueue(self._touch(anew))

    def _withdraw(self, progress: FileProgress) -> None:
        self.waiting.remove(progress)
        if progress in self._aside:
            self._aside.remove(progress)

    def _by_path(self) -> dict[PathKey, FileProgress]:
        return {each.path_key: each for each in self._files.values()}

    # -- files that go to other fetch actors, and come from them ---------------------------------------------------

    def set_aside(self, stays: Callable[[FileProgress], bool] | None) -> None:
        """Only those that stay are in `waiting` from now on; None: all."""
        files = [*self.waiting.take_all(), *self._aside]
        self._stays, self._aside = stays, []
        for each in files:
            self._line_up(each)

    def hand_over(
        self, receivers: Mapping[int, str], giver: str, epoch: int, active: Container[FileKey]
    ) -> dict[str, Handover]:
        """Lets go of everything that belongs to some vnodes, just after a seal.

        Args:
            receivers: vnode → its next owner.
            giver: the name of this fetch actor.
            epoch: that begins.
            active: files of which something is being read or stored: that is lost.

        Returns:
            Next owner → what it gets.
        """
        assert not self._touched, "what was touched is sealed, so that it is stored"
        files = self._grouped(self._files.values(), receivers, lambda each: each.path_key)
        successors = self._grouped(self._successors.values(), receivers, lambda each: each.path_key)
        without_rows = self._grouped(self._without_rows, receivers, lambda key: key[:2])
        held = self._grouped(self._held, receivers, lambda path: path)
        for each in (each for group in files.values() for each in group):
            del self._files[each.key]
            self._tally(each.file.source).leave(each)
            if self.begun.pop(each.key, None) is not None:
                each.settle(is_interrupted=each.key in active)
            self.moved -= 1
            self.waiting.end(each)
        waiting, self._aside = [*self.waiting.take_all(), *self._aside], []
        for each in waiting:
            if each.key in self._files:
                self._line_up(each)
        for path in [each.path_key for group in successors.values() for each in group]:
            del self._successors[path]
        self._without_rows.difference_update(*without_rows.values())
        self._held.difference_update(*held.values())
        return {
            name: Handover(
                giver=giver,
                epoch=epoch,
                files=tuple(files.get(name, ())),
                successors=tuple(successors.get(name, ())),
                without_rows=frozenset(without_rows.get(name, ())),
                held=frozenset(held.get(name, ())),
            )
            for name in sorted(set(receivers.values()))
        }

    def take_over(self, handover: Handover) -> None:
        """Goes on with what another fetch actor has let go of."""
        for each in handover.files:
            self._note(each)
            if each.ending is not None:
                self.begun[each.key] = each
            else:
                # What is half read is read on first.
                self._line_up(each, first=each.has_begun)
        self.moved += len(handover.files)
        self._successors |= {each.path_key: each for each in handover.successors}
        self._without_rows |= handover.without_rows
        self._held |= handover.held

    def begin(self, progress: FileProgress) -> None:
        """A file is opened."""
        self.begun[progress.key] = progress
        self._tally(progress.file.source).reading += 1
        progress.is_reading = True

    def end_reading(self, progress: FileProgress) -> None:
        """A file has been read to its end, or nothing more of it is read."""
        if progress.is_reading:
            progress.is_reading = False
            self._tally(progress.file.source).reading -= 1

    def put_back(self, progress: FileProgress) -> bool:
        """A file that was opened to see a schema waits for its turn again, if its source has an order."""
        if progress.file.source not in self._orders or progress.read_to.row:
            return False
        self.end_reading(progress)
        self.waiting.end(progress)
        del self.begun[progress.key]
        self._line_up(progress)
        return True

    def _grouped(
        self, items: Iterable[_Item], receivers: Mapping[int, str], path_of: Callable[[_Item], PathKey]
    ) -> dict[str, list[_Item]]:
        """Next owner → those of the items whose vnode it gets."""
        groups: dict[str, list[_Item]] = {}
        for item in items:
            receiver = receivers.get(self.vnode_of(path_of(item)))
            if receiver is not None:
                groups.setdefault(receiver, []).append(item)
        return groups

    def vnode_of(self, file: PathKey) -> int:
        """The vnode whose owner reads an object."""
        return vnode_of_file(*file, self._orders)

    def note_gone(self, files: Sequence[GoneFile], epoch: int) -> list[ForgottenFile]:
        """Finished versions whose objects are not there any more; one that is read again will say so at its end.

        Returns:
            The objects whose rows leave the views: where changed files replace.
        """
        for file in files:
            key = file.source, file.path, file.version
            if key in self._files:
                self._files[key].gone_epoch = epoch
            else:
                self._delta.patch("ledger", encode_key(*key), vnode_of(file.path), gone_epoch=epoch)
        objects = (ForgottenFile(each.source, each.path) for each in files if each.source in self._replacing)
        return list(dict.fromkeys(objects))

    def remove(self, progress: FileProgress, epoch: int) -> ForgottenFile:
        """An object is gone of which rows were ingested, and must leave the views: its other versions go with it."""
        progress.gone_epoch = epoch
        self._vanished.append(Vanished(*progress.key, is_removed=True))
        return ForgottenFile(*progress.path_key)

    def account(self, file: FileVersion, *, requests: int, bytes_read: int) -> FileProgress:
        """Reading a file has cost something."""
        progress = self._touch(self.get(file))
        progress.requests += requests
        progress.bytes_read += bytes_read
        self.note_cost(file.source, requests=requests, bytes_read=bytes_read)
        return progress

    def note_cost(self, source: str, *, requests: int, bytes_read: int) -> None:
        """Something was asked of a source, for whatever file."""
        tally = self._tally(source)
        tally.requests += requests
        tally.bytes += bytes_read

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

    def advance_whole(self, progress: FileProgress, epoch: int) -> int:
        """All rows of a file that replaces come in this epoch.  Returns how many do fit."""
        rows = progress.read_to.row
        progress.first_epoch = epoch if rows else None
        progress.row_offset, progress.rows_bad = rows, len(progress.bad)
        self.quarantine(progress, progress.bad)
        tally = self._tally(progress.file.source)
        tally.rows += rows - progress.rows_bad
        tally.rows_bad += progress.rows_bad
        return rows - progress.rows_bad

    def finish(self, progress: FileProgress, ending: Ending, epoch: int) -> None:
        """The file ends: its row moves from `queue` to `ledger`."""
        del self._files[progress.key]
        self.begun.pop(progress.key, None)
        source = progress.file.source
        successor = self._successors.pop(progress.path_key, None)
        changed_epoch = successor.listed_epoch if successor is not None else None
        row = progress.ledger_row(ending, done_epoch=epoch, changed_epoch=changed_epoch)
        if progress.replaces:
            row = self._replaced(progress, ending, row)
        self._end(progress, row)
        self._tally(source).finish(ending.status)
        is_read = not progress.row_offset or source in self._appending or source in self._replacing
        if successor is not None and is_read:
            successor.replaces = successor.replaces or progress.replaces
            self._enqueue(successor)
        elif successor is not None:
            self._drop(successor)
            self._tally(source).changes_ignored += 1
        if not progress.row_offset and successor is None:
            self._without_rows.add(progress.key)
            if ending.status == "vanished":
                self._vanished.append(Vanished(*progress.key))

    def _replaced(self, progress: FileProgress, ending: Ending, row: dict[str, object]) -> dict[str, object]:
        """What the ledger says of a version that replaces, or could not: then what was there stays."""
        is_done = ending.status == "done"
        self._corrected.append(CorrectedFile(*progress.key, "replaced" if is_done else "kept"))
        if is_done:
            self._held.discard(progress.path_key)
            return row
        self._held.add(progress.path_key)
        return row if progress.kept_row is None else progress.kept_row | {"error": ending.error}

    def _end(self, progress: FileProgress, row: Mapping[str, object]) -> None:
        self.waiting.end(progress)
        self._drop(progress)
        self._delta.put("ledger", progress.state_key, progress.vnode, **row)

    def give_up(self, reasons: Mapping[FileKey, str], epoch: int) -> int:
        """Ends these waiting files as quarantined; of several versions of a path only the last is there.

        Returns how many.
        """
        given_up = 0
        while (progress := next((each for each in self.waiting if each.key in reasons), None)) is not None:
            self.waiting.remove(progress)
            is_replaced = progress.key[:2] in self._successors
            ending = Ending("vanished", _REPLACED) if is_replaced else Ending("quarantined", reasons[progress.key])
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

    def take_corrected(self) -> tuple[CorrectedFile, ...]:
        """What was corrected since the last call."""
        corrected, self._corrected = tuple(self._corrected), []
        return corrected

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
        self._note(progress)
        self._line_up(progress)

    def _line_up(self, progress: FileProgress, *, first: bool = False) -> None:
        if self._stays is None or self._stays(progress):
            self.waiting.add(progress, first=first)
        else:
            self._aside.append(progress)

    def _note(self, progress: FileProgress) -> None:
        if progress.key in self._files:
            raise ProtocolError(f"{progress.file.path} of {progress.file.source} was sent twice in one version")
        self._files[progress.key] = progress
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
