"""Every metric that a run publishes, with its unit and its labels.

The names follow the conventions of Prometheus: base units, `_total` for counters.  Ray puts `ray_` in front of each.
The values of labels are few: a pipeline, its sources and its views, the phases, the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AGES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


@dataclass(frozen=True)
class Definition:
    """The definition of a metric.

    Args:
        kind: `counter`, `gauge` or `histogram`.
        unit: unit of its values.
        labels: labels beside `pipeline`, which every metric has.
        boundaries: upper ends of the buckets of a histogram.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


def _counter(name: str, unit: str, description: str, *labels: str) -> Definition:
    return Definition(f"slackwater_{name}_total", "counter", unit, description, labels)


def _gauge(name: str, unit: str, description: str, *labels: str) -> Definition:
    return Definition(f"slackwater_{name}", "gauge", unit, description, labels)


def _seconds(name: str, description: str, *labels: str, boundaries: tuple[float, ...] = _SECONDS) -> Definition:
    return Definition(f"slackwater_{name}_seconds", "histogram", "seconds", description, labels, boundaries)


class Metric(Enum):
    """The metrics, in the order of their documentation."""

    EPOCHS = _counter("epochs", "epochs", "Epochs that were committed.")
    EPOCH_PHASE = _seconds("epoch_phase", "Duration of each phase of a committed epoch.", "phase")
    BARRIER = _seconds("barrier", "From the injection of a barrier until every actor has collected its epoch.")
    VIEW = _seconds("view", "Duration of the work on a view in an epoch, in Spark and in writing it.", "view")
    FRESHNESS = _seconds(
        "freshness",
        "Age of the youngest file of a source at the commit of the epoch that finished it.",
        "source",
        boundaries=_AGES,
    )
    LAST_COMMIT = _gauge("last_commit_timestamp_seconds", "seconds since 1970", "Time of the last commit of the run.")
    EPOCHS_IN_FLIGHT = _gauge("epochs_in_flight", "epochs", "Epochs between their barrier and their commit.", "phase")
    PHASE = _gauge("run_phase", "0 or 1", "1 for the phase of the run, 0 for the others.", "phase")
    RECOVERIES = _counter("recoveries", "failures", "Failures that the run has survived.")
    FETCH_ACTORS = _gauge("fetch_actors", "actors", "Fetch actors that share the work.")
    EDGE_FILL = _gauge(
        "edge_fill_ratio",
        "ratio",
        "Fill level of an edge of the flow, as a share of its limit: at 1 the edge holds back.",
        "edge",
    )
    FILES = _counter("files", "files", "Finished files, by status.", "source", "status")
    FILES_UNFINISHED = _gauge("files_unfinished", "files", "Files that wait or are being read.", "source", "status")
    OLDEST_UNFINISHED = _gauge(
        "oldest_unfinished_seconds", "seconds", "Time since the oldest unfinished file was listed.", "source"
    )
    ROWS = _counter("rows", "rows", "Rows that were read.", "source")
    BAD_ROWS = _counter("bad_rows", "rows", "Records that were quarantined.", "source")
    READ_BYTES = _counter("read_bytes", "bytes", "Bytes that were read from the object store.", "source")
    REQUESTS = _counter("requests", "requests", "LIST and GET requests.", "source")
    LISTINGS = _counter("listings", "listings", "Complete listings.", "source")
    LISTED_FILES = _gauge("listed_files", "files", "Files that the last listing has seen.", "source")
    PAUSED_REMOVALS = _gauge(
        "paused_removals",
        "files",
        "Missing files whose rows stay in the views until their removal is allowed.",
        "source",
    )
    PAUSED_SOURCE = _gauge(
        "source_paused",
        "0 or 1",
        "1 for a source that is not read: it has met a table or a root, or lacks access.",
        "source",
    )
    WATERMARK = _gauge(
        "watermark_timestamp_seconds",
        "seconds since 1970",
        "Event time before which no row of the source is expected.",
        "source",
    )
    MESSAGES = _counter("messages", "messages", "Messages of a queue of events that were received.", "source")
    MESSAGES_REDELIVERED = _counter("messages_redelivered", "messages", "Messages that were delivered again.", "source")
    MESSAGES_POISON = _counter("messages_poison", "messages", "Messages that say nothing about the source.", "source")
    MESSAGES_IN_FLIGHT = _gauge("messages_in_flight", "messages", "Messages that are being worked on.", "source")
    VIEW_ROWS = _gauge("view_rows", "rows", "Rows of a view.", "view")
    VIEW_LAG = _gauge(
        "view_lag_seconds", "seconds", "Age of the rows of a recomputed view, behind the latest rows.", "view"
    )
    VIEW_OPEN_GROUPS = _gauge("view_open_groups", "groups", "Groups of windows that are open.", "view")
    VIEW_LATE_ROWS = _counter("view_late_rows", "rows", "Rows that came too late for the view.", "view")
    VIEW_VIOLATIONS = _gauge(
        "view_violations", "rows", "Rows of the view that violate the expectation.", "view", "expectation"
    )
    VIEW_HELD = _gauge("view_held", "0 or 1", "1 for a view that is held back by its expectations.", "view")
    INDEXES_REBUILT = _counter(
        "indexes_rebuilt", "indexes", "Indexes that differed from their rows, and were rebuilt or dropped.", "view"
    )
    JOIN_MEMORY = _gauge("join_memory_bytes", "bytes", "Size of the rows of hidden views in the memory of the run.")
    VIEW_FAILED = _gauge("view_failed", "0 or 1", "1 for a view that has failed, 0 for the others.", "view")
    VIEW_CAUGHT_UP = _gauge(
        "view_caught_up_ratio", "ratio", "Share of the rows ingested before a backfill that the view has.", "view"
    )
    PUBLICATION_EPOCHS = _gauge(
        "publication_lag_epochs", "epochs", "Committed epochs that a published table lacks.", "view", "table"
    )
    PUBLICATION_LAG = _gauge(
        "publication_lag_seconds", "seconds", "Time since the commit of the first of them.", "view", "table"
    )
    PUBLICATION_FAILED = _gauge(
        "publication_failed", "0 or 1", "1 for a publication whose last try failed, 0 for the others.", "view", "table"
    )
    HANDLED_FILES = _counter("handled_files", "files", "Files deleted, moved or tagged after the commit.", "source")
    HANDLED_FILES_FAILED = _gauge(
        "handled_files_failed", "files", "Files that the store refuses to delete, move or tag.", "source"
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels."""
        return ("pipeline", *self.value.labels)
