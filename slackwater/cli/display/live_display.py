"""A picture of a run that stands on a terminal and is renewed in place."""

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
    """Shows each status that it is given.  A context manager: what was shown last stays when it ends.

    Log lines, and whatever the program prints, pass above it.

    Args:
        display: what a status looks like.
        console: the terminal.
        clock: counts the seconds of a run that has not begun to; None shows those of the status as they are.
    """

    def __init__(self, display: RunDisplay, console: Console, clock: Clock | None = None) -> None:
        self._display, self._console, self._clock = display, console, clock
        self._began_s = 0.0 if clock is None else clock.monotonic()
        self._status: RunStatus | None = None
        self._live = Live(
            self,
            console=console,
            refresh_per_second=_REFRESHES_PER_S,
            # What goes to a file or a pipe is none of the terminal's business.
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
        """Brings the picture up to date.

        Args:
            status: of the run.
            display: another look than so far.
        """
        self._display, self._status = display or self._display, status
