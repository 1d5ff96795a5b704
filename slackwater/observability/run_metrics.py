"""Metrics of a run, from its status and its committed epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from actors.protocol.run_state import CommittedEpoch
from actors.telemetry.metrics import Metric
from slackwater.status.run_status import PublicationStatus, RunStatus, SourceStatus
from state.tables.epoch_trace import EpochTrace, Span

RUN_PHASES = ("starting", "running", "paused", "recovering", "stopping", "stopped", "failed")
"""The values of `RunStatus.phase`."""

_IN_FLIGHT = ("align", "spark", "collect", "commit")
_UNFINISHED = ("waiting", "reading")
_FINISHED = ("done", "quarantined", "vanished")


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
        """Publishes a committed epoch."""
        for phase, seconds in _phase_seconds(epoch).items():
            self._exporter.observe(Metric.EPOCH_PHASE, max(0.0, seconds), phase=phase)
        self._exporter.observe(Metric.BARRIER, epoch.seconds.collect)
        self._last_commit_s = epoch.committed_at.timestamp()
        self._exporter.set_to(Metric.LAST_COMMIT, self._last_commit_s)
        for source, age_s in epoch.freshness_s.items():
            self._exporter.observe(Metric.FRESHNESS, age_s, source=source)
        for view, seconds in _view_seconds(trace.spans, self._views).items():
            self._exporter.observe(Metric.VIEW, seconds, view=view)

    def on_status(self, status: RunStatus) -> None:
        """Publishes the status of the run."""
        self._views |= status.views.keys()
        if self._last_commit_s is not None:  # Ray drops a gauge that is not set again for two of its reports
            self._exporter.set_to(Metric.LAST_COMMIT, self._last_commit_s)
        for phase in RUN_PHASES:
            self._exporter.set_to(Metric.PHASE, phase == status.phase, phase=phase)
        for phase in _IN_FLIGHT:
            count = sum(each.phase == phase for each in status.in_flight)
            self._exporter.set_to(Metric.EPOCHS_IN_FLIGHT, count, phase=phase)
        self._exporter.set_to(Metric.FETCH_ACTORS, status.fetchers)
        for edge in status.edges:
            if edge.limit:
                name = f"{edge.sender}-{edge.receiver}"
                self._exporter.set_to(Metric.EDGE_FILL, edge.waiting / edge.limit, edge=name)
        self._count(Metric.EPOCHS, status.epochs)
        self._count(Metric.RECOVERIES, status.recoveries)
        for name, source in status.sources.items():
            self._on_source(name, source)
        for name, view in status.views.items():
            if view.rows is not None:
                self._exporter.set_to(Metric.VIEW_ROWS, view.rows, view=name)
            self._exporter.set_to(Metric.VIEW_LAG, view.behind_s, view=name)
            if view.open_groups is not None:
                self._exporter.set_to(Metric.VIEW_OPEN_GROUPS, view.open_groups, view=name)
            if view.late_rows is not None:
                self._count(Metric.VIEW_LATE_ROWS, view.late_rows, view=name)
            for expectation, rows in view.violations.items():
                self._exporter.set_to(Metric.VIEW_VIOLATIONS, rows, view=name, expectation=expectation)
            if view.violations:
                self._exporter.set_to(Metric.VIEW_HELD, view.held_since is not None, view=name)
        self._exporter.set_to(Metric.JOIN_MEMORY, sum(each.bytes for each in status.in_memory.values()))
        for name, indexes in status.rebuilt_indexes.items():
            self._count_from_0(Metric.INDEXES_REBUILT, indexes, view=name)
        for name in self._views:  # also those that are gone, whose failure is over
            known = status.views.get(name)
            self._exporter.set_to(Metric.VIEW_FAILED, known is not None and known.error is not None, view=name)
        for name in self._late - status.backfills.keys():
            self._exporter.set_to(Metric.VIEW_CAUGHT_UP, 1.0, view=name)
        self._late = set(status.backfills)
        for name, late in status.backfills.items():
            self._exporter.set_to(Metric.VIEW_CAUGHT_UP, late.fraction, view=name)

        for publication in status.publications:
            self._on_publication(publication)
        for files in status.after_commit:
            self._count(Metric.HANDLED_FILES, files.handled, source=files.source)
            self._exporter.set_to(Metric.HANDLED_FILES_FAILED, files.failed, source=files.source)

    def _on_publication(self, publication: PublicationStatus) -> None:
        labels = {"view": publication.view, "table": publication.table}
        self._exporter.set_to(Metric.PUBLICATION_EPOCHS, publication.behind_epochs, **labels)
        self._exporter.set_to(Metric.PUBLICATION_LAG, publication.behind_s, **labels)
        self._exporter.set_to(Metric.PUBLICATION_FAILED, publication.error is not None, **labels)

    def _on_source(self, name: str, source: SourceStatus) -> None:
        for status in _FINISHED:
            self._count(Metric.FILES, _since_start(source, status), source=name, status=status)
        for status in _UNFINISHED:
            self._exporter.set_to(Metric.FILES_UNFINISHED, getattr(source, status), source=name, status=status)
        self._exporter.set_to(Metric.OLDEST_UNFINISHED, source.oldest_unfinished_s, source=name)
        self._exporter.set_to(Metric.LISTED_FILES, source.listed, source=name)
        self._exporter.set_to(Metric.PAUSED_REMOVALS, source.paused_removals, source=name)
        self._exporter.set_to(Metric.PAUSED_SOURCE, source.paused is not None, source=name)
        if source.watermark is not None:
            self._exporter.set_to(Metric.WATERMARK, source.watermark.timestamp(), source=name)
        self._count(Metric.ROWS, _since_start(source, "rows"), source=name)
        self._count(Metric.BAD_ROWS, _since_start(source, "rows_bad"), source=name)
        self._count(Metric.READ_BYTES, _since_start(source, "bytes"), source=name)
        self._count(Metric.REQUESTS, source.requests, source=name)
        self._count_from_0(Metric.LISTINGS, source.listings, source=name)
        messages = source.messages
        if messages is not None:
            self._count(Metric.MESSAGES, messages.received, source=name)
            self._count(Metric.MESSAGES_REDELIVERED, messages.redelivered, source=name)
            self._count(Metric.MESSAGES_POISON, messages.poison, source=name)
            self._exporter.set_to(Metric.MESSAGES_IN_FLIGHT, messages.in_flight, source=name)

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


def _since_start(source: SourceStatus, count: str) -> int:
    added: int = getattr(source, count) - getattr(source.before, count)
    return added


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
