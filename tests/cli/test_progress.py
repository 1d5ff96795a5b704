"""A run's progress: a live table on a terminal, log lines in a file."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import structlog
from rich.console import Console

from slackwater.cli.progress import Progress, human_bytes
from slackwater.run_status import MessageStatus, RunStatus, SourceStatus
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


def _with_messages(messages: MessageStatus) -> RunStatus:
    """Beside the source without a queue one that has one."""
    return replace(_STATUS, sources={**_STATUS.sources, "told": SourceStatus(done=3, messages=messages)})


def test_a_terminal_shows_messages_in_few_words_if_there_is_a_queue() -> None:
    for messages, expected in (
        (MessageStatus("https://sqs", received=9), "told: 0 messages in flight"),
        (MessageStatus("https://sqs", 1_204, 37.4, poison=2), "told: 1,204 messages in flight, oldest 37 s, 2 poison"),
    ):
        console, stream = _terminal()
        with Progress("demo", ManualClock(), console) as progress:
            progress.show(_with_messages(messages))
        assert expected in [line.rstrip() for line in stream.getvalue().splitlines()]
    console, stream = _terminal()
    with Progress("demo", ManualClock(), console) as progress:
        progress.show(_STATUS)
    assert "messages" not in stream.getvalue() and "in flight" not in stream.getvalue()


def test_a_line_has_messages_if_there_is_a_queue() -> None:
    with structlog.testing.capture_logs() as logs:
        progress = Progress("demo", ManualClock(), Console(file=io.StringIO(), force_terminal=False))
        progress.show(_with_messages(MessageStatus("https://sqs/raw", 12, 3.21, redelivered=4, poison=2)))
    flights, told = logs[1:]
    counts = ("messages_in_flight", "oldest_message_s", "redelivered", "poison")
    assert [told[name] for name in counts] == [12, 3.2, 4, 2]
    assert not flights.keys() & set(counts)


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
