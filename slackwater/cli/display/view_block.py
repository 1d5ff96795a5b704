"""The block of the views on the display of a run: one line for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slackwater.status.text import counted
from slackwater.terminal.fixed_table import Column, fixed_table
from slackwater.terminal.quantities import human_count, human_seconds

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus


@dataclass(frozen=True)
class _View:
    view_class: str
    rows: int | None
    lag: Text


def view_block(status: RunStatus, lines: int, *, names: int, width: int) -> Table:
    """The views, in at most `lines` lines; the last line sums up those that do not fit."""
    rows: list[tuple[str | Text, _View]] = [*_views(status).items()]
    if len(rows) > lines:
        others = [view for _, view in rows[lines - 1 :]]
        known = [view.rows for view in others if view.rows is not None]
        behind = sum(bool(view.lag.plain) and view.lag.plain != _CURRENT for view in others)
        lag = Text(f"{behind} of them are behind" if behind else _CURRENT)
        summed = _View("", sum(known) if known else None, lag)
        rows = [*rows[: lines - 1], (Text(f"{len(others)} others", style="italic"), summed)]
    return fixed_table("view", rows, _COLUMNS, names=names, width=width)


def _views(status: RunStatus) -> dict[str, _View]:
    views = {}
    for name in {**status.views, **status.backfills}:
        view, backfill = status.views.get(name), status.backfills.get(name)
        if backfill is not None and backfill.missing:
            lag = Text(f"misses {counted(len(backfill.missing), 'file')}", style="bold red")
        elif backfill is not None:
            lag = Text(f"backfill: {backfill.fraction:.0%}", style="cyan")
        elif view is None or view.rows is None:
            lag = Text("")
        else:
            lag = Text(f"{human_seconds(view.behind_s)} behind") if view.behind_s else Text(_CURRENT)
        views[name] = _View("" if view is None else view.view_class, None if view is None else view.rows, lag)
    return views


_CURRENT = "current"
_COLUMNS: Sequence[Column[_View]] = (
    Column("class", 9, 2, lambda view: view.view_class, justify="left"),
    Column("rows", 11, 0, lambda view: "" if view.rows is None else human_count(view.rows, 11)),
    Column("lag", 20, 1, lambda view: view.lag, justify="left"),
)
