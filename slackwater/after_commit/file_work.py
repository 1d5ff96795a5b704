"""The work on the files of a run: what is due is done, a batch at a time, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.telemetry.logging import redact
from actors.telemetry.text import first_line
from slackwater.after_commit.actions import Delete, Move
from slackwater.after_commit.declaration import DeclaredAfter
from slackwater.after_commit.due_files import DueFile, due_files, reach, still_due
from slackwater.after_commit.file_access import FileAccess, FileResult
from slackwater.status.run_status import AfterCommitStatus, RunStatus
from state.clock import Clock
from state.errors import SlackwaterError, StorageError, StoreNotFoundError
from state.lance.handled_files import HandledFile, Outcome
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog

_BATCH = 200
_MOST_TRIES = 3
_LOOK_S, _AGAIN_S = 5.0, 10.0
_REST, _LONGEST_REST_S = 20, 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 600.0
LAST_WORK_S = 30.0
"""The seconds that the end of a run waits for files that are due; the next run goes on with the others."""


@dataclass
class _Progress:
    """What is known of one source.

    Attributes:
        done: the epoch up to which all of its files are done; None until the record is read.
        handled: files behind `done` that an earlier run has done.
        failed: files that the store has refused.
        tries: batches in a row of which the store has refused every file.
        due_s: the monotonic time of the next batch.
        again_s: the monotonic time of the next try of the failed files.
        status: what is told of it.
    """

    status: AfterCommitStatus
    done: int | None = None
    handled: dict[tuple[str, bytes], Outcome] = field(default_factory=dict)
    failed: dict[tuple[str, bytes], DueFile] = field(default_factory=dict)
    tries: int = 0
    due_s: float = float("-inf")
    again_s: float = float("-inf")


class FileWork:
    """Deletes, moves and tags the files of a run's sources.  Called by one thread at a time.

    Args:
        root: the root of the run.
        after: the sources, and what is done to their files.
        require_owner: raises FencedError if the root has another owner.
        clock: of the run.
        access: the store, the record and the objects; None for those at the root.
    """

    def __init__(
        self,
        root: Location,
        after: Sequence[DeclaredAfter],
        require_owner: Callable[[], None],
        clock: Clock,
        access: FileAccess | None = None,
    ) -> None:
        self._root, self._require_owner, self._clock = root, require_owner, clock
        self._access = access or FileAccess.of(root, clock)
        self._record, self._log = self._access.record, self._access.log
        self._after = {each.source.name: each for each in after}
        self._changes = {name: self._access.changes(each.source.location) for name, each in self._after.items()}
        self._progress = {
            name: _Progress(AfterCommitStatus(name, str(each.action))) for name, each in self._after.items()
        }
        self._state: StateStore | None = None
        self._ends_s = self._rests_s = self._looked_s = float("-inf")
        self._looked = 0
        self._has_error = False

    @property
    def statuses(self) -> tuple[AfterCommitStatus, ...]:
        """What is told of each source, a moment ago."""
        return tuple(each.status for each in self._progress.values())

    def look(self, status: RunStatus) -> bool:
        """Does what is due, for some seconds, if there is a new epoch or some time has passed; True.

        A look reads the ledger: after one that has found nothing to do, a rest follows that is many times as long.

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
        """Does what is due at the end of the run, within `LAST_WORK_S`."""
        if status.epoch:
            self._do_for(status, LAST_WORK_S)

    def _do_for(self, status: RunStatus, seconds: float) -> None:
        now_s = self._clock.monotonic()
        self._ends_s = now_s + seconds
        published = _published(status)
        try:
            self._require_owner()
            state = self._latest()
            catalog = Catalog.of(state.scan("catalog"))
            for name in self._after:
                self._work(name, state, catalog, published)
            if not self._is_late():
                self._looked, self._looked_s = status.epoch, now_s
            self._has_error = False
        except (StorageError, StoreNotFoundError) as error:
            if not self._has_error:
                self._log.warning("files wait for the root", error=first_line(error))
            self._has_error = True

    def _latest(self) -> StateStore:
        if self._state is None:
            self._state = self._access.open()
        else:
            self._state = self._state.reopen()
        return self._state

    def _work(self, name: str, state: StateStore, catalog: Catalog, published: dict[str, int | None]) -> None:
        declared, progress = self._after[name], self._progress[name]
        if progress.done is None:
            self._begin(name, state, progress)
        assert progress.done is not None
        reached = reach(
            state,
            catalog,
            self._root,
            name,
            keep_s=declared.action.keep_s,
            is_stored=declared.source.materialize,
            published=published,
            now=self._clock.now(),
        )
        progress.status = replace(progress.status, waits_for=reached.waits_for)
        now_s = self._clock.monotonic()
        if progress.failed and now_s >= progress.again_s and reached.epoch:
            self._try_again(name, progress, still_due(state, progress.failed.values(), until=reached.epoch))
        if now_s >= progress.due_s and reached.epoch > progress.done:
            files = due_files(state, name, after=progress.done, until=reached.epoch)
            if self._do(name, progress, files):
                self._reached(name, progress, reached.epoch)

    def _begin(self, name: str, state: StateStore, progress: _Progress) -> None:
        """Takes up what earlier runs have done."""
        action = str(self._after[name].action)
        done = self._record.done_until(name, action)
        progress.handled = self._record.since(name, action, done)
        failed = set(self._record.failed(name, action))
        if failed:
            for files in due_files(state, name, after=0, until=state.head.epoch):
                progress.failed |= {key: each for each in files if (key := _key(each)) in failed}
        progress.done = done
        progress.status = replace(progress.status, failed=len(progress.failed))

    def _do(self, name: str, progress: _Progress, files: Iterable[list[DueFile]]) -> bool:
        """Handles files, batch by batch.

        If the store refuses every file of a batch, it is tried again after a pause.  After some such tries the batch
        counts as failed, so that no file keeps the others from their turn.

        Returns:
            Whether all of them have had it: not if the time is over, or after a refused batch.
        """
        for some in files:
            wanted = iter([each for each in some if _key(each) not in progress.handled])
            while batch := list(islice(wanted, _BATCH)):
                if self._is_late():
                    return False
                outcomes = self._outcomes(name, batch)
                is_refused = all(each.outcome == "failed" for each in outcomes)
                progress.tries = progress.tries + 1 if is_refused else 0
                if not is_refused or progress.tries >= _MOST_TRIES:
                    self._note(name, progress, batch, outcomes)
                if is_refused:
                    self._pause(name, progress, outcomes[0].error)
                    return False
        return True

    def _try_again(self, name: str, progress: _Progress, failed: Iterable[DueFile]) -> None:
        """Tries failed files that are still due; what fails again stays as it is recorded."""
        files = iter(failed)
        while (batch := list(islice(files, _BATCH))) and not self._is_late():
            outcomes = self._outcomes(name, batch)
            done = [pair for pair in zip(batch, outcomes, strict=True) if pair[1].outcome != "failed"]
            if not done:
                break
            self._note(name, progress, [each for each, _ in done], [each for _, each in done])
        progress.again_s = self._clock.monotonic() + _LONGEST_PAUSE_S

    def _is_late(self) -> bool:
        return self._clock.monotonic() > self._ends_s

    def _outcomes(self, name: str, batch: Sequence[DueFile]) -> list[FileResult]:
        self._require_owner()
        return list(self._access.together(partial(self._handle, name), batch))

    def _handle(self, name: str, due: DueFile) -> FileResult:
        action, changes = self._after[name].action, self._changes[name]
        try:
            if isinstance(action, Delete):
                changes.delete(due.file)
            elif isinstance(action, Move):
                changes.move(due.file, action.location)
            else:
                changes.tag(due.file, action.tags)
        except ObjectVanished:
            return FileResult("gone")
        except ObjectChanged:
            return FileResult("changed")
        except SlackwaterError as error:
            return FileResult("failed", str(redact(first_line(error))))
        return FileResult("done")

    def _note(self, name: str, progress: _Progress, batch: Sequence[DueFile], outcomes: Sequence[FileResult]) -> None:
        """Records what was done."""
        action, now = str(self._after[name].action), self._clock.now()
        self._record.append(
            [
                HandledFile(name, action, each.file.path, each.file.version, each.epoch, done.outcome, now, done.error)
                for each, done in zip(batch, outcomes, strict=True)
            ]
        )
        for each, done in zip(batch, outcomes, strict=True):
            progress.handled[_key(each)] = done.outcome
            if done.outcome == "failed":
                progress.failed[_key(each)] = each
            else:
                progress.failed.pop(_key(each), None)
        errors = [each.error for each in outcomes if each.error is not None]
        if errors:
            progress.again_s = self._clock.monotonic() + _LONGEST_PAUSE_S
        status = progress.status
        handled = sum(each.outcome == "done" for each in outcomes)
        left = sum(each.outcome == "changed" for each in outcomes)
        error = errors[0] if errors else (status.error if progress.failed else None)
        progress.status = replace(
            status,
            handled=status.handled + handled,
            left=status.left + left,
            failed=len(progress.failed),
            error=error,
        )
        self._log.info(
            "files are handled after the commit", source=name, action=action, files=handled, failed=len(errors)
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


def _published(status: RunStatus) -> dict[str, int | None]:
    """View → the last epoch that all tables that follow it have."""
    found: dict[str, int | None] = {}
    for each in status.publications:
        known = found.get(each.view, each.epoch)
        found[each.view] = None if known is None or each.epoch is None else min(known, each.epoch)
    return found
