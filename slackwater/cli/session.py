"""A run in the foreground, as `slackwater run` and the demo show it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from slackwater.cli.edge import INTERRUPTED, error_line
from slackwater.cli.output import Output
from slackwater.cli.progress import Progress
from state.clock import SystemClock

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline
    from slackwater.run_status import RunReport

_POLL_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Interruption:
    """The first signal asks for a last epoch.  The second ends the process at once, which a root is built to bear."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self, number: int, _frame: Any) -> None:
        if self.asked.is_set():
            sys.stderr.write(error_line(KeyboardInterrupt()) + "\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        self.asked.set()
        structlog.get_logger().warning("stopping after a last epoch; once more to stop now", signal=number)

    @contextmanager
    def installed(self) -> Iterator[_Interruption]:
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.listen()
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def listen(self) -> None:
        """Takes the signals.  Called again after the start, since Ray takes SIGTERM for itself."""
        for number in _SIGNALS:
            signal.signal(number, self)


def run_in_foreground(pipeline: Pipeline, until: str | None, takeover: bool) -> RunReport:
    """Runs a pipeline with its progress on stderr, until it has caught up, it fails, or a signal comes.

    Args:
        pipeline: what to run.
        until: "caught_up", or None for ever.
        takeover: take the root over from a living process.

    Raises:
        SlackwaterError: whatever ended the run.
    """
    with _Interruption().installed() as interruption, Progress(pipeline.name, SystemClock()) as progress:
        with pipeline.start(takeover=takeover) as run:
            interruption.listen()
            while not interruption.asked.is_set() and not run.wait(until=until, timeout_s=_POLL_S):
                progress.show(run.status())
            report = run.stop()
            progress.show(run.status())
        return report


def print_report(report: RunReport, output: Output) -> None:
    """Prints what a run did."""
    values = {
        "epochs": report.epochs,
        "files": report.files,
        "rows": report.rows,
        "bytes": report.bytes,
        "requests": report.requests,
        "seconds": round(report.seconds, 3),
        "quarantined": report.quarantined,
    }
    if output.json:
        output.document({**values, "notes": list(report.notes)})
        return
    output.rows([values], list(values), title="this run")
    for note in report.notes:
        output.text(f"note: {note}")
