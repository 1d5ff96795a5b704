"""`slackwater trace`: the phases of an epoch and their parts, as a waterfall of bars."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_bytes
from slackwater.status.text import counted
from state.tables.epoch_trace import HotKey, WorkCost
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.trace import Trace

_NUMBER = len("+10.000")
_BAR = 10
_DIGITS = 5
_COLUMNS = ("phase", "name", "start_s", "seconds")
_COSTS = tuple(field.name for field in fields(WorkCost))
_HOT = tuple(f"hot_{field.name}" for field in fields(HotKey))
_COLOURS = {"fetch": "blue", "align": "cyan", "spark": "magenta", "collect": "yellow", "commit": "green"}


def print_trace(trace: Trace, output: Output) -> None:
    """Prints the phases of an epoch and their parts: as bars on a terminal, else as lines."""
    spans = [
        {**asdict(span), "start_s": round(span.start_s, _DIGITS), "seconds": round(span.seconds, _DIGITS)}
        for span in trace.spans
    ]
    if output.json:
        output.document({**asdict(trace), "seconds": round(trace.seconds, _DIGITS), "spans": spans})
        return
    output.text(
        f"epoch {trace.epoch}, committed at {trace.committed_at}: {counted(trace.files, 'file')}, "
        f"{counted(trace.rows, 'row')}, {human_bytes(trace.bytes)}, {counted(trace.requests, 'request')}"
    )
    output.text(f"{trace.seconds:.3f} s from the opening of the epoch to {_end(trace)}; 0 is its barrier")
    if output.console.is_terminal:
        output.console.print(_waterfall(trace, output.console.width))
    else:
        costs = _COSTS if any(span.cost for span in trace.spans) else ()
        hot = _HOT if any(span.hot for span in trace.spans) else ()
        rows = [
            {
                **dict.fromkeys((*costs, *hot)),
                **span,
                **(span["cost"] or {}),
                **({f"hot_{name}": value for name, value in span["hot"].items()} if span["hot"] else {}),
            }
            for span in spans
        ]
        output.rows(rows, (*_COLUMNS, *costs, *hot))
    for phase, count in trace.left_out.items():
        output.text(f"{phase}: {count:,} shorter ones are not shown")
    if trace.planned_queries:
        output.text(f"spark: planned queries: {trace.planned_queries:,}")


def _end(trace: Trace) -> str:
    return "the end of its commit" if trace.commit_s is not None else "its commit, whose duration is not known yet"


def _waterfall(trace: Trace, width: int) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold", expand=True, padding=(0, 1))
    # On a narrow terminal the names are cut.
    for_names = max(8, width - _BAR - 2 * _NUMBER - 3 * len(" │ "))
    table.add_column("phase", no_wrap=True, overflow="ellipsis", max_width=for_names)
    table.add_column("start", justify="right", no_wrap=True, min_width=_NUMBER)
    table.add_column("seconds", justify="right", no_wrap=True, min_width=_NUMBER)
    table.add_column("", ratio=1, min_width=_BAR)
    first_s = min((span.start_s for span in trace.spans), default=0.0)
    whole_s = max(trace.seconds, 1e-9)
    for span in trace.spans:
        begin_s = span.start_s - first_s
        # A short span still gets a visible bar.
        end_s = max(begin_s + span.seconds, begin_s + whole_s / 200)
        name = Text(f"  {visible(span.name)}") if span.name else Text(span.phase, style="bold")
        if span.cost is not None:
            name.append(f"  {span.cost.given:,} rows → {span.cost.written:,}", style="dim")
        if span.hot is not None:
            name.append(f"  {visible(span.hot.key)}: {span.hot.rows:,} rows", style="yellow")
        bar = Bar(whole_s, begin_s, end_s, color=_COLOURS.get(span.phase, "white"))
        table.add_row(name, f"{span.start_s:+.3f}", f"{span.seconds:.3f}", bar)
    return table
