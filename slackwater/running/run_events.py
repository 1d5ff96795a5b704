"""The events of a run, for programs that read `slackwater run --json`.

Names and fields stay; new events and fields may be added.  In JSON, an event has its name in `event`, the time of its
observation in `at`, and its own fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import RunReport, RunStatus, SourceStatus
from state.tables.records import ViewClass


@dataclass(frozen=True)
class Started:
    """The run owns its root.  The first event, unless the run cannot start.

    Args:
        pipeline: the name of the pipeline.
    """

    event: ClassVar[str] = "started"
    pipeline: str
    root: str
    pid: int
    host: str
    version: str


@dataclass(frozen=True)
class PhaseChanged:
    """A new phase: `running` (also after a recovery), `paused`, `stopping` or `stopped`."""

    event: ClassVar[str] = "phase"
    phase: str


@dataclass(frozen=True)
class SparkReady:
    """The Spark application has started, `seconds` after the start of the run."""

    event: ClassVar[str] = "spark_ready"
    seconds: float


@dataclass(frozen=True)
class EpochCommitted:
    """An epoch is committed, and visible to all readers.

    Args:
        epoch: the epoch; text in JSON.
        committed_at: time of the commit, by the clock of the machine of the coordinator.
        files, rows, bytes, requests: the counts of the epoch.
        seconds: of each phase, as in `slackwater epochs`: `fetch`, `align`, `spark`; `collect`, which counts from the
            barrier; and `commit`.
        freshness_s: source → seconds from the time of its youngest file to the commit, for sources with files in it.
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
    """More files or records of a source are quarantined: the counts of all that are."""

    event: ClassVar[str] = "quarantined"
    source: str
    files: int
    records: int


@dataclass(frozen=True)
class ViewShown:
    """A backfill is complete; an epoch before this event shows the view."""

    event: ClassVar[str] = "view_shown"
    view: str
    view_class: ViewClass


@dataclass(frozen=True)
class ViewFailed:
    """An expression of a view has failed over its rows; the run goes on without the view.

    Args:
        stale_epoch: the last epoch whose rows it has; None if it has no rows.
    """

    event: ClassVar[str] = "view_failed"
    view: str
    stale_epoch: int | None
    error: str


@dataclass(frozen=True)
class Recovering:
    """A part of the run has failed; the run recovers from the last committed epoch.

    Args:
        reason: the failure; empty if the run had recovered before the observation.
        recoveries: number of failures that the run has survived, including this one.
    """

    event: ClassVar[str] = "recovering"
    reason: str
    recoveries: int


@dataclass(frozen=True)
class Failed:
    """The run ends with an error: its type in `state/errors.py`, and its message in one line."""

    event: ClassVar[str] = "failed"
    error: str
    message: str


@dataclass(frozen=True)
class Reported(RunReport):
    """The report of the run.  The last event of a run that has started, also after a failure."""

    event: ClassVar[str] = "report"

    @classmethod
    def of(cls, report: RunReport) -> Reported:
        return cls(**{**vars(report), "seconds": round(report.seconds, 3)})


RunEvent = (
    Started
    | PhaseChanged
    | SparkReady
    | EpochCommitted
    | CaughtUp
    | Quarantined
    | ViewShown
    | ViewFailed
    | Recovering
    | Failed
    | Reported
)

_LAST_PHASES = ("stopping", "stopped")
_PHASES = ("running", "paused", *_LAST_PHASES)


class RunEvents:
    """Finds the events between one status of a run and the next.

    A status has the last 32 epochs of the run: several statuses a second miss no epoch.
    """

    def __init__(self) -> None:
        self._last = RunStatus()
        self._last_epoch = 0
        self._to_be_shown: dict[str, int] = {}

    def of(self, status: RunStatus) -> Iterator[RunEvent]:
        """The events since the status before: recovery and phase, then commits, and last the end."""
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
        for name, view in status.views.items():
            if view.error is not None and (name not in last.views or last.views[name].error != view.error):
                yield ViewFailed(name, view.stale_epoch, view.error)
        if status.caught_up and not last.caught_up:
            yield CaughtUp(status.epoch)
        if ends:
            yield from phase

    def _quarantined(self, last: RunStatus, status: RunStatus) -> Iterator[RunEvent]:
        for name, source in status.sources.items():
            known = last.sources.get(name, SourceStatus())
            if any(now > then for now, then in zip(_added(source), _added(known), strict=True)):
                yield Quarantined(name, source.quarantined, source.rows_bad)

    def _shown(self, last: RunStatus, status: RunStatus) -> Iterator[RunEvent]:
        """Completed backfills, when the epoch that shows them is committed; it may still be in flight."""
        for name in last.backfills:
            if name not in status.backfills and name in status.views:
                self._to_be_shown[name] = max((each.epoch for each in status.in_flight), default=status.epoch)
        for name, epoch in [*self._to_be_shown.items()]:
            view = status.views.get(name)
            if view is None or view.error is not None or name in status.backfills:
                del self._to_be_shown[name]
            elif status.epoch >= epoch:
                del self._to_be_shown[name]
                yield ViewShown(name, view.view_class)


def _added(source: SourceStatus) -> tuple[int, int]:
    """The files and records that the run has quarantined, without the files that it has read later."""
    return source.quarantined - source.before.quarantined, source.rows_bad - source.before.rows_bad


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
