"""Every metric that a run publishes, with its unit and its labels.

The names follow the conventions of Prometheus: base units, `_total` for what only grows.  Ray puts `ray_` in front of
each.  Labels are bounded by what is declared: a pipeline, its sources and its views, the phases, the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AGES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


@dataclass(frozen=True)
class Definition:
    """What a metric is.

    Args:
        kind: `counter`, `gauge` or `histogram`.
        unit: what is counted or measured.
        labels: beside `pipeline`, which every metric has.
        boundaries: of a histogram: the upper ends of its buckets.
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
    EPOCH_PHASE = _seconds("epoch_phase", "How long each phase of a committed epoch took.", "phase")
    BARRIER = _seconds("barrier", "From the injection of a barrier until every actor has collected its epoch.")
    VIEW = _seconds("view", "How long the work on a view took in an epoch, in Spark and in writing it.", "view")
    FRESHNESS = _seconds(
        "freshness",
        "How old the youngest file of a source was when an epoch that finished it was committed.",
        "source",
        boundaries=_AGES,
    )
    LAST_COMMIT = _gauge(
        "last_commit_timestamp_seconds", "seconds since 1970", "When the run committed its last epoch."
    )
    EPOCHS_IN_FLIGHT = _gauge("epochs_in_flight", "epochs", "Epochs between their barrier and their commit.", "phase")
    PHASE = _gauge("run_phase", "0 or 1", "1 for the phase that the run is in.", "phase")
    RECOVERIES = _counter("recoveries", "failures", "Failures that the run has survived.")
    FETCH_ACTORS = _gauge("fetch_actors", "actors", "Fetch actors that share the work.")
    EDGE_FILL = _gauge(
        "edge_fill_ratio",
        "ratio",
        "How much waits on an edge of the flow, of what may: at 1 it holds back.",
        "edge",
    )
    FILES = _counter("files", "files", "Files that are finished, by how.", "source", "status")
    FILES_UNFINISHED = _gauge("files_unfinished", "files", "Files that wait or are being read.", "source", "status")
    OLDEST_UNFINISHED = _gauge(
        "oldest_unfinished_seconds", "seconds", "For how long the oldest listed file has not been finished.", "source"
    )
    ROWS = _counter("rows", "rows", "Rows that were read.", "source")
    BAD_ROWS = _counter("bad_rows", "rows", "Records that were quarantined.", "source")
    READ_BYTES = _counter("read_bytes", "bytes", "Bytes that were read from the object store.", "source")
    REQUESTS = _counter("requests", "requests", "LIST and GET requests.", "source")
    LISTINGS = _counter("listings", "listings", "Complete listings.", "source")
    LISTED_FILES = _gauge("listed_files", "files", "Files that the last listing has seen.", "source")
    MESSAGES = _counter("messages", "messages", "Messages of a queue of events that were received.", "source")
    MESSAGES_REDELIVERED = _counter("messages_redelivered", "messages", "Messages that came once more.", "source")
    MESSAGES_POISON = _counter("messages_poison", "messages", "Messages that say nothing of the source.", "source")
    MESSAGES_IN_FLIGHT = _gauge("messages_in_flight", "messages", "Messages that are being worked on.", "source")
    VIEW_ROWS = _gauge("view_rows", "rows", "Rows that a view has.", "view")
    VIEW_LAG = _gauge(
        "view_lag_seconds", "seconds", "How much older the rows of a recomputed view are than the latest.", "view"
    )
    VIEW_CAUGHT_UP = _gauge(
        "view_caught_up_ratio", "ratio", "How much a backfill has of what was ingested before it.", "view"
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels."""
        return ("pipeline", *self.value.labels)
