"""A run as its observers see it."""

from __future__ import annotations

from datetime import timedelta

from actors.protocol.run_state import CommittedEpoch, RunPhase, RunState
from slackwater.status.run_status import (
    AfterCommitStatus,
    BackfillStatus,
    EdgeStatus,
    EpochStatus,
    MessageStatus,
    PublicationStatus,
    RunStatus,
    SourceStatus,
    ViewStatus,
)
from state.tables.epoch_trace import EpochTrace
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import SPANS, START

MESSAGES = MessageStatus("https://sqs/q", in_flight=3, received=10, redelivered=2, poison=1)
SOURCE = SourceStatus(
    waiting=4, reading=1, done=7, quarantined=2, vanished=1, rows=500, rows_bad=3, bytes=9_000, requests=12,
    listed=15, listings=2, oldest_unfinished_s=8.0, messages=MESSAGES, watermark=START,
)  # fmt: skip
STATUS = RunStatus(
    phase="running",
    epoch=2,
    epochs=2,
    sources={"flights": SOURCE},
    views={
        "by_carrier": ViewStatus("aggregate", rows=3, open_groups=2, late_rows=1, violations={"few": 0}),
        "top": ViewStatus("full", rows=None, behind_s=1.5),
    },
    backfills={"late": BackfillStatus(0.25)},
    recoveries=1,
    fetchers=2,
    in_flight=(EpochStatus(3, "spark", 0.5), EpochStatus(4, "align", 0.1), EpochStatus(5, "align", 0.0)),
    edges=(EdgeStatus("dispatcher", "fetch", "files", 1.0, 5, 20), EdgeStatus("materializer", "views", "rows", 1.0, 0)),
    publications=(
        PublicationStatus("by_carrier", "delta:/pub/by_carrier", epoch=2, commits=2, rows=9),
        PublicationStatus("by_carrier", "parquet:/pub/files", 1, behind_epochs=3, behind_s=12.5, error="no room"),
    ),
    after_commit=(AfterCommitStatus("flights", "delete", handled=4, failed=1),),
    rebuilt_indexes={"top": 1},
    planned_queries=5,
)
TRACE = EpochTrace.of(SPANS)


def committed(epoch: int) -> CommittedEpoch:
    """One whose times are those of `SPANS`."""
    return CommittedEpoch(
        epoch,
        START + timedelta(seconds=epoch),
        EpochCounts(files=2, rows=50, bytes=900, requests=3),
        EpochSeconds(fetch=0.5, align=0.25, spark=1.0, collect=1.5),
        commit_s=0.125,
        freshness_s={"flights": 0.75},
    )


def state(*epochs: int, phase: RunPhase = "running") -> RunState:
    """Of an attempt that has committed these."""
    recent = tuple(map(committed, epochs))
    traces = {epoch: TRACE.to_json() for epoch in epochs}
    return RunState(1, phase, 1, max(epochs, default=0), recent=recent, traces=traces)
