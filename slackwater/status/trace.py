"""The trace of one committed epoch: the seconds of its phases, and of the work in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from slackwater.status.run_status import RunStatus
from state.ownership.owner import Owner
from state.tables.epoch_trace import EpochTrace
from state.tables.epoch_trace import Span as Span
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds


@dataclass(frozen=True)
class Trace:
    """The phases of an epoch, and the duration of the work in each.

    Args:
        epoch: the epoch.
        committed_at: time of the commit.
        files: files that ended in the epoch.
        rows: rows of the epoch.
        bytes: bytes that were read for it.
        requests: requests that were made for it.
        spans: in the order of the phases, each phase before its parts; times are seconds from the injection of the
            barrier, so the fetch phase begins below 0.
        left_out: phase → number of its shorter spans that are not in `spans`.
        planned_queries: queries that Spark analysed or planned for it; 0 once each view has its plan.
        commit_s: seconds of the commit; None if they are not known.  The record of the next epoch has them, and before
            it the process that runs the pipeline.
    """

    epoch: int
    committed_at: datetime
    files: int
    rows: int
    bytes: int
    requests: int
    spans: tuple[Span, ...]
    left_out: Mapping[str, int]
    planned_queries: int
    commit_s: float | None

    @property
    def seconds(self) -> float:
        """Seconds from the opening of the epoch to the end of its commit, or to the last span that is known."""
        if not self.spans:
            return 0.0
        return max(span.start_s + span.seconds for span in self.spans) - min(span.start_s for span in self.spans)

    @classmethod
    def of(
        cls, epoch: int, committed_at: datetime, counts: EpochCounts, trace: EpochTrace, commit_s: float | None
    ) -> Trace:
        """The trace that was stored with the commit, and the commit after it."""
        spans = trace.spans
        if commit_s is not None:
            end_s = max((span.start_s + span.seconds for span in spans), default=0.0)
            spans = (*spans, Span("commit", "", end_s, commit_s))
        return cls(
            epoch=epoch,
            committed_at=committed_at,
            files=counts.files,
            rows=counts.rows,
            bytes=counts.bytes,
            requests=counts.requests,
            spans=spans,
            left_out=trace.left_out,
            planned_queries=trace.planned_queries,
            commit_s=commit_s,
        )


def trace_of(record: EpochRecord, following: EpochRecord | None, owner: Owner | None) -> Trace:
    """The trace of an epoch, from its record, the record of the next epoch and the last status of its owner."""
    kept = EpochTrace(phases(record.seconds)) if record.trace is None else EpochTrace.of_json(record.trace)
    commit_s = _reported_by_the_next(record, following)
    if commit_s is None:
        commit_s = _reported_by_the_owner(record.epoch, owner)
    return Trace.of(record.epoch, record.committed_at, record.counts, kept, commit_s)


def phases(seconds: EpochSeconds) -> tuple[Span, ...]:
    """The phases of an epoch whose record has no trace."""
    return (
        Span("fetch", "", -seconds.fetch, seconds.fetch),
        Span("align", "", 0.0, seconds.align),
        Span("spark", "", seconds.align, seconds.spark),
        Span("collect", "", seconds.align + seconds.spark, seconds.collect_alone),
    )


def _reported_by_the_next(record: EpochRecord, following: EpochRecord | None) -> float | None:
    if following is None or following.trace is None:
        return None
    before = EpochTrace.of_json(following.trace).commit_before
    return before[1] if before is not None and before[0] == record.epoch else None


def _reported_by_the_owner(epoch: int, owner: Owner | None) -> float | None:
    status = RunStatus.of_owner(owner)
    recent = () if status is None else status.recent
    return next((each.commit_s for each in recent if each.epoch == epoch), None)
