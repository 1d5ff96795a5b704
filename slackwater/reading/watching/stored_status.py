"""Status of a root by the store alone, in the form of a run's status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import BackfillStatus, RunStatus, SourceStatus, ViewStatus
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import REMOVED_STATUSES

if TYPE_CHECKING:
    from slackwater.reading.store import Store

_RECENT_EPOCHS = 32
_STATUSES = ("waiting", "reading", "done", "quarantined", "vanished")


def stored_status(store: Store, phase: str = "stopped") -> RunStatus:
    """The committed counts of files and rows since the first run on the root, without rates.

    Args:
        store: the store of the root.
        phase: the phase of the run on it, if that is known.

    Raises:
        StorageError: the root cannot be read.
    """
    store = store.frozen()
    violations: dict[str, dict[str, int]] = {}
    held: dict[str, int | None] = {}
    for row in store.views.expectations().to_pylist():
        violations.setdefault(row["view"], {})[row["expectation"]] = row["rows"]
        held[row["view"]] = row["held_since"]
    epochs = store.epochs(limit=_RECENT_EPOCHS).to_pylist()
    files = store.ledger.count_files()
    return RunStatus(
        phase=phase,
        epoch=epochs[-1]["epoch"] if epochs else 0,
        sources={
            row["name"]: replace(
                source_counts(files, row["name"]),
                paused_removals=row["paused_removals"],
                paused=row["paused"],
                filled_columns=tuple(each["column"] for each in row["missing"]),
                watermark=row["watermark"],
            )
            for row in store.ledger.sources().to_pylist()
        },
        views={
            row["name"]: replace(
                _view(row), violations=violations.get(row["name"], {}), held_since=held.get(row["name"])
            )
            for row in store.views.table().to_pylist()
        },
        backfills={row["name"]: BackfillStatus(row["fraction"] or 0.0) for row in store.views.backfills().to_pylist()},
        spark="",
        recent=tuple(_committed(row) for row in epochs),
    )


def source_counts(files: pa.Table, source: str) -> SourceStatus:
    """The counts of the files of one source.

    Args:
        files: the table of `Ledger.count_files`.
        source: the name of the source.
    """
    own = {row["status"]: row for row in files.to_pylist() if row["source"] == source}
    counts: dict[str, Any] = {status: own[status]["files"] if status in own else 0 for status in _STATUSES}
    in_views = [row for status, row in own.items() if status not in REMOVED_STATUSES]
    rows_bad = sum(row["rows_bad"] for row in in_views)
    return SourceStatus(
        **counts,
        listed=sum(row["files"] for status, row in own.items() if status != "vanished"),
        rows=sum(row["rows_read"] for row in in_views) - rows_bad,
        rows_bad=rows_bad,
        bytes=sum(row["bytes_read"] for row in own.values()),
        requests=sum(row["requests"] for row in own.values()),
    )


def _view(row: Mapping[str, Any]) -> ViewStatus:
    stale_epoch = None if row["error"] is None else row["reflects_epoch"]
    return ViewStatus(
        row["class"], row["rows"], late_rows=row["late_rows"], stale_epoch=stale_epoch, error=row["error"]
    )


def _committed(row: Mapping[str, Any]) -> CommittedEpoch:
    counts = EpochCounts(row["files"], row["rows"], row["bytes"], row["requests"])
    align_s, spark_s = row["align_s"], row["spark_s"]
    seconds = EpochSeconds(row["fetch_s"], align_s, spark_s, align_s + spark_s + row["collect_s"])
    return CommittedEpoch(row["epoch"], row["committed_at"], counts, seconds)
