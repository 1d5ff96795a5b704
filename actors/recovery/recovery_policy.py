"""The policy after a failed attempt: the pause before the next attempt and its caution, or the end of the run.

A death has one of two causes: a file that ends the actor that reads it, or a view whose work ends Spark or an executor.
An error that names views accuses one of them, and no file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from actors.files import FileKey, PathKey
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import Poisoned
from actors.settings import RecoverySettings
from state.errors import (
    AccessDeniedError,
    BadInputError,
    BucketNotFoundError,
    CommitRefusedError,
    CommitUnknownError,
    FencedError,
    NodeLostError,
    NotFoundError,
    OwnedError,
    QueueNotFoundError,
    RowsLostError,
    RunFailedError,
    SparkNotStartedError,
    StorageError,
    UsageError,
)

_FINAL = (
    UsageError,
    BadInputError,
    FencedError,
    OwnedError,
    NotFoundError,
    BucketNotFoundError,
    QueueNotFoundError,
    AccessDeniedError,
)
_NO_FILE_IS_TO_BLAME = (
    StorageError,
    CommitRefusedError,
    CommitUnknownError,
    SparkNotStartedError,
    NodeLostError,
    RowsLostError,
)
_TRIES_ALONE = 3
_POISONED_IN_A_ROW = 3
_OFTEN = 5


@dataclass(frozen=True)
class _Alone:
    """Attempts in a row that ended while one version was admitted alone, at the same committed rows of it."""

    rows: int
    tries: int


@dataclass(frozen=True)
class NextAttempt:
    """The attempt after a failure.

    Args:
        pause_s: seconds before it begins.
        files_at_once, poisoned, suspended, alone_s: see `AttemptPlan`.
    """

    pause_s: float
    files_at_once: int | None
    poisoned: Mapping[FileKey, Poisoned]
    suspended: Mapping[str, str]
    alone_s: float


class RecoveryPolicy:
    """The failures of one run, and the decisions that follow them.

    An epoch that killed twice is tried with half of its files, down to one.  A version that was alone in three epochs
    that killed, without a committed row of it between them, is poisoned; a later version of the file is not.  The last
    state of an attempt may lack a commit, so the next attempt compares the rows with the store.  When
    three files in a row are poisoned, no file is to blame, and the run is over; it is also over when its tries are used
    up.  Every committed file or row resets the count, unless failures are frequent.

    After a death in the work on views, the next attempt computes one view at a time for a while.  When a view is the
    only one at a second death, that attempt reads one file at a time; at the third, the view is suspended.  The count
    of a view ends with a committed change of the view.
    """

    def __init__(self, settings: RecoverySettings) -> None:
        self._settings = settings
        self._failures = 0
        self._files = self._rows = 0
        self._recent: deque[float] = deque(maxlen=_OFTEN)
        self._files_at_once: int | None = None
        self._alone: dict[FileKey, _Alone] = {}
        self._poisoned: dict[FileKey, Poisoned] = {}
        self._poisoned_in_a_row = 0
        self._deaths: dict[str, int] = {}
        self._suspended: dict[str, str] = {}

    def on_failure(
        self, error: Exception, state: RunState, now_s: float, changed: Collection[str] = ()
    ) -> NextAttempt | None:
        """Decides on the next attempt.

        Args:
            error: the error that ended the attempt.
            state: its last known state.
            now_s: time of the monotonic clock.
            changed: the views that committed epochs of the attempt have changed, or show as failed.

        Returns:
            The next attempt; None if the run is over.
        """
        if isinstance(error, _FINAL):
            return None
        if state.totals.rows > self._rows:
            self._failures = self._poisoned_in_a_row = 0
        elif state.totals.files > self._files:
            # Of the files in quarantine, too: that shows not yet that others can be read.
            self._failures = 0
        self._files, self._rows = state.totals.files, state.totals.rows
        self._failures += 1
        self._recent.append(now_s)
        self._files_at_once = state.files_at_once
        for view in changed:
            self._deaths.pop(view, None)
            self._suspended.pop(view, None)
        views = error.views if isinstance(error, RunFailedError) else frozenset()
        if views:
            self._suspect_view(error, views)
        elif not isinstance(error, _NO_FILE_IS_TO_BLAME):
            self._suspect(error, state, now_s)
        if self._failures > self._settings.max_tries or self._poisoned_in_a_row >= _POISONED_IN_A_ROW:
            return None
        pause_s = min(self._settings.first_pause_s * 2.0 ** (self._failures - 1), self._settings.max_pause_s)
        alone_s = self._settings.suspicious_within_s if views else 0.0
        return NextAttempt(pause_s, self._files_at_once, dict(self._poisoned), dict(self._suspended), alone_s)

    def forgive(self, paths: Iterable[PathKey]) -> None:
        """Clears the record of objects that are to be read again."""
        retried = set(paths)
        self._alone = {file: count for file, count in self._alone.items() if file[:2] not in retried}
        self._poisoned = {file: reason for file, reason in self._poisoned.items() if file[:2] not in retried}

    def _suspect_view(self, error: Exception, views: Collection[str]) -> None:
        """Counts a death of one view alone, and suspends it; the deaths of several views say nothing yet."""
        if len(views) > 1:
            return
        (view,) = views
        self._deaths[view] = deaths = self._deaths.get(view, 0) + 1
        if deaths < _TRIES_ALONE:
            self._failures = min(self._failures, 2)
        if deaths >= _TRIES_ALONE - 1:
            self._files_at_once = 1
        if deaths == _TRIES_ALONE:
            self._failures = 1
            self._suspended[view] = f"it ended {_TRIES_ALONE} attempts, the last with: {error}"
        if deaths > _TRIES_ALONE:  # it is new, and its analysis ends Spark: no epoch can record that it has failed
            self._failures = self._settings.max_tries + 1

    def _suspect(self, error: Exception, state: RunState, now_s: float) -> None:
        """Makes the next attempt smaller, or blames a file."""
        paths = {file[:2] for file in state.suspects}
        if len(paths) == 1:
            self._files_at_once = 1
            self._accuse(error, state.suspects)
        elif paths:
            self._shrink(len(paths))
        elif state.files_at_once is None and (self._failures >= 2 or self._is_often(now_s)):
            self._shrink(state.files_in_flight)

    def _accuse(self, error: Exception, suspects: Mapping[FileKey, int]) -> None:
        """Counts failures of the versions of one path; poisons versions that were at the same row in each failure."""
        for file, rows in suspects.items():
            before = self._alone.get(file)
            tries = before.tries + 1 if before is not None and before.rows == rows else 1
            self._alone[file] = _Alone(rows, tries)
        poisoned = [file for file in suspects if self._alone[file].tries >= _TRIES_ALONE]
        for file in poisoned:
            reason = f"poison: alone it ended {_TRIES_ALONE} attempts, the last with: {error}"
            self._poisoned[file] = Poisoned(reason, suspects[file])
        if poisoned:
            self._poisoned_in_a_row += 1
            self._failures = 1

    def _shrink(self, files: int) -> None:
        self._files_at_once = max(1, files // 2)
        self._failures = min(self._failures, 2)

    def _is_often(self, now_s: float) -> bool:
        return len(self._recent) == _OFTEN and now_s - self._recent[0] <= self._settings.suspicious_within_s
