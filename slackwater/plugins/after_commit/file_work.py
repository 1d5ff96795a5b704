"""FileWork: handles the due files of a run, a batch at a time, and records the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.telemetry.logging import redact
from actors.telemetry.text import first_line
from slackwater.extensions.companion import Companion
from slackwater.extensions.run_views import Needs, NeedsChangedError, PublishedView, RunViews
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.after_commit.actions import Delete, Move
from slackwater.plugins.after_commit.branch_needs import BranchReader, branch_readers, limit
from slackwater.plugins.after_commit.clock_watch import ClockWatch, has_gone_back
from slackwater.plugins.after_commit.commit_times import CommitTimes
from slackwater.plugins.after_commit.declaration import DeclaredAfter
from slackwater.plugins.after_commit.due_files import DueFile, due_files, still_due
from slackwater.plugins.after_commit.file_access import FileAccess, FileResult
from slackwater.plugins.after_commit.reach import Moment, Reach, reach
from slackwater.status.run_status import AfterCommitStatus, RunStatus
from state.clock import Clock
from state.errors import FencedError, RunFailedError, SettingsError, SlackwaterError, StorageError, StoreNotFoundError
from state.lance.handled_files import ClockChange, HandledFile, Outcome
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.stored_rows import stored_rows_name, version_number

_BATCH = 200
_MOST_TRIES = 3
_LOOK_S, _AGAIN_S = 5.0, 10.0
_REST, _LONGEST_REST_S = 20, 60.0
_SHORTEST_PAUSE_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 10.0, 600.0
_CONFIRMED_FOR_S = 2.0
LAST_WORK_S = 30.0
"""The seconds that the end of a run waits for files that are due; the next run handles the remaining files."""


@dataclass(frozen=True)
class _Unfinished:
    """A file that is tried again, and the last result.

    Args:
        has_failed: whether the store has refused it; else it waits.
    """

    due: DueFile
    has_failed: bool
    error: str | None = None


@dataclass
class _Progress:
    """The progress of one source.

    Attributes:
        done: the epoch up to which all of its files are done; None until the record is read.
        handled: files behind `done` that an earlier run has done.
        unfinished: files that the store has refused, or that wait.
        tries: batches in a row of which the store has refused every file.
        due_s: the monotonic time of the next batch.
        again_s: the monotonic time of the next try of the unfinished files.
        status: the status of the source, for people.
    """

    status: AfterCommitStatus
    done: int | None = None
    handled: dict[tuple[str, bytes], Outcome] = field(default_factory=dict)
    unfinished: dict[tuple[str, bytes], _Unfinished] = field(default_factory=dict)
    tries: int = 0
    due_s: float = float("-inf")
    again_s: float = float("-inf")

    @property
    def num_failed(self) -> int:
        return sum(each.has_failed for each in self.unfinished.values())


@dataclass(frozen=True)
class _Look:
    """One pass over the files of one source.

    Args:
        moment: the facts of the look.
        reach: the epochs whose files may be touched.
    """

    name: str
    moment: Moment
    reach: Reach


class FileWork(Companion):
    """Deletes, moves and tags the files of a run's sources.  Called by one thread at a time.

    Args:
        root: the root of the run.
        after: the sources with an action on their files.
        require_owner: raises FencedError if the root has another owner now: a process that was suspended does not know
            it by itself.  Called for each batch, and before a file if two seconds have passed; so are the checks of
            `places`.
        views: the views and tables that the run declares.
        access: the store, the record and the objects; None: as the root has them.
        places: source → the watch of its place and of the target of its moves; the others are not watched.
    """

    name = "files"

    def __init__(
        self,
        root: Location,
        after: Sequence[DeclaredAfter],
        require_owner: Callable[[], None],
        clock: Clock,
        views: RunViews,
        access: FileAccess | None = None,
        places: Mapping[str, PlaceWatch] = {},
    ) -> None:
        self._root, self._require_owner, self._clock, self._views = root, require_owner, clock, views
        self._owner_lock, self._confirmed_s = threading.Lock(), float("-inf")
        self._watch = ClockWatch(clock)
        self._clock_change: ClockChange | None = None
        self._access = access or FileAccess.of(root, clock)
        self._record, self._log = self._access.record, self._access.log
        self._after = {each.source.name: each for each in after}
        self._commit_times = CommitTimes(self._record, [each.action.keep_s for each in after])
        self._changes = {name: self._access.changes(each.source.location) for name, each in self._after.items()}
        self._progress = {
            name: _Progress(AfterCommitStatus(name, str(each.action))) for name, each in self._after.items()
        }
        self._places, self._paused = places, frozenset[str]()
        self._state: StateStore | None = None
        self._ends_s = self._rests_s = self._looked_s = float("-inf")
        self._looked = 0
        self._has_error = self._has_looked = False

    @property
    def statuses(self) -> tuple[AfterCommitStatus, ...]:
        """The status of each source, a moment ago."""
        return tuple(each.status for each in self._progress.values())

    def look(self, status: RunStatus) -> bool:
        """Handles due files for some seconds, if an epoch is new or some time has passed.  Returns True.

        A look reads the ledger.  After a look without work, a pause follows that is many times as long as the look.

        A root that cannot be read or written is logged once, and is tried again with the next look.

        Raises:
            FencedError: the root has another owner.
        """
        now_s = self._clock.monotonic()
        is_new = status.epoch != self._looked or now_s >= self._looked_s + _AGAIN_S
        if status.epoch and is_new and now_s >= self._rests_s:
            before = self.statuses
            self._do_for(status, _LOOK_S)
            if self.statuses == before:
                took_s = self._clock.monotonic() - now_s
                self._rests_s = now_s + min(_LONGEST_REST_S, _REST * took_s)
        return True

    def end(self, status: RunStatus, failure: Exception | None) -> None:
        """Handles due files at the end of the run, within `LAST_WORK_S`."""
        if status.epoch:
            self._do_for(status, LAST_WORK_S)

    def _do_for(self, status: RunStatus, seconds: float) -> None:
        now_s = self._clock.monotonic()
        self._ends_s = now_s + seconds
        self._paused = frozenset(name for name, source in status.sources.items() if source.paused is not None)
        try:
            self._confirm()
            needs = self._views.needs
            published = _published(status, needs)
            state = self._latest()
            self._look_at_clock(state)
            now = self._clock.now()
            moment = Moment(
                state=state,
                catalog=Catalog.of(state.scan("catalog")),
                root=self._root,
                needs=needs,
                published=published,
                now=now,
                commits=self._commit_times.look(state.epoch_times(), now),
                clock_change=self._clock_change,
            )
            for name in self._after:
                self._work(name, moment)
            if not self._is_late():
                self._looked, self._looked_s = status.epoch, now_s
            self._has_error = False
        except (StorageError, StoreNotFoundError) as error:
            if not self._has_error:
                self._log.warning("files wait for the root", error=first_line(error))
            self._has_error = True

    def _confirm(self, name: str = "", valid_s: float = 0.0) -> None:
        """Checks the owner of the root and the places of a source, unless it has done so within these last seconds.

        Raises:
            FencedError: the root has another owner.
            NeedsChangedError: a place of the source has changed; the next look reports it.
        """
        with self._owner_lock:
            now_s = self._clock.uptime()
            if not valid_s or now_s > self._confirmed_s + valid_s:
                self._require_owner()
                if self._changed_place(name):
                    raise NeedsChangedError
                self._confirmed_s = now_s

    def _look_at_clock(self, state: StateStore) -> None:
        """Records a change of the clock during this run, or since the run before."""
        is_first = not self._has_looked
        if is_first:
            self._clock_change = self._record.clock_change()
        now, has_jumped = self._clock.now(), self._watch.has_jumped()
        if is_first and not has_jumped:
            times = state.epoch_times()
            has_jumped = has_gone_back(now, times.slice(max(0, times.num_rows - 1)).to_pylist(), self._clock_change)
        if has_jumped:
            change = ClockChange(state.head.epoch, now)
            self._record.append_clock_change(change)
            self._clock_change = change
            self._log.warning("the clock of this machine was set: files wait for their time again", now=str(now))
        self._has_looked = True

    def _reason_to_wait(self, name: str) -> str:
        """The reason why the files of a source are not touched at any age; empty without a reason."""
        if name in self._paused:
            return "the source is paused"
        return self._changed_place(name)

    def _changed_place(self, name: str) -> str:
        """The change of a place of a source since the start; empty without one."""
        try:
            if name in self._places:
                self._places[name].check()
        except SettingsError as error:
            return str(error)
        return ""

    def _latest(self) -> StateStore:
        if self._state is None:
            self._state = self._access.open(self._root)
        else:
            self._state = self._state.reopen()
        return self._state

    def _work(self, name: str, moment: Moment) -> None:
        declared, progress = self._after[name], self._progress[name]
        state = moment.state
        if progress.done is None:
            self._begin(name, state, progress)
        assert progress.done is not None
        keep_s = declared.action.keep_s
        reached = reach(moment, name, keep_s=keep_s, is_stored=declared.source.materialize)
        if not self._watch.has_settled(keep_s):
            reached = replace(reached, epoch=0, waits_for="the clock of this machine was set")
        if reason := self._reason_to_wait(name):
            reached = replace(reached, epoch=0, waits_for=reason)
        readers = branch_readers(self._root, state, declared.source, self._access.open) if reached.epoch else []
        if readers and reached.epoch > progress.done:
            files = due_files(state, name, after=progress.done, until=reached.epoch)
            if (found := limit(readers, files)) is not None:
                reached = replace(reached, epoch=found[0], waits_for=found[1])
        progress.status = replace(progress.status, waits_for=reached.waits_for)
        look = _Look(name, moment, reached)
        try:
            self._touch(look, progress, readers)
        except NeedsChangedError:
            pass  # the next look has the new needs
        if not reached.waits_for and (waiting := _reason_of(progress)):
            progress.status = replace(progress.status, waits_for=waiting)

    def _touch(self, look: _Look, progress: _Progress, readers: Sequence[BranchReader]) -> None:
        name, state, reached = look.name, look.moment.state, look.reach
        assert progress.done is not None
        now_s = self._clock.monotonic()
        if progress.unfinished and now_s >= progress.again_s and reached.epoch:
            again = still_due(state, [each.due for each in progress.unfinished.values()], until=reached.epoch)
            needed = {_key(each) for reader in readers for each in reader.lacks(again)}
            self._try_again(look, progress, [each for each in again if _key(each) not in needed])
        if now_s >= progress.due_s and reached.epoch > progress.done:
            files = due_files(state, name, after=progress.done, until=reached.epoch)
            if self._do(look, progress, files):
                self._reached(name, progress, reached.epoch)

    def _begin(self, name: str, state: StateStore, progress: _Progress) -> None:
        """Reads the progress of earlier runs."""
        action = str(self._after[name].action)
        done = self._record.done_until(name, action)
        progress.handled = self._record.since(name, action, done)
        outcomes = self._record.unfinished(name, action)
        if outcomes:
            for files in due_files(state, name, after=0, until=state.head.epoch):
                progress.unfinished |= {
                    key: _Unfinished(each, outcomes[key] == "failed")
                    for each in files
                    if (key := _key(each)) in outcomes
                }
        progress.done = done
        progress.status = replace(progress.status, failed=progress.num_failed)

    def _do(self, look: _Look, progress: _Progress, files: Iterable[list[DueFile]]) -> bool:
        """Handles files, batch by batch.

        If the store refuses every file of a batch, it is tried again after a pause.  After some such tries the batch
        counts as failed, so that no file keeps the others from their turn.

        Returns:
            True if all files were handled; False if the time is over, or after a refused batch.

        Raises:
            NeedsChangedError: the declaration has changed; the actions before the change are recorded.
        """
        for some in files:
            wanted = iter([each for each in some if _key(each) not in progress.handled])
            while batch := list(islice(wanted, _BATCH)):
                if self._is_late():
                    return False
                outcomes = self._outcomes(look, batch)
                is_refused = all(each is not None and each.outcome == "failed" for each in outcomes)
                progress.tries = progress.tries + 1 if is_refused else 0
                if not is_refused or progress.tries >= _MOST_TRIES:
                    self._note(look.name, progress, batch, outcomes)
                if is_refused:
                    self._pause(look.name, progress, outcomes[0].error if outcomes[0] else None)
                    return False
                if None in outcomes:
                    raise NeedsChangedError
        return True

    def _try_again(self, look: _Look, progress: _Progress, unfinished: Iterable[DueFile]) -> None:
        """Tries unfinished files that are still due; the record of a file that fails again does not change."""
        keep_s, now = self._after[look.name].action.keep_s, look.moment.now
        files = iter([each for each in unfinished if each.is_old_enough(keep_s, now)])
        while (batch := list(islice(files, _BATCH))) and not self._is_late():
            outcomes = self._outcomes(look, batch)
            done = [None if each is None or each.outcome in ("failed", "waits") else each for each in outcomes]
            if not any(done):
                break
            self._note(look.name, progress, batch, done)
            if None in outcomes:
                raise NeedsChangedError
        self._plan_again(look.name, progress)

    def _plan_again(self, name: str, progress: _Progress) -> None:
        """Chooses the time of the next try of unfinished files."""
        keep_s, now = self._after[name].action.keep_s, self._clock.now()
        waits = [each.due.waits_s(keep_s, now) for each in progress.unfinished.values()]
        pause_s = min((each for each in waits if each), default=_LONGEST_PAUSE_S)
        progress.again_s = self._clock.monotonic() + min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, pause_s))

    def _is_late(self) -> bool:
        return self._clock.monotonic() > self._ends_s

    def _outcomes(self, look: _Look, batch: Sequence[DueFile]) -> list[FileResult | None]:
        """The result of each file; None if the declaration has changed before its turn."""
        self._confirm(look.name)
        missing = self._without_stored_rows(look, batch) if look.reach.needed_by else frozenset[tuple[str, bytes]]()
        return list(self._access.together(partial(self._handle, look, missing), batch))

    def _without_stored_rows(self, look: _Look, batch: Sequence[DueFile]) -> frozenset[tuple[str, bytes]]:
        """The files whose rows are not all in the stored rows of their source."""
        version = look.moment.state.head.views.get(stored_rows_name(look.name))
        paths = [each.file.path for each in batch]
        stored = {} if version is None else self._access.stored_rows(version, paths)
        return frozenset(
            _key(each)
            for each in batch
            if stored.get((each.file.path, version_number(each.file.version)), 0) != each.rows
        )

    def _handle(self, look: _Look, missing: Set[tuple[str, bytes]], due: DueFile) -> FileResult | None:
        action, changes = self._after[look.name].action, self._changes[look.name]
        if wait_s := due.waits_s(action.keep_s, look.moment.now):
            return FileResult("waits", _too_new(due, action.keep_s, wait_s))
        if _key(due) in missing:
            return FileResult("waits", f"{look.reach.needed_by}, and the stored rows lack rows of the file")
        try:
            if isinstance(action, Move):
                self._confirm(look.name, _CONFIRMED_FOR_S)
                changes.copy(due.file, action.location)
            self._confirm(look.name, _CONFIRMED_FOR_S)  # a copy takes any time, and a process can be suspended
            with self._views.acting(look.moment.needs):
                if isinstance(action, Delete | Move):
                    changes.delete(due.file)
                else:
                    changes.tag(due.file, action.tags)
        except NeedsChangedError:
            return None
        except ObjectVanished:
            return FileResult("absent")
        except ObjectChanged:
            return FileResult("changed")
        except (FencedError, RunFailedError):
            raise
        except SlackwaterError as error:
            return FileResult("failed", str(redact(first_line(error))))
        return FileResult("done")

    def _note(
        self, name: str, progress: _Progress, batch: Sequence[DueFile], outcomes: Sequence[FileResult | None]
    ) -> None:
        action, now = str(self._after[name].action), self._clock.now()
        results = [(each, done) for each, done in zip(batch, outcomes, strict=True) if done is not None]
        self._record.append(
            [
                HandledFile(
                    source=name,
                    action=action,
                    path=each.file.path,
                    version=each.file.version,
                    epoch=each.epoch,
                    outcome=done.outcome,
                    at=now,
                    error=done.error,
                    last_modified=each.file.last_modified,
                )
                for each, done in results
            ]
        )
        for each, done in results:
            progress.handled[_key(each)] = done.outcome
            if done.outcome in ("failed", "waits"):
                progress.unfinished[_key(each)] = _Unfinished(each, done.outcome == "failed", done.error)
            else:
                progress.unfinished.pop(_key(each), None)
        errors = [done.error for _, done in results if done.outcome == "failed"]
        if any(done.outcome in ("failed", "waits") for _, done in results):
            self._plan_again(name, progress)
        status = progress.status
        handled = sum(done.outcome == "done" for _, done in results)
        left = sum(done.outcome == "changed" for _, done in results)
        failed = progress.num_failed
        error = errors[0] if errors else (status.error if failed else None)
        progress.status = replace(
            status,
            handled=status.handled + handled,
            left=status.left + left,
            failed=failed,
            error=error,
        )
        if handled or errors:
            self._log.info(
                "files handled after the commit", source=name, action=action, files=handled, failed=len(errors)
            )

    def _pause(self, name: str, progress: _Progress, error: str | None) -> None:
        if progress.status.error != error:
            self._log.warning("files cannot be handled; it is tried again", source=name, error=error)
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(progress.tries - 1, 16))
        progress.due_s = self._clock.monotonic() + pause_s
        progress.status = replace(progress.status, error=error)

    def _reached(self, name: str, progress: _Progress, epoch: int) -> None:
        """Records that all files up to an epoch are done; an epoch without files is not worth a commit."""
        if progress.handled:
            self._record.append([], (name, str(self._after[name].action), epoch, self._clock.now()))
        progress.handled = {}
        progress.done = epoch


def _key(due: DueFile) -> tuple[str, bytes]:
    return due.file.path, due.file.version


def _too_new(due: DueFile, keep_s: float, wait_s: float) -> str:
    modified = f"{due.file.last_modified:%Y-%m-%d %H:%M:%S} UTC"
    if wait_s > keep_s:
        return f"its modification time {modified} is in the future"
    return f"it was modified at {modified}, less than keep_s={keep_s:g} seconds ago"


def _reason_of(progress: _Progress) -> str:
    """The reason why single files wait, with the number of the files; empty if no file waits."""
    waiting = [each.error for each in progress.unfinished.values() if not each.has_failed]
    return f"{len(waiting):,} files, for example: {waiting[-1]}" if waiting and waiting[-1] else ""


def _published(status: RunStatus, needs: Needs) -> dict[PublishedView, int | None]:
    """The last epoch of each table; None for a table without an epoch, or without a report yet."""
    found: dict[PublishedView, int | None] = dict.fromkeys(needs.published)
    return found | {PublishedView(each.view, each.table): each.epoch for each in status.publications}
