"""Tests of the status of a run as JSON for other processes."""

from __future__ import annotations

import json
from dataclasses import replace

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import (
    BackfillStatus,
    EdgeStatus,
    EpochStatus,
    MessageStatus,
    PublicationStatus,
    RowsInMemory,
    RunStatus,
    SourceStatus,
    ViewStatus,
)
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START

STATUS = RunStatus(
    phase="running",
    epoch=123456789012345678,
    epochs=3,
    sources={"s": SourceStatus(rows=5, listed_at=START, rows_per_s=2.5, messages=MessageStatus("https://sqs/q", 2))},
    views={"v": ViewStatus("full", rows=7, behind_s=1.5)},
    backfills={"late": BackfillStatus(0.25, ("s3://raw/a",))},
    in_memory={"views/v.1-5.lance": RowsInMemory(7, 300)},
    in_flight=(EpochStatus(123456789012345679, "spark", 0.5),),
    recent=(CommittedEpoch(1, START, EpochCounts(rows=5), EpochSeconds(spark=0.25), 0.01, {"s": 0.5}),),
    edges=(EdgeStatus("fetch", "merger", "bytes", 10.0, 5, 100),),
    publications=(PublicationStatus("v", "delta:/pub/v", 123456789012345678, 2, 3.5, 7, 70, 1, "no room"),),
)


def test_a_status_is_the_same_after_a_way_as_json() -> None:
    assert RunStatus.of_json(json.loads(json.dumps(STATUS.to_json()))) == STATUS
    assert RunStatus.of_json(json.loads(json.dumps(RunStatus().to_json()))) == RunStatus()


def test_what_another_version_says_is_read_as_far_as_it_is_understood() -> None:
    document = STATUS.to_json()
    newer = {**document, "mood": "calm", "sources": {"s": {**document["sources"]["s"], "colour": "blue"}}}
    del newer["scaling"]
    assert RunStatus.of_json(newer) == STATUS
    del document["in_memory"], document["publications"]
    assert RunStatus.of_json(document) == replace(STATUS, in_memory={}, publications=())
    assert RunStatus.of_json({**document, "sources": "all of them"}) is None
