"""Tests of the events of a run for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from actors.protocol.counters import SourceProgress
from slackwater.cli.display.event_lines import EventLines
from slackwater.cli.terminal.output import Output
from slackwater.running.run_events import (
    CaughtUp,
    EpochCommitted,
    PhaseChanged,
    Quarantined,
    Recovering,
    RunEvent,
    RunEvents,
    SparkReady,
    ViewFailed,
    ViewShown,
)
from slackwater.status.run_status import EpochStatus, RunReport, RunStatus, ViewStatus
from state.clock import ManualClock
from state.errors import RunFailedError
from tests.slackwater.cli.run_statuses import AT, EPOCH, committed, late, running, source


def events(*statuses: RunStatus) -> list[RunEvent]:
    """The events of these statuses, in their order."""
    found = RunEvents()
    return [event for status in statuses for event in found.of(status)]


def test_each_epoch_is_told_once_however_often_it_is_seen() -> None:
    recent = (committed(EPOCH), committed(EPOCH + 1))
    told = events(
        RunStatus(recent=recent), RunStatus(recent=recent), RunStatus(recent=(*recent[1:], committed(EPOCH + 2)))
    )
    assert [event.epoch for event in told if isinstance(event, EpochCommitted)] == [EPOCH, EPOCH + 1, EPOCH + 2]
    assert told[0] == EpochCommitted(
        epoch=EPOCH,
        committed_at=AT,
        files=512,
        rows=6_789,
        bytes=1_000,
        requests=520,
        seconds={"fetch": 0.52, "align": 0.25, "spark": 1.0, "collect": 1.5, "commit": 0.02},
        freshness_s={"source_0": 0.831},
    )


def test_a_run_starts_catches_up_and_stops_in_this_order() -> None:
    quiet = RunStatus(phase="running", spark="ready", seconds=4.0, epoch=EPOCH)
    told = events(
        RunStatus(),
        replace(quiet, spark="starting"),
        quiet,
        replace(quiet, recent=(committed(),), caught_up=True),
        replace(quiet, phase="stopped", recent=(committed(), committed(EPOCH + 1)), caught_up=True),
    )
    assert [event.event for event in told] == ["phase", "spark_ready", "epoch", "caught_up", "epoch", "phase"]
    assert told[0] == PhaseChanged("running") and told[1] == SparkReady(4.0)
    assert told[3] == CaughtUp(EPOCH) and told[5] == PhaseChanged("stopped")


def test_a_recovery_is_told_with_its_reason_even_if_it_was_too_short_to_be_seen() -> None:
    up = RunStatus(phase="running")
    down = replace(up, phase="recovering", recoveries=1, message="an actor died")
    told = events(up, down, down, replace(up, recoveries=1), replace(up, recoveries=2))
    assert told[1:] == [Recovering("an actor died", 1), PhaseChanged("running"), Recovering("", 2)]


def test_what_is_quarantined_is_told_when_it_grows() -> None:
    def status(files: int, records: int) -> RunStatus:
        return RunStatus(sources={"a": source(quarantined=files, rows_bad=records)})

    told = events(status(0, 0), status(1, 0), status(1, 0), status(1, 3), status(0, 3), status(1, 3))
    assert told == [Quarantined("a", 1, 0), Quarantined("a", 1, 3), Quarantined("a", 1, 3)]


def test_what_was_quarantined_before_the_run_is_not_told_again_and_counts_with_what_follows() -> None:
    before = SourceProgress(quarantined=5, rows_bad=2)
    known, more = (source(quarantined=files, rows_bad=2, before=before) for files in (5, 6))
    told = events(RunStatus(), RunStatus(sources={"a": known}), RunStatus(sources={"a": more}))
    assert told == [Quarantined("a", 6, 2)]


def test_a_backfill_is_told_after_the_epoch_that_shows_it() -> None:
    view = {"late": ViewStatus("append")}
    backfilling = RunStatus(phase="running", epoch=EPOCH, views=view, backfills=late(0.9))
    in_flight = replace(backfilling, backfills={}, in_flight=(EpochStatus(EPOCH + 1, "collect", 0.1),))
    shown = replace(in_flight, in_flight=(), epoch=EPOCH + 1, recent=(committed(EPOCH + 1),))
    told = events(backfilling, in_flight)
    assert [event.event for event in told] == ["phase"]
    told = events(backfilling, in_flight, shown, shown)
    assert [event.event for event in told] == ["phase", "epoch", "view_shown"]
    assert told[-1] == ViewShown("late", "append")
    dropped = replace(backfilling, backfills={}, views={})
    assert [event.event for event in events(backfilling, dropped, shown)] == ["phase", "epoch"]


def test_a_view_that_fails_is_told_once_and_a_backfill_that_fails_is_not_shown() -> None:
    backfilling = RunStatus(phase="running", epoch=EPOCH, views={"late": ViewStatus("append")}, backfills=late(0.9))
    failed = replace(
        backfilling, backfills={}, views={"late": ViewStatus("append", stale_epoch=EPOCH, error="too wet")}
    )
    told = events(backfilling, failed, failed)
    assert told[1:] == [ViewFailed("late", EPOCH, "too wet")]
    again = replace(failed, views={"late": ViewStatus("append", stale_epoch=EPOCH, error="too dry")})
    assert [event.event for event in events(failed, again)] == ["phase", "view_failed", "view_failed"]


def test_an_event_is_a_line_of_json_with_epochs_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    lines = EventLines(Output(json=True), ManualClock(AT))
    lines.show(running(recent=(committed(),)))
    lines.failed(RunFailedError("the key\x1b is secret_access_key=abc,\nand so on"))
    lines.reported(RunReport(1, 2, 3, 4, 5, 6.7891, 0, notes=("odd",)))
    out = capsys.readouterr().out
    told = [json.loads(line) for line in out.splitlines()]
    assert [each["event"] for each in told] == ["phase", "spark_ready", "epoch", "failed", "report"]
    assert {each["at"] for each in told} == {AT.isoformat()}
    assert told[2]["epoch"] == str(EPOCH) and told[2]["committed_at"] == AT.isoformat()
    assert told[3]["error"] == "RunFailedError" and "abc" not in out and "\x1b" not in out and "\\n" not in out
    assert (told[4]["rows"], told[4]["seconds"], told[4]["notes"]) == (3, 6.789, ["odd"])


def test_without_json_no_event_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    EventLines(Output(), ManualClock(AT)).show(running())
    assert capsys.readouterr().out == ""
