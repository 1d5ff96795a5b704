"""How far a run is: a live table on a terminal, otherwise a log line whenever something has changed."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import structlog
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from actors.visible_text import visible
from state.clock import Clock

if TYPE_CHECKING:
    from slackwater.run_status import MessageStatus, RunStatus

_LOG_INTERVAL_S = 2.0
_UNITS = ("B", "kB", "MB", "GB", "TB")


def human_bytes(count: float) -> str:
    """A count of bytes for people, in powers of 1,000."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


class Progress:
    """Shows each status that it is given.  A context manager: the live table stands on stderr until the end.

    Args:
        name: of the pipeline.
        clock: for the rate of log lines.
        console: where a live table goes, if it is a terminal; None takes stderr.
    """

    def __init__(self, name: str, clock: Clock, console: Console | None = None) -> None:
        self._name = name
        self._clock = clock
        self._console = console or Console(stderr=True)
        self._live = (
            Live(console=self._console, refresh_per_second=8, transient=False) if self._console.is_terminal else None
        )
        self._spinner = Spinner("dots")
        self._started = clock.monotonic()
        self._logged_at = float("-inf")
        self._logged: object = None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, status: RunStatus) -> None:
        """Brings the display up to date."""
        if self._live:
            self._live.update(self._table(status))
        else:
            self._log(status)

    def _table(self, status: RunStatus) -> Group:
        seconds = self._clock.monotonic() - self._started
        text = f"{self._name}  {status.phase}  {status.epochs} epochs  Spark {status.spark}  {seconds:.0f} s"
        if status.message:
            text += f"  {status.message}"
        for name, late in status.late_views.items():
            text += f"  {name} {'misses files' if late.missing else f'{late.fraction:.0%}'}"
        self._spinner.update(text=Text(visible(text)))
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        table.add_column("source")
        for column in ("listed", "waiting", "reading", "done", "quarantined", "rows", "bad rows", "bytes", "requests"):
            table.add_column(column, justify="right")
        for name, source in status.sources.items():
            table.add_row(
                name,
                f"{source.listed:,}",
                f"{source.waiting:,}",
                f"{source.reading:,}",
                f"{source.done:,}",
                Text(f"{source.quarantined:,}", style="red" if source.quarantined else ""),
                f"{source.rows:,}",
                Text(f"{source.rows_bad:,}", style="red" if source.rows_bad else ""),
                human_bytes(source.bytes),
                f"{source.requests:,}",
            )
        # In a column of its own they would take the room that the numbers need.
        queues = [_messages(name, each.messages) for name, each in status.sources.items() if each.messages is not None]
        return Group(self._spinner, table, *queues)

    def _log(self, status: RunStatus) -> None:
        now = self._clock.monotonic()
        if status == self._logged or now - self._logged_at < _LOG_INTERVAL_S:
            return
        self._logged, self._logged_at = status, now
        log = structlog.get_logger()
        log.info("run", phase=status.phase, epoch=status.epoch, epochs=status.epochs, spark=status.spark)
        for name, late in status.late_views.items():
            log.info("late view", view=name, fraction=round(late.fraction, 3), missing=len(late.missing))
        for name, source in status.sources.items():
            log.info(
                "source",
                source=name,
                waiting=source.waiting + source.reading,
                done=source.done,
                quarantined=source.quarantined,
                rows=source.rows,
                rows_bad=source.rows_bad,
                bytes=source.bytes,
                requests=source.requests,
                **_logged(source.messages),
            )


def _messages(source: str, messages: MessageStatus) -> Text:
    text = Text(f"{visible(source)}: {messages.in_flight:,} messages in flight")
    if messages.in_flight:
        text.append(f", oldest {messages.oldest_s:,.0f} s")
    if messages.poison:
        text.append(f", {messages.poison:,} poison", style="red")
    return text


def _logged(messages: MessageStatus | None) -> dict[str, object]:
    if messages is None:
        return {}
    return {
        "messages_in_flight": messages.in_flight,
        "oldest_message_s": round(messages.oldest_s, 1),
        "redelivered": messages.redelivered,
        "poison": messages.poison,
    }
