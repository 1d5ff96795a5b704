"""The live display of a run on a terminal, redrawn in place."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from slackwater.cli.display.run_display import RunDisplay
from state.clock import Clock

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus

_REFRESHES_PER_S = 4


class LiveDisplay:
    """Shows the last status.  A context manager: the display stays on the terminal when it ends.

    Log lines, and other output of the program, are printed above it.

    Args:
        clock: counts the seconds of a run without a status of its own; None shows the seconds of the status.
    """

    def __init__(self, display: RunDisplay, console: Console, clock: Clock | None = None) -> None:
        self._display, self._console, self._clock = display, console, clock
        self._began_s = 0.0 if clock is None else clock.monotonic()
        self._status: RunStatus | None = None
        self._live = Live(
            self,
            console=console,
            refresh_per_second=_REFRESHES_PER_S,
            # Output to a file or a pipe does not pass through the terminal.
            redirect_stdout=sys.stdout.isatty(),
            vertical_overflow="crop",
        )

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        status = self._status
        if status is not None:
            if self._clock is not None and not status.seconds:
                status = replace(status, seconds=self._clock.monotonic() - self._began_s)
            yield self._display.render(status, options.max_width, console.height)

    def show(self, status: RunStatus, display: RunDisplay | None = None) -> None:
        """Shows a status from now on.

        Args:
            display: replaces the one so far.
        """
        self._display, self._status = display or self._display, status
