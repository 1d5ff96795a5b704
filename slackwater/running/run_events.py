"""What happens in a run, one event after the other: for programs that follow `slackwater run --json`.

Names and fields stay; new events and new fields may come.  As JSON an event has its name in `event`, the time of its
observation in `at`, and its fields beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import RunReport, RunStatus


@dataclass(frozen=True)
class Started:
    """The run holds its root.  The first event, unless it could not start.

    Args:
        pipeline: its name.
        root: where it writes.
        pid, host: the process.
        version: of Slackwater.
    """

    event: ClassVar[str] = "started"
    pipeline: str
    root: str
    pid: int
    host: str
    version: str


@dataclass(frozen=True)
class PhaseChanged:
    """`running`, `paused`, `stopping` or `stopped`; `running` also after a recovery."""

    event: ClassVar[str] = "phase"
    phase: str


@dataclass(frozen=True)
class SparkReady:
    """The Spark application is there, `seconds` after the start of the run."""

    event: ClassVar[str] = "spark_ready"
    seconds: float


@dataclass(frozen=True)
class EpochCommitted:
    """An epoch is visible to everybody.

    Args:
        epoch: which; text in JSON.
        committed_at: by the clock of the machine that committed it.
        files, rows, bytes, requests: what it brought, and what that took.
        seconds: of each phase, as in `slackwater epochs`: `fetch`, `align`, `spark`; `collect`, which counts from the
            barrier; and `commit`.
        freshness_s: source → from the time of its youngest file to the commit, for those that brought files.
    """

    event: ClassVar[str] = "epoch"
    epoch: int
    committed_at: datetime
    files: int
    rows: int
    bytes: int
    requests: int
    seconds: Mapping[str, float]
    freshness_s: Mapping[str, float]


@dataclass(frozen=True)
class CaughtUp:
    """Every object of a listing that began after the start, or after the last recovery, is finished and committed."""

    event: ClassVar[str] = "caught_up"
    epoch: int


@dataclass(frozen=True)
class Quarantined:
    """Files or records of a source could not be read: how many, since the start of the run."""

    event: ClassVar[str] = "quarantined"
    source: str
    files: int
    records: int


@dataclass(frozen=True)
class ViewShown:
    """A view that came late has caught up; it was shown complete by an epoch before this event."""

    event: ClassVar[str] = "view_shown"
    view: str
    view_class: str


@dataclass(frozen=True)
class Recovering:
    """A part of the run has died or failed; the run goes on by itself from the last committed epoch.

    Args:
        reason: what has failed; empty if the run went on before that was seen.
        recoveries: how many failures the run has survived, with this one.
    """

    event: ClassVar[str] = "recovering"
    reason: str
    recoveries: int


@dataclass(frozen=True)
class Failed:
    """The run ends with an error: its type, one of the tree of `state/errors.py`, and its line."""

    event: ClassVar[str] = "failed"
    error: str
    message: str


@dataclass(frozen=True)
class Reported(RunReport):
    """What the run did, however it ended.  The last event of a run that had started."""

    event: ClassVar[str] = "report"

    @classmethod
    def of(cls, report: RunReport) -> Reported:
        """The event of a report."""
        return cls(**{**vars(report), "seconds": round(report.seconds, 3)})


RunEvent = (
    Started
    | PhaseChanged
    | SparkReady
    | EpochCommitted
    | CaughtUp
    | Quarantined
    | ViewShown
    | Recovering
    | Failed
    | Reported
)

_LAST_PHASES = ("stopping", "stopped")
_PHASES = ("running", "paused", *_LAST_PHASES)


class RunEvents:
    """Finds the events between one status of a run and the next.

    A status carries the last 32 epochs of the run, so that whoever looks several times a second misses none.
    """

    def __init__(self) -> None:
        self._last = RunStatus()
        self._last_epoch = 0
        self._to_be_shown: dict[str, int] = {}

    def of(self, status: RunStatus) -> Iterator[RunEvent]:
        """What has happened since the status before: first how it goes on, then what was committed, at last the end."""
        last, self._last = self._last, status
        if status.recoveries > last.recoveries:
            yield Recovering(status.message if status.phase == "recovering" else "", status.recoveries)
        phase = [PhaseChanged(status.phase)] if status.phase != last.phase and status.phase in _PHASES else []
        ends = status.phase in _LAST_PHASES
        if not ends:
            yield from phase
        if status.spark == "ready" and last.spark != "ready":
            yield SparkReady(round(status.seconds, 3))
        for epoch in status.recent:
            if epoch.epoch > self._last_epoch:
                self._last_epoch = epoch.epoch
                yield _committed(epoch)
        yield from self._quarantined(last, status)
        yield from self._shown(last, status)
        if status.caught_up and not last.caught_up:
            yield CaughtUp(status.epoch)
        if ends:
            yield from phase

    def _quarantined(self, last: RunStatus, status: RunStatus) -> Iterator[RunEvent]:
        for name, source in status.sources.items():
            before = last.sources.get(name)
            files, records = (0, 0) if before is None else (before.quarantined, before.rows_bad)
            if source.quarantined > files or source.rows_bad > records:
                yield Quarantined(name, source.quarantined, source.rows_bad)

    def _shown(self, last: RunStatus, status: RunStatus) -> Iterator[RunEvent]:
        """Views that are late no more: their epoch is one of those in flight, unless it is committed already."""
        for name in last.backfills:
            if name not in status.backfills and name in status.views:
                self._to_be_shown[name] = max((each.epoch for each in status.in_flight), default=status.epoch)
        for name, epoch in [*self._to_be_shown.items()]:
            if name not in status.views or name in status.backfills:
                del self._to_be_shown[name]
            elif status.epoch >= epoch:
                del self._to_be_shown[name]
                yield ViewShown(name, status.views[name].view_class)


def _committed(epoch: CommittedEpoch) -> EpochCommitted:
    seconds = epoch.seconds
    return EpochCommitted(
        epoch=epoch.epoch,
        committed_at=epoch.committed_at,
        files=epoch.counts.files,
        rows=epoch.counts.rows,
        bytes=epoch.counts.bytes,
        requests=epoch.counts.requests,
        seconds={
            "fetch": round(seconds.fetch, 4),
            "align": round(seconds.align, 4),
            "spark": round(seconds.spark, 4),
            "collect": round(seconds.collect, 4),
            "commit": round(epoch.commit_s, 4),
        },
        freshness_s={source: round(each, 3) for source, each in epoch.freshness_s.items()},
    )
