"""The policy after a failed attempt: the pause before the next one and its caution, or the end of the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from actors.files import FileKey, PathKey
from actors.protocol.run_state import RunState
from actors.settings import RecoverySettings
from state.errors import (
    AccessDeniedError,
    BadInputError,
    BucketNotFoundError,
    CommitRefusedError,
    CommitUnknownError,
    FencedError,
    NotFoundError,
    OwnedError,
    QueueNotFoundError,
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
_NO_FILE_IS_TO_BLAME = (StorageError, CommitRefusedError, CommitUnknownError, SparkNotStartedError)
_TRIES_ALONE = 3
_POISONED_IN_A_ROW = 3
_OFTEN = 5


@dataclass(frozen=True)
class NextAttempt:
    """The attempt after a failure.

    Args:
        pause_s: seconds before it begins.
        files_at_once, poisoned: see `AttemptPlan`.
    """

    pause_s: float
    files_at_once: int | None
    poisoned: Mapping[FileKey, str]


class RecoveryPolicy:
    """The failures of one run, and the decisions that follow them.

    An epoch that killed twice is tried with half of its files, down to one.  A version that was alone in three epochs
    that killed is poisoned; a later version of the file is not.  When three files in a row are poisoned, no file is to
    blame, and the run is over; it is also over when its tries are used up.  Every committed file resets the count,
    unless failures are frequent.

    Args:
        settings: pauses and tries.
    """

    def __init__(self, settings: RecoverySettings) -> None:
        self._settings = settings
        self._failures = 0
        self._finished_files = 0
        self._recent: deque[float] = deque(maxlen=_OFTEN)
        self._files_at_once: int | None = None
        self._alone: dict[FileKey, int] = {}
        self._poisoned: dict[FileKey, str] = {}
        self._poisoned_in_a_row = 0

    def on_failure(self, error: Exception, state: RunState, now_s: float) -> NextAttempt | None:
        """Decides on the next attempt.

        Args:
            error: the error that ended the attempt.
            state: its last known state.
            now_s: time of the monotonic clock.

        Returns:
            The next attempt; None if the run is over.
        """
        if isinstance(error, _FINAL):
            return None
        if state.totals.files > self._finished_files:
            self._finished_files = state.totals.files
            self._failures = self._poisoned_in_a_row = 0
        self._failures += 1
        self._recent.append(now_s)
        self._files_at_once = state.files_at_once
        if not isinstance(error, _NO_FILE_IS_TO_BLAME):
            self._suspect(error, state, now_s)
        if self._failures > self._settings.max_tries or self._poisoned_in_a_row >= _POISONED_IN_A_ROW:
            return None
        pause_s = min(self._settings.first_pause_s * 2.0 ** (self._failures - 1), self._settings.max_pause_s)
        return NextAttempt(pause_s, self._files_at_once, dict(self._poisoned))

    def forgive(self, paths: Iterable[PathKey]) -> None:
        """Clears the record of objects that are to be read again."""
        retried = set(paths)
        self._alone = {file: count for file, count in self._alone.items() if file[:2] not in retried}
        self._poisoned = {file: reason for file, reason in self._poisoned.items() if file[:2] not in retried}

    def _suspect(self, error: Exception, state: RunState, now_s: float) -> None:
        """Makes the next attempt smaller, or blames a file."""
        paths = {file[:2] for file in state.suspects}
        if len(paths) == 1:
            self._files_at_once = 1
            for file in state.suspects:
                self._alone[file] = self._alone.get(file, 0) + 1
            poisoned = [file for file in state.suspects if self._alone[file] >= _TRIES_ALONE]
            for file in poisoned:
                self._poisoned[file] = f"poison: alone it ended {_TRIES_ALONE} attempts, the last with: {error}"
            if poisoned:
                self._poisoned_in_a_row += 1
                self._failures = 1
        elif state.files_at_once is not None:
            self._shrink(len(paths) or state.files_at_once)
        elif self._failures >= 2 or self._is_often(now_s):
            self._shrink(state.files_in_flight)

    def _shrink(self, files: int) -> None:
        self._files_at_once = max(1, files // 2)
        self._failures = min(self._failures, 2)

    def _is_often(self, now_s: float) -> bool:
        return len(self._recent) == _OFTEN and now_s - self._recent[0] <= self._settings.suspicious_within_s
