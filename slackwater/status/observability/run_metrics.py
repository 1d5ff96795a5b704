"""Metrics of a run, from its status and its committed epochs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from actors.protocol.run_state import CommittedEpoch
from actors.telemetry.counted import Counted, counters_of, metrics_of
from actors.telemetry.metrics import Metric, ages, durations, gauge
from slackwater.status.run_status import (
    AfterCommitStatus,
    MessageStatus,
    PublicationStatus,
    RunStatus,
    SourceStatus,
    ViewStatus,
)
from state.tables.epoch_trace import EpochTrace, Span

RUN_PHASES = ("starting", "running", "paused", "recovering", "stopping", "stopped", "failed")
"""The values of `RunStatus.phase`."""

EPOCH_PHASE = durations("epoch_phase", "Duration of each phase of a committed epoch.", "phase")
BARRIER = durations("barrier", "From the injection of a barrier until every actor has collected its epoch.")
VIEW = durations("view", "Duration of the work on a view in an epoch, in Spark and in writing it.", "view")
FRESHNESS = ages(
    "freshness", "Age of the youngest file of a source at the commit of the epoch that finished it.", "source"
)
LAST_COMMIT = gauge("last_commit_timestamp_seconds", "seconds since 1970", "Time of the last commit of the run.")
EPOCHS_IN_FLIGHT = gauge("epochs_in_flight", "epochs", "Epochs between their barrier and their commit.", "phase")
PHASE = gauge("run_phase", "0 or 1", "1 for the phase of the run, 0 for the others.", "phase")
EDGE_FILL = gauge(
    "edge_fill_ratio",
    "ratio",
    "Fill level of an edge of the flow, as a share of its limit: at 1 the edge holds back.",
    "edge",
)
VIEW_VIOLATIONS = gauge(
    "view_violations", "rows", "Rows of the view that violate the expectation.", "view", "expectation"
)
VIEW_HELD = gauge("view_held", "0 or 1", "1 for a view that is held back by its expectations.", "view")
JOIN_MEMORY = gauge("join_memory_bytes", "bytes", "Size of the rows of internal views in the memory of the run.")
VIEW_FAILED = gauge("view_failed", "0 or 1", "1 for a view that has failed, 0 for the others.", "view")
VIEW_CAUGHT_UP = gauge(
    "view_caught_up_ratio", "ratio", "Share of the rows ingested before a backfill that the view has.", "view"
)
METRICS: tuple[Metric, ...] = (
    *(EPOCH_PHASE, BARRIER, VIEW, FRESHNESS, LAST_COMMIT, EPOCHS_IN_FLIGHT, PHASE, EDGE_FILL),
    *metrics_of(RunStatus, SourceStatus, MessageStatus, ViewStatus),
    *(VIEW_VIOLATIONS, VIEW_HELD, JOIN_MEMORY, VIEW_FAILED, VIEW_CAUGHT_UP),
    *metrics_of(PublicationStatus, AfterCommitStatus),
)
"""All metrics of a run, in the order of their documentation; most follow from the descriptions of fields."""

_IN_FLIGHT = ("align", "spark", "collect", "commit")
_YES_OR_NO = "0 or 1"


class Exporter(Protocol):
    """The receiver of metrics, see `MetricExporter`."""

    def add(self, metric: Metric, more: float, **labels: str) -> None: ...
    def set_to(self, metric: Metric, value: float, **labels: str) -> None: ...
    def observe(self, metric: Metric, value: float, **labels: str) -> None: ...


class RunMetrics:
    """Publishes the epochs and the status of one run.

    Counters count from the start of the run.  Counts that a new attempt repeats are counted once.

    Args:
        exporter: the exporter of the pipeline.
    """

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._counted: dict[tuple[Metric, tuple[tuple[str, str], ...]], float] = {}
        self._views: set[str] = set()
        self._late: set[str] = set()
        self._last_commit_s: float | None = None

    def on_epoch(self, epoch: CommittedEpoch, trace: EpochTrace) -> None:
        for phase, seconds in _phase_seconds(epoch).items():
            self._exporter.observe(EPOCH_PHASE, max(0.0, seconds), phase=phase)
        self._exporter.observe(BARRIER, epoch.seconds.collect)
        self._last_commit_s = epoch.committed_at.timestamp()
        self._exporter.set_to(LAST_COMMIT, self._last_commit_s)
        for source, age_s in epoch.freshness_s.items():
            self._exporter.observe(FRESHNESS, age_s, source=source)
        for view, seconds in _view_seconds(trace.spans, self._views).items():
            self._exporter.observe(VIEW, seconds, view=view)

    def on_status(self, status: RunStatus) -> None:
        self._views |= status.views.keys()
        if self._last_commit_s is not None:  # Ray drops a gauge that is not set again for two of its reports
            self._exporter.set_to(LAST_COMMIT, self._last_commit_s)
        for phase in RUN_PHASES:
            self._exporter.set_to(PHASE, phase == status.phase, phase=phase)
        for phase in _IN_FLIGHT:
            count = sum(each.phase == phase for each in status.in_flight)
            self._exporter.set_to(EPOCHS_IN_FLIGHT, count, phase=phase)
        for edge in status.edges:
            if edge.limit:
                name = f"{edge.sender}-{edge.receiver}"
                self._exporter.set_to(EDGE_FILL, edge.waiting / edge.limit, edge=name)
        self._exporter.set_to(JOIN_MEMORY, sum(each.bytes for each in status.in_memory.values()))
        self._publish(status)
        for name, source in status.sources.items():
            self._publish(source, name)
            if source.messages is not None:
                self._publish(source.messages, name)
        self._on_views(status)
        for publication in status.publications:
            self._publish(publication, publication.view, publication.table)
        for files in status.after_commit:
            self._publish(files, files.source)

    def _on_views(self, status: RunStatus) -> None:
        for name, view in status.views.items():
            self._publish(view, name)
            for expectation, rows in view.violations.items():
                self._exporter.set_to(VIEW_VIOLATIONS, rows, view=name, expectation=expectation)
            if view.violations:
                self._exporter.set_to(VIEW_HELD, view.held_since is not None, view=name)
        for name in self._views:  # also those that are gone, whose failure is over
            known = status.views.get(name)
            self._exporter.set_to(VIEW_FAILED, known is not None and known.error is not None, view=name)
        for name in self._late - status.backfills.keys():
            self._exporter.set_to(VIEW_CAUGHT_UP, 1.0, view=name)
        self._late = set(status.backfills)
        for name, late in status.backfills.items():
            self._exporter.set_to(VIEW_CAUGHT_UP, late.fraction, view=name)

    def _publish(self, values: object, *subject: str) -> None:
        """Publishes the described fields of a dataclass.

        Args:
            subject: the first labels of its metrics: the source, the view, or the view and the table.
        """
        for name, counter in counters_of(type(values)).items():
            value = getattr(values, name)
            if isinstance(value, Mapping):
                for key, each in value.items():
                    self._publish_one(counter, each, *subject, key)
            elif value is not None or counter.unit == _YES_OR_NO:
                before = getattr(values, "before", None) if counter.in_ledger else None
                self._publish_one(counter, value if before is None else value - getattr(before, name), *subject)

    def _publish_one(self, counter: Counted, value: Any, *subject: str) -> None:
        metric = counter.metric
        if metric is None:
            return
        labels = {**dict(zip(metric.labels, subject, strict=False)), **(counter.labels or {})}
        if counter.unit == _YES_OR_NO:
            self._exporter.set_to(metric, value is not None, **labels)
        elif metric.kind == "gauge":
            self._exporter.set_to(metric, _number(value), **labels)
        elif counter.restarts:
            self._count_from_0(metric, value, **labels)
        else:
            self._count(metric, value, **labels)

    def _count(self, metric: Metric, value: float, **labels: str) -> None:
        """Raises a counter to the highest value seen; Ray shows a counter only after its first count."""
        key = (metric, tuple(sorted(labels.items())))
        before = self._counted.get(key, 0)
        if value > before:
            self._counted[key] = value
            self._exporter.add(metric, value - before, **labels)

    def _count_from_0(self, metric: Metric, value: float, **labels: str) -> None:
        """The same for a count that each attempt begins at 0."""
        key = (metric, tuple(sorted(labels.items())))
        if value < self._counted.get(key, 0):
            self._counted[key] = 0
        self._count(metric, value, **labels)


def _number(value: Any) -> float:
    """A number, the seconds of a time, or the number of names."""
    if isinstance(value, datetime):
        return value.timestamp()
    return len(value) if isinstance(value, tuple) else float(value)


def _phase_seconds(epoch: CommittedEpoch) -> Mapping[str, float]:
    """Phase → seconds.  `seconds.collect` counts from the barrier, but the phase begins after the Spark phase."""
    seconds = epoch.seconds
    return {
        "fetch": seconds.fetch,
        "align": seconds.align,
        "spark": seconds.spark,
        "collect": seconds.collect_alone,
        "commit": epoch.commit_s,
    }


def _view_seconds(spans: tuple[Span, ...], views: set[str]) -> dict[str, float]:
    return {span.name: span.seconds for span in spans if span.phase == "spark" and span.name in views}
