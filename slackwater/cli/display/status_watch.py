"""`slackwater status --watch`: the changes of a root; on a terminal the same display as for `run`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from actors.telemetry.counted import counters_of
from slackwater.cli.display.live_display import LiveDisplay
from slackwater.cli.display.run_display import RunDisplay
from slackwater.cli.terminal.edge import error_line
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import print_note
from slackwater.status.run_status import SourceStatus
from slackwater.status.text import shell_root
from state.clock import Clock, SystemClock
from state.errors import StorageError
from state.location import Location

if TYPE_CHECKING:
    from slackwater.reading.watching.root_watcher import RootLook

_COUNTS = {name: each for name, each in counters_of(SourceStatus).items() if each.is_line}
_HEAD = ("at", "phase", "epoch", "source", *_COUNTS, "freshness_s")


class _Shows(Protocol):
    """A display of looks at a root."""

    def show(self, look: RootLook) -> None: ...


def watch_status(root: str, options: Mapping[str, str], interval_s: float, output: Output) -> None:
    """Shows a root until an interrupt, which is not an error.

    If the store does not answer, a warning is shown, and the read is repeated.

    Args:
        interval_s: seconds between two reads, each a few requests.
        output: a live display on a terminal, lines in a pipe, JSON documents for programs.

    Raises:
        StoreNotFoundError: no pipeline has written there, or the root is deleted.
        StorageError: the first read fails.
    """
    from slackwater.reading.watching.root_watcher import RootWatcher

    clock = SystemClock()
    location = Location(root, options)
    watcher = RootWatcher(location, clock)
    look = watcher.look()
    with ExitStack() as stack:
        shows = _shows(shell_root(location), output, clock, stack)
        try:
            while True:
                shows.show(look)
                clock.sleep(interval_s)
                try:
                    look = watcher.look()
                except StorageError as error:
                    look = replace(look, warning=f"{error_line(error)}; trying again")
        except KeyboardInterrupt:
            return


def _shows(root: str, output: Output, clock: Clock, stack: ExitStack) -> _Shows:
    if output.json:
        return _Documents(output, clock)
    if output.console.is_terminal and not output.console.is_dumb_terminal:
        return _Picture(root, output.console, stack)
    return _Lines(root, output, clock)


class _Picture:
    def __init__(self, root: str, console: Console, stack: ExitStack) -> None:
        self._root = root
        self._live = stack.enter_context(LiveDisplay(RunDisplay("", root), console))

    def show(self, look: RootLook) -> None:
        owner = look.owner
        note = "" if owner is None else f"process {owner.pid} on {owner.host}"
        if look.life.took_over:
            note += ", which took over"
        name = "" if owner is None else owner.pipeline
        self._live.show(look.status, RunDisplay(name, self._root, note, look.warning))


class _Documents:
    """A line for each change."""

    def __init__(self, output: Output, clock: Clock) -> None:
        self._output, self._clock = output, clock
        self._last: dict[str, Any] | None = None

    def show(self, look: RootLook) -> None:
        document = look.to_json()
        # These change all the time.
        compared = {**document, "warning": bool(look.warning), "status": {**document["status"], "seconds": 0}}
        if compared != self._last:
            self._last = compared
            self._output.line({"at": self._clock.now(), **document})


class _Lines:
    """A line for each source with a change in itself or in its run; warnings, also on failed views, on stderr."""

    def __init__(self, root: str, output: Output, clock: Clock) -> None:
        self._root, self._output, self._clock = root, output, clock
        self._last: dict[str, object] = {}
        self._failed: Mapping[str, str] = {}
        self._is_warned = False

    def show(self, look: RootLook) -> None:
        if look.warning and not self._is_warned:
            print_note(f"warning: {look.warning}")
        self._is_warned = bool(look.warning)
        failed = {name: view.error for name, view in look.status.views.items() if view.error is not None}
        for name in (each for each in failed if each not in self._failed):
            step = f"`slackwater status {self._root}` has the next step"
            print_note(f"warning: view {name} has failed: {failed[name]}; {step}")
        self._failed = failed
        if not self._last:
            self._output.lines([_HEAD])
        status, at = look.status, self._clock.now()
        for name, source in status.sources.items() or [("", None)]:
            counts = {count: None if source is None else getattr(source, count) for count in _COUNTS}
            news = {count: value for count, value in counts.items() if _COUNTS[count].is_news}
            compared = (status.phase, status.epoch, news)
            if compared != self._last.get(name):
                self._last[name] = compared
                freshness_s = None if source is None else source.freshness_s
                self._output.lines([[at, status.phase, status.epoch, name, *counts.values(), freshness_s]])
