"""The block of the sources on the display of a run: one line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from actors.telemetry.counted import counters_of
from slackwater.status.text import counted
from slackwater.terminal.fixed_table import Column, fixed_table
from slackwater.terminal.quantities import human_bytes, human_count, human_rate, human_seconds
from state.visible import visible

if TYPE_CHECKING:
    from actors.telemetry.counted import Counted, TerminalColumn
    from slackwater.status.run_status import SourceStatus


def source_block(sources: Mapping[str, SourceStatus], lines: int, *, names: int, width: int) -> Table:
    """The sources, in at most `lines` lines; the last line sums up those that do not fit."""
    rows: list[tuple[str | Text, SourceStatus]] = list(sources.items())
    if len(rows) > lines:
        others = [status for _, status in rows[lines - 1 :]]
        rows = [*rows[: lines - 1], (Text(f"{len(others)} others", style="italic"), _sum(others))]
    return fixed_table("source", rows, _columns(type(rows[0][1])), names=names, width=width)


def source_notes(sources: Mapping[str, SourceStatus], most: int) -> list[Text]:
    """Notes on single sources, one line for each: a pause, paused removals, the watermark, bad records, and the
    messages of a queue.
    """
    notes = [note for name, status in sources.items() if (note := _note(name, status))]
    if len(notes) <= most:
        return notes
    return [*notes[: most - 1], Text(f"{len(notes) - most + 1} other sources have such notes")]


def _note(name: str, status: SourceStatus) -> Text | None:
    parts = []
    if status.paused is not None:
        parts.append(Text(f"paused: {visible(status.paused)}", style="bold red"))
    if status.paused_removals:
        missing = counted(status.paused_removals, "missing file")
        parts.append(Text(f"removals are paused: {missing}; see `slackwater allow-removals`", style="bold red"))
    if status.watermark is not None:
        lag = "" if status.watermark_lag_s is None else f", {human_seconds(status.watermark_lag_s)} behind"
        parts.append(Text(f"watermark {status.watermark:%Y-%m-%d %H:%M:%S}{lag}"))
    if status.rows_bad:
        parts.append(Text(counted(status.rows_bad, "bad record"), style="red"))
    if (messages := status.messages) is not None:
        in_flight = Text(f"{counted(messages.in_flight, 'message')} in flight")
        if messages.in_flight:
            in_flight.append(f", oldest {messages.oldest_s:,.0f} s")
        parts.append(in_flight)
        for field, counter in counters_of(type(messages)).items():
            if counter.note and (number := getattr(messages, field)):
                parts.append(Text(f"{number:,} {counter.note}", style="red"))
    if not parts:
        return None
    return Text(f"{visible(name)}: ", no_wrap=True, overflow="ellipsis").append_text(Text(", ").join(parts))


def _sum(sources: Sequence[SourceStatus]) -> SourceStatus:
    shown: dict[str, Any] = {}
    for name, counter in counters_of(type(sources[0])).items():
        if counter.column is not None:
            values = [value for each in sources if (value := getattr(each, name)) is not None]
            # The worst of ages.
            shown[name] = max(values, default=None) if counter.unit == "seconds" else sum(values)
    return replace(sources[0], **shown)


def _cell(name: str, counter: Counted, column: TerminalColumn) -> Callable[[SourceStatus], Text | str]:
    def cell(source: SourceStatus) -> Text | str:
        value = getattr(source, name)
        text = _text(value, counter.unit, column.digits)
        return Text(text, style="bold red" if value else "") if column.is_alarm else text

    return cell


def _text(value: float | None, unit: str, digits: int) -> str:
    if value is None:
        return ""
    if unit.startswith("bytes"):
        return human_bytes(value)
    if unit.endswith("/s"):
        return human_rate(value)
    return human_seconds(value) if unit == "seconds" else human_count(int(value), digits)


def _columns(kind: type[SourceStatus]) -> Sequence[Column[SourceStatus]]:
    """The columns of the described numbers that have one, from left to right."""
    shown = [(name, each, each.column) for name, each in counters_of(kind).items() if each.column is not None]
    return [
        Column(column.title, column.width, column.rank, _cell(name, each, column))
        for name, each, column in sorted(shown, key=lambda known: known[2].position)
    ]
