"""Trace of a committed epoch, from the store alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

import slackwater as sw
from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import RunStatus
from slackwater.status.trace import trace_of
from state.clock import ManualClock
from state.errors import EpochExpiredError
from state.ownership.owner import Owner, Ownership, read_owner
from state.tables.records import EpochRecord
from tests.slackwater.reading.written_root import SPANS, START, WrittenRoot


def committed(record: EpochRecord, commit_s: float) -> CommittedEpoch:
    return CommittedEpoch(record.epoch, record.committed_at, record.counts, record.seconds, commit_s)


def owner_saying(written: WrittenRoot, record: EpochRecord, commit_s: float) -> Owner:
    ownership = Ownership(written.root, ManualClock(START), run_id="run", pipeline="flights")
    ownership.acquire(takeover=True)
    ownership.notify(lambda: RunStatus(recent=(committed(record, commit_s),)).to_json())
    ownership.renew()
    ownership.release()
    owner = read_owner(written.root)
    assert owner is not None
    return owner


def test_an_epoch_tells_its_spans_and_the_next_one_how_long_its_commit_took(written: WrittenRoot) -> None:
    trace = sw.open(written.root.url, written.root.storage_options).trace(written.epochs[2])
    assert (trace.epoch, trace.files, trace.rows, trace.commit_s) == (written.epochs[2], 2, 5, 0.0625)
    assert sorted(map(str, trace.spans)) == sorted(map(str, [*SPANS, sw.Span("commit", "", 1.5, 0.0625)]))
    assert trace.spans[-1].phase == "commit" and trace.seconds == 0.5 + 1.5 + 0.0625


def test_the_commit_of_the_latest_epoch_is_told_by_its_owner_if_anybody(written: WrittenRoot) -> None:
    last, before = written.records[-1], written.records[-2]
    assert trace_of(last, None, None).commit_s is None
    owner = owner_saying(written, last, 0.75)
    assert trace_of(last, None, owner).commit_s == 0.75
    assert trace_of(last, None, replace(owner, status={"recent": "what?"})).commit_s is None
    assert trace_of(before, last, owner).commit_s == 0.0625, "the record knows better"


def test_a_gap_of_expired_epochs_tells_no_wrong_commit(written: WrittenRoot) -> None:
    first, _, _, last = written.records
    assert trace_of(first, last, None).commit_s is None


def test_an_epoch_that_was_committed_without_a_trace_tells_its_phases(written: WrittenRoot) -> None:
    trace = trace_of(replace(written.records[-1], trace=None), None, None)
    assert [(span.phase, span.name, span.seconds) for span in trace.spans] == [
        ("fetch", "", 0.5),
        ("align", "", 0.25),
        ("spark", "", 1.0),
        ("collect", "", 0.0),
    ]


def test_an_epoch_that_is_not_there_has_no_trace(written: WrittenRoot) -> None:
    with pytest.raises(EpochExpiredError, match="epoch 3 was never committed"):
        sw.open(written.root.url, written.root.storage_options).trace(3)
