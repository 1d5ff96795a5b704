"""Tests of the log lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import Any

import pytest
import structlog

from slackwater.cli.display.run_log import RunLog
from slackwater.status.run_status import MessageStatus, RunStatus, StartupStep, ViewStatus
from state.clock import ManualClock
from tests.slackwater.cli.run_statuses import EPOCH, failed, late, running, source

Logs = list[MutableMapping[str, Any]]


@pytest.fixture
def logs() -> Iterator[Logs]:
    with structlog.testing.capture_logs() as captured:
        yield captured


def said(logs: Logs) -> list[str]:
    """The subjects of the lines since the last call."""
    events = [line["event"] for line in logs]
    logs.clear()
    return events


def test_nothing_is_repeated_while_nothing_changes_but_the_time(logs: Logs) -> None:
    clock = ManualClock()
    log = RunLog(clock, "/data/root")
    status = running(spark="starting", sources=3)
    log.show(status)
    assert said(logs) == ["run", "source", "source", "source"]
    for second in range(1, 60):
        clock.advance(1)
        # A listing costs a request, a rate falls to zero, an epoch waits for Spark.
        idle = source(requests=51 + second, rows_per_s=0.0, bytes_per_s=0.0, freshness_s=0.1 * second)
        sources = dict.fromkeys(status.sources, idle)
        log.show(replace(status, seconds=64.2 + second, sources={**sources, "source_1": source(1, requests=second)}))
        if second == 10:
            logs.clear()
    assert said(logs) == []


def test_a_source_has_a_line_when_its_own_counts_change_and_not_too_often(logs: Logs) -> None:
    clock = ManualClock()
    log = RunLog(clock, "/data/root")
    log.show(running(2))
    logs.clear()
    for done in range(1, 20):
        clock.advance(1)
        log.show(replace(running(2), sources={"source_0": source(), "source_1": source(1, done=done)}))
    assert [(line["source"], line["done"]) for line in logs] == [("source_1", 10)]


def test_at_the_end_the_last_counts_are_said(logs: Logs) -> None:
    clock = ManualClock()
    with RunLog(clock, "/data/root") as log:
        log.show(running())
        logs.clear()
        log.show(replace(running(), sources={"source_0": source(done=99)}))
        assert said(logs) == []
    assert [line["done"] for line in logs] == [99]


def test_a_source_of_which_nothing_is_known_has_no_line(logs: Logs) -> None:
    RunLog(ManualClock(), "/data/root").show(replace(RunStatus(), sources={"source_0": source().__class__()}))
    assert said(logs) == ["run"]


def test_a_change_of_what_the_run_does_is_said_at_once(logs: Logs) -> None:
    log = RunLog(ManualClock(), "/data/root")
    log.show(RunStatus(message="Ray starts"))
    log.show(RunStatus(message="Spark starts"))
    log.show(RunStatus(phase="running"))
    log.show(RunStatus(phase="running", spark="ready"))
    log.show(RunStatus(phase="running", spark="ready", caught_up=True, epoch=EPOCH))
    log.show(RunStatus(phase="running", spark="ready", caught_up=True, epoch=EPOCH + 1))
    assert [line.get("message") for line in logs[:4]] == ["Ray starts", "Spark starts", None, None]
    assert logs[4:] == [{"event": "caught up", "actor": "run", "epoch": EPOCH, "log_level": "info"}]


def test_a_long_step_of_a_start_is_logged_every_ten_seconds(logs: Logs) -> None:
    clock = ManualClock()
    log = RunLog(clock, "/data/root")
    for second in range(35):
        steps = (StartupStep("Ray", 8.0, done=True), StartupStep("executor", float(second), done=False))
        log.show(RunStatus(message="starting; waiting for executor", startup=steps))
        clock.advance(1)
    first, *starting = logs
    assert first["message"] == "starting; waiting for executor"
    assert [(line["event"], line["step"], line["seconds"]) for line in starting] == [
        ("starting", "executor", 10.0),
        ("starting", "executor", 20.0),
        ("starting", "executor", 30.0),
    ]


def test_a_backfill_says_how_far_it_is(logs: Logs) -> None:
    clock = ManualClock()
    log = RunLog(clock, "/data/root")
    log.show(RunStatus(backfills=late(0.5, "a.csv")))
    clock.advance(60)
    log.show(RunStatus(backfills=late(0.501, "a.csv")))
    (said,) = logs[1:]
    assert (said["event"], said["view"], said["fraction"], said["missing"]) == ("backfill", "late", 0.5, 1)


def test_a_view_that_fails_is_said_once_and_again_when_it_fails_again(logs: Logs) -> None:
    log = RunLog(ManualClock(), "/data/root")
    built, again = ViewStatus("append", 3), failed("too wet", stale_epoch=0)
    for view in (built, failed(), failed(), failed("too wet"), built, again, again):
        log.show(RunStatus(views={"wet": view}))
    said = [line for line in logs if line["event"] == "a view has failed"]
    assert [(line["error"], line["stale_epoch"]) for line in said] == [
        ("[CAST_INVALID_INPUT] no number", str(EPOCH)),
        ("too wet", str(EPOCH)),
        ("too wet", "none"),
    ]
    assert {line["log_level"] for line in said} == {"warning"} and {line["view"] for line in said} == {"wet"}
    assert "slackwater retry /data/root --view wet" in said[0]["next_step"]


def test_a_line_has_messages_if_there_is_a_queue(logs: Logs) -> None:
    told = source(messages=MessageStatus("https://sqs/raw", 12, 3.21, redelivered=4, poison=2))
    RunLog(ManualClock(), "/data/root").show(replace(running(), sources={"plain": source(), "told": told}))
    plain, line = logs[1:]
    counts = ("messages_in_flight", "redelivered", "poison")
    assert [line[name] for name in counts] == [12, 4, 2]
    assert not plain.keys() & set(counts)
