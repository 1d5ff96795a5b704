"""A run's progress: a live table on a terminal, log lines in a file."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import structlog
from rich.console import Console

from slackwater.cli.progress import Progress, human_bytes
from slackwater.run_status import RunStatus, SourceStatus
from state.clock import ManualClock

_STATUS = RunStatus(
    phase="running",
    epoch=7,
    epochs=3,
    sources={
        "flights": SourceStatus(listed=90, waiting=41, reading=2, done=46, quarantined=1, rows=12_345, bytes=1_500)
    },
    spark="ready",
    message="waiting for a first file in [flights]",
)


def _terminal() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=True, width=140, color_system=None), stream


def test_a_terminal_shows_each_source_and_what_the_run_waits_for() -> None:
    console, stream = _terminal()
    with Progress("demo", ManualClock(), console) as progress:
        progress.show(_STATUS)
    shown = stream.getvalue()
    for expected in ("demo", "running", "3 epochs", "Spark ready", "flights", "41", "12,345", "1.5 kB", "[flights]"):
        assert expected in shown


def test_a_file_gets_a_line_only_when_something_has_changed_and_not_too_often() -> None:
    clock = ManualClock()
    with structlog.testing.capture_logs() as logs:
        progress = Progress("demo", clock, Console(file=io.StringIO(), force_terminal=False))
        progress.show(_STATUS)
        first = len(logs)
        assert first == 2, "one line for the run, one for its source"
        progress.show(replace(_STATUS, epochs=4))
        assert len(logs) == first, "too soon"
        clock.advance(5)
        progress.show(replace(_STATUS, epochs=4))
        assert len(logs) == 2 * first
        clock.advance(5)
        progress.show(replace(_STATUS, epochs=4))
        assert len(logs) == 2 * first, "nothing has changed"
    assert logs[0]["epochs"] == 3 and logs[1]["source"] == "flights" and logs[1]["waiting"] == 43


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2.5e12, "2.5 TB"), (9e15, "9000.0 TB")]
)
def test_bytes_for_people(count: float, text: str) -> None:
    assert human_bytes(count) == text
