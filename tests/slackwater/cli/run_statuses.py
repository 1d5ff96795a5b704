"""Statuses of runs for the tests of displays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import BackfillStatus, EpochStatus, RunStatus, SourceStatus, ViewStatus
from state.tables.records import EpochCounts, EpochSeconds

EPOCH = 117_123_456_789_012_345
AT = datetime(2026, 1, 31, 12, 3, 44, tzinfo=UTC)


def source(number: int = 0, **changes: Any) -> SourceStatus:
    """A source that is being read."""
    known: dict[str, Any] = {
        "listed": 90_000 + number,
        "waiting": 41,
        "reading": 2,
        "done": 46,
        "rows": 12_345,
        "bytes": 1_500,
        "requests": 51,
        "rows_per_s": 45_234.0,
        "bytes_per_s": 12.3e6,
        "freshness_s": 0.83,
    }
    return SourceStatus(**{**known, **changes})


def committed(epoch: int = EPOCH) -> CommittedEpoch:
    """An epoch with a second of Spark."""
    seconds = EpochSeconds(fetch=0.52, align=0.25, spark=1.0, collect=1.5)
    return CommittedEpoch(epoch, AT, EpochCounts(512, 6_789, 1_000, 520), seconds, 0.02, {"source_0": 0.8312})


def running(sources: int = 1, views: int = 1, **changes: Any) -> RunStatus:
    """A run with these numbers of sources and views, and two epochs in flight."""
    known: dict[str, Any] = {
        "phase": "running",
        "epoch": EPOCH,
        "epochs": 34,
        "seconds": 64.2,
        "spark": "ready",
        "fetchers": 2,
        "sources": {f"source_{number}": source(number) for number in range(sources)},
        "views": {f"view_{number}": ViewStatus("aggregate", 1_000 + number) for number in range(views)},
        "in_flight": (EpochStatus(EPOCH + 1, "spark", 1.2), EpochStatus(EPOCH + 2, "align", 0.31)),
        "recent": (committed(),),
    }
    return RunStatus(**{**known, **changes})


def failed(error: str = "[CAST_INVALID_INPUT] no number", stale_epoch: int | None = EPOCH) -> ViewStatus:
    """A view that has failed."""
    return ViewStatus("append", stale_epoch=stale_epoch, error=error)


def late(fraction: float, *missing: str) -> dict[str, BackfillStatus]:
    """A view that is not shown yet."""
    return {"late": BackfillStatus(fraction, missing)}
