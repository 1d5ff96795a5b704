"""The block of the sources on the display of a run: one line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slackwater.status.text import counted
from slackwater.terminal.fixed_table import Column, fixed_table
from slackwater.terminal.quantities import human_bytes, human_count, human_rate, human_seconds
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.run_status import SourceStatus

_SUMMED = (
    "listed", "waiting", "reading", "done", "quarantined", "rows", "bytes", "requests",
    "files_per_s", "rows_per_s", "bytes_per_s", "requests_per_s",
)  # fmt: skip


def source_block(sources: Mapping[str, SourceStatus], lines: int, *, names: int, width: int) -> Table:
    """The sources, in at most `lines` lines; the last line sums up those that do not fit."""
    rows: list[tuple[str | Text, SourceStatus]] = list(sources.items())
    if len(rows) > lines:
        others = [status for _, status in rows[lines - 1 :]]
        rows = [*rows[: lines - 1], (Text(f"{len(others)} others", style="italic"), _sum(others))]
    return fixed_table("source", rows, _COLUMNS, names=names, width=width)


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
        if messages.poison:
            parts.append(Text(f"{messages.poison:,} poison", style="red"))
    if not parts:
        return None
    return Text(f"{visible(name)}: ", no_wrap=True, overflow="ellipsis").append_text(Text(", ").join(parts))


def _sum(sources: Sequence[SourceStatus]) -> SourceStatus:
    known = [each.freshness_s for each in sources if each.freshness_s is not None]
    sums = {name: sum(getattr(each, name) for each in sources) for name in _SUMMED}
    # The worst of them.
    return replace(sources[0], **sums, freshness_s=max(known, default=None))


def _bad(status: SourceStatus) -> Text:
    return Text(human_count(status.quarantined), style="bold red" if status.quarantined else "")


_COLUMNS: Sequence[Column[SourceStatus]] = (
    Column("listed", 7, 7, lambda source: human_count(source.listed)),
    Column("waiting", 7, 1, lambda source: human_count(source.waiting)),
    Column("reading", 7, 6, lambda source: human_count(source.reading)),
    Column("done", 7, 0, lambda source: human_count(source.done)),
    Column("quarantined", 11, 3, _bad),
    Column("rows", 11, 9, lambda source: human_count(source.rows, 11)),
    Column("rows/s", 7, 2, lambda source: human_rate(source.rows_per_s)),
    Column("bytes", 8, 10, lambda source: human_bytes(source.bytes)),
    Column("bytes/s", 8, 5, lambda source: human_bytes(source.bytes_per_s)),
    Column("requests", 8, 8, lambda source: human_count(source.requests, 8)),
    Column("requests/s", 10, 12, lambda source: human_rate(source.requests_per_s)),
    Column("files/s", 7, 11, lambda source: human_rate(source.files_per_s)),
    Column("freshness", 9, 4, lambda source: "" if source.freshness_s is None else human_seconds(source.freshness_s)),
)
