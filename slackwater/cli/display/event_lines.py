"""The events of a run on stdout for `run --json`: one JSON document per line."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING

from actors.telemetry.logging import redact
from slackwater.cli.terminal.output import Output
from state.clock import Clock

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline
    from slackwater.running.run_events import RunEvent, RunEvents
    from slackwater.status.run_status import RunReport, RunStatus


class EventLines:
    """Prints the events of `slackwater.running.run_events`; without `--json` it prints nothing.

    Args:
        clock: gives the time of the observation.
    """

    def __init__(self, output: Output, clock: Clock) -> None:
        self._output, self._clock = output, clock
        self._events: RunEvents | None = None

    def started(self, pipeline: Pipeline) -> None:
        """The run owns its root."""
        from slackwater import __version__
        from slackwater.running.run_events import Started

        self._print(Started(pipeline.name, pipeline.root.url, os.getpid(), socket.gethostname(), __version__))

    def show(self, status: RunStatus) -> None:
        """Prints the events since the last status."""
        from slackwater.running.run_events import RunEvents

        self._events = self._events or RunEvents()
        for event in self._events.of(status):
            self._print(event)

    def failed(self, error: Exception) -> None:
        """An error has ended the run, or has kept it from starting."""
        from slackwater.running.run_events import Failed

        self._print(Failed(type(error).__name__, " ".join(redact(str(error)).split())))

    def reported(self, report: RunReport) -> None:
        from slackwater.running.run_events import Reported

        self._print(Reported.of(report))

    def _print(self, event: RunEvent) -> None:
        if self._output.json:
            self._output.line({"event": event.event, "at": self._clock.now(), **asdict(event)})
