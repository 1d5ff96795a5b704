"""CommitTimes: the times of commits, also of epochs that have expired since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from slackwater.plugins.after_commit.file_access import FileRecord
from state.lance.handled_files import ClockChange, CommitTime

_PARTS = 32
"""A known time is later than the commit of an expired epoch by at most this part of the shortest `keep_s`."""
_SHORTEST = timedelta(minutes=1)
"""The record gets no two times within this time, so after a restart a known time may be later by as much."""


class CommitTimes:
    """Known commit times of a root: of all retained epochs, and of some that have expired.

    The root forgets the commit time of an epoch with the epoch.  An epoch with an unknown time was committed before the
    next epoch with a known one.  So files are kept for their time or longer, never for less.

    Args:
        record: of the root.  It gets times only if epochs expire before their files may be touched.
        keep_s: the seconds for which files are kept, one number for each source.
    """

    def __init__(self, record: FileRecord, keep_s: Collection[float]) -> None:
        self._record = record
        self._longest = timedelta(seconds=max(keep_s, default=0.0))
        self._apart = timedelta(seconds=min((each for each in keep_s if each), default=0.0) / _PARTS)
        self._noted: list[CommitTime] | None = None
        self._recorded_at: datetime | None = None

    def look(self, retained: pa.Table, now: datetime) -> tuple[CommitTime, ...]:
        """All known times, by epoch.

        Args:
            retained: the retained epochs, see `StateStore.epoch_times`.
            now: the wall time.

        Raises:
            StorageError: the record cannot be read or written.
        """
        kept = _retained(retained)
        if self._longest and kept:
            self._note(kept, now)
        return _joined(self._noted or (), kept)

    def _note(self, kept: Sequence[CommitTime], now: datetime) -> None:
        """Notes the time of the last commit, for the time after its expiry."""
        if self._noted is None:
            self._noted = self._record.commit_times()
            self._recorded_at = self._noted[-1].at if self._noted else None
        kept_since, last = now - self._longest, kept[-1]
        if not self._noted or _is_apart(last.at, self._noted[-1].at, self._apart):
            # Of the times that are old enough only the last matters.
            old = [each for each in self._noted if each.at <= kept_since]
            self._noted = [*old[-1:], *(each for each in self._noted if each.at > kept_since), last]
        apart = max(self._apart, _SHORTEST)
        is_retained = any(kept_since - 2 * apart <= each.at <= kept_since for each in kept)
        if not is_retained and _is_apart(last.at, self._recorded_at, apart):
            self._record.append_commit_time(last)
            self._recorded_at = last.at


def known_commit_times(record: FileRecord, retained: pa.Table) -> tuple[CommitTime, ...]:
    """The known times of a root, for a look that notes no further ones."""
    return _joined(record.commit_times(), _retained(retained))


def committed_until(
    commits: Sequence[CommitTime], time: datetime, now: datetime, change: ClockChange | None = None
) -> int:
    """The last epoch before which, and in which, everything was committed until a time; 0 for none.

    Commit times may go back from epoch to epoch, when the clock is set.  An epoch with an unknown time is as young as
    the next epoch with a known time.

    Args:
        commits: the known times, by epoch, up to the last epoch.
        time: the commit time to compare with.
        now: the current wall time.
        change: the last recorded change of the clock, which is earlier than `time`; None without one.  A commit before
            the change counts as made at the change.  If its recorded time is later than the change, and not in the
            future, the recorded time counts: a clock that was set back may be corrected between two runs, and no run
            records that change.
    """
    last = 0
    for commit in commits:
        is_of_this_clock = change is None or commit.epoch > change.epoch or commit.at <= now
        if commit.at > time and is_of_this_clock:
            break
        last = commit.epoch
    return last


def _retained(retained: pa.Table) -> list[CommitTime]:
    columns = (retained[name].to_pylist() for name in ("epoch", "committed_at"))
    return [CommitTime(epoch, at) for epoch, at in zip(*columns, strict=True)]


def _joined(noted: Iterable[CommitTime], kept: Iterable[CommitTime]) -> tuple[CommitTime, ...]:
    times = {each.epoch: each for each in (*noted, *kept)}
    return tuple(times[epoch] for epoch in sorted(times))


def _is_apart(at: datetime, last: datetime | None, apart: timedelta) -> bool:
    """True if two times differ by this much, also if the clock was set back between them."""
    return last is None or abs(at - last) >= apart
