"""A run in the foreground with its display, for `slackwater run` and the demo."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from slackwater.cli.display.event_lines import EventLines
from slackwater.cli.display.live_display import LiveDisplay
from slackwater.cli.display.run_display import RunDisplay
from slackwater.cli.display.run_log import RunLog
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole, print_note
from slackwater.running.foreground import run_in_foreground
from slackwater.status.text import counted, shell_root
from state.clock import Clock, SystemClock

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline
    from slackwater.running.run import Run
    from slackwater.status.run_status import RunReport, RunStatus

# A live display shows the seconds of the run; a log has only changes, some of which wait for their turn.
_LIVE_S, _LOGGED_S = 1.0, 5.0
_CHECKS = "checks of the root and the sources, and Ray"
_REFRESH_S = 0.5


def has_display(output: Output) -> bool:
    """True if a run has a live display on stderr: it is a terminal, and does not receive JSON at the same time."""
    console = SafeConsole(stderr=True)
    is_shared = output.json and sys.stdout.isatty()
    return console.is_terminal and not console.is_dumb_terminal and not is_shared


def show_run(pipeline: Pipeline, until: Literal["caught_up"] | None, takeover: bool, output: Output) -> RunReport:
    """Runs a pipeline until it has caught up, fails, or receives a signal.

    Its status is shown on stderr; with `--json`, its events are printed on stdout.

    Args:
        until: "caught_up"; None to run forever.
        takeover: take the root over from a living process.

    Raises:
        SlackwaterError: the error that ended the run.
    """
    clock = SystemClock()
    events = EventLines(output, clock)
    root = shell_root(pipeline.root)
    is_live = has_display(output)
    display: LiveDisplay | RunLog = RunLog(clock, root)
    if is_live:
        display = LiveDisplay(RunDisplay(pipeline.name, root), SafeConsole(stderr=True), clock)
    started: list[Run] = []

    def start() -> Run:
        with _shown_start(display, clock):
            started.append(pipeline.start(takeover=takeover))
        events.started(pipeline)
        return started[0]

    def show(status: RunStatus) -> None:
        display.show(status)
        events.show(status)

    with display:
        try:
            return run_in_foreground(start, until, show, _LIVE_S if is_live else _LOGGED_S)
        except Exception as error:
            events.failed(error)
            raise
        finally:
            for run in started:
                show(run.status())
                events.reported(run.report())


@contextmanager
def _shown_start(display: LiveDisplay | RunLog, clock: Clock) -> Iterator[None]:
    """Shows the duration of a start that has no run yet: its checks, and the start of Ray."""
    from slackwater.status.run_status import RunStatus, StartupStep

    began_s, has_run = clock.monotonic(), threading.Event()

    def show_at(seconds: float) -> None:
        step = StartupStep(_CHECKS, seconds, done=False)
        display.show(RunStatus(message=f"starting; waiting for {_CHECKS}", seconds=seconds, startup=(step,)))

    def show_until_it_has() -> None:
        while not has_run.wait(_REFRESH_S):
            show_at(clock.monotonic() - began_s)

    show_at(0.0)
    thread = threading.Thread(target=show_until_it_has, name="start-display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_run.set()
        thread.join()


def print_report(report: RunReport, output: Output) -> None:
    """Prints the report of a run, for people."""
    values = {
        "epochs": report.epochs,
        "files": report.files,
        "rows": report.rows,
        "bytes": report.bytes,
        "requests": report.requests,
        "seconds": round(report.seconds, 3),
        "quarantined": report.quarantined,
    }
    if output.console.is_terminal:
        output.text("")
    output.rows([values], list(values), title="this run")
    for note in report.notes:
        output.text(f"note: {note}")


def print_incomplete(report: RunReport) -> None:
    """Prints the paused sources and the published tables that lack epochs, as the last lines on stderr."""
    for name, reason in report.paused_sources.items():
        print_note(f"error: source {name} is paused: {' '.join(reason.split())}")
    for each in report.failed_publications:
        reason = each.error or each.waits_for or "the run ended before it was published"
        epochs = f"{counted(each.behind_epochs, 'epoch')} behind ({each.state})" if each.behind_epochs else each.state
        print_note(f"error: view {each.view}: {each.table} is {epochs}: {' '.join(reason.split())}")
