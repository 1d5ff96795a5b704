"""The block of the views, and the notes on failed ones: on the display of a run, and on `slackwater status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from actors.telemetry.counted import counters_of
from slackwater.cli.display.notes import BAD, note, rest
from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.display.view_list import view_rows
from slackwater.cli.terminal.fixed_table import Column, fixed_table
from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_count, human_seconds
from slackwater.status.text import counted
from state.epoch import epoch_time

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus, ViewStatus


_TABLE = ("name", "class", "state", "rows", "version", "path")
_INTERNAL = ("names", "reads", "rows", "bytes", "rows_in_memory", "bytes_in_memory")


@dataclass(frozen=True)
class _View:
    view_class: str
    rows: int | None
    lag: Text
    is_closing: bool = False


class RootViews:
    """The views of a root, with the next step for failed views."""

    def __init__(self, facts: RootFacts) -> None:
        self._views = view_rows(facts.store, [row["name"] for row in facts.backfills])
        self._epochs, self._root = facts.epochs, facts.root

    def document(self) -> Mapping[str, Any]:
        return {"views": self._views}

    def show(self, output: Output) -> None:
        at = {row["epoch"]: row["committed_at"] for row in self._epochs.to_pylist()}
        output.rows(self._views, _TABLE, title="views: any Lance reader opens a path at its tag `committed`")
        for view in self._views:
            if view["error"] is not None:
                _print_failure(view, at, self._root, output)


class RootBackfills:
    """The views of a root that are not complete."""

    def __init__(self, facts: RootFacts) -> None:
        self._rows = facts.backfills

    def document(self) -> Mapping[str, Any]:
        return {"backfills": self._rows}

    def show(self, output: Output) -> None:
        if self._rows:
            title = "backfills: views that are shown when complete"
            output.rows(self._rows, ("name", "class", "fraction"), title=title)


class RootInternalViews:
    """The internal views of a root, with their rows on disk and in memory."""

    def __init__(self, facts: RootFacts) -> None:
        self._rows = facts.store.views.internal().to_pylist()

    def document(self) -> Mapping[str, Any]:
        return {"internal_views": self._rows}

    def show(self, output: Output) -> None:
        if self._rows:
            shown = [{**row, "names": " ".join(row["names"]), "reads": " ".join(row["reads"])} for row in self._rows]
            output.rows(shown, _INTERNAL, title="internal views: rows kept for joins, windows and groups within")


def view_block(status: RunStatus, lines: int, *, names: int, width: int) -> Table:
    """The views, in at most `lines` lines; the last line summarises the views that do not fit."""
    rows: list[tuple[str | Text, _View]] = [*_views(status).items()]
    if len(rows) > lines:
        others = [view for _, view in rows[lines - 1 :]]
        known = [view.rows for view in others if view.rows is not None]
        failed = sum(view.lag.plain == _FAILED for view in others)
        behind = sum(bool(view.lag.plain) and view.lag.plain != _CURRENT and not view.is_closing for view in others)
        lag = Text(f"{behind} of them are behind" if behind else _CURRENT)
        if failed:
            lag = Text(f"{failed} of them failed", style=BAD)
        summed = _View("", sum(known) if known else None, lag)
        rows = [*rows[: lines - 1], (Text(f"{len(others)} others", style="italic"), summed)]
    return fixed_table("view", rows, _COLUMNS, names=names, width=width)


def view_notes(views: Mapping[str, ViewStatus], root: str, most: int) -> list[Text]:
    """Notes on failed views, two lines for each: the epoch since which it is stale, the next step, and the error.

    Args:
        root: the root of the run, as an argument of a command.
        views: the views by name.
        most: the largest number of lines.
    """
    failed = {name: view for name, view in views.items() if view.error is not None}
    shown = [*failed] if 2 * len(failed) <= most else [*failed][: (most - 1) // 2]
    lines = [line for name in shown for line in _failure(name, failed[name], root)]
    return [*lines, *rest(len(failed) - len(shown), "view")]


def utc(at: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _print_failure(view: Mapping[str, Any], at: Mapping[int, datetime], root: str, output: Output) -> None:
    """Prints since when a failed view is stale, the next step, and its error as a line of its own.

    Args:
        at: epoch → the time of its commit.
        root: the root, as an argument of a command.
    """
    stale_epoch, name = view["reflects_epoch"], view["name"]
    since = "" if stale_epoch not in at else f" ({utc(at[stale_epoch])})"
    rows = "it has no rows" if stale_epoch is None else f"it is stale since epoch {stale_epoch}{since}"
    step = f"correct it or its files, and rebuild it with `slackwater retry {root} --view {name}`"
    output.text(f"view {name} has failed: {rows}; {step}")
    line = f"view {name}: {' '.join(view['error'].split())}"
    if output.console.is_terminal:
        output.console.print(note(line, style=""), no_wrap=True, overflow="ellipsis")
    else:
        output.text(line)


def _failure(name: str, view: ViewStatus, root: str) -> tuple[Text, Text]:
    rows = f"stale at {utc(epoch_time(view.stale_epoch))}" if view.stale_epoch is not None else "no rows"
    step = note(f"{name}: {rows}; `slackwater retry {root} --view {name}`")
    return step, note(f"{name}: {' '.join((view.error or '').split())}", style="")


def _views(status: RunStatus) -> dict[str, _View]:
    views = {}
    for name in {**status.views, **status.backfills}:
        view, backfill = status.views.get(name), status.backfills.get(name)
        if view is not None and view.error is not None:
            lag = Text(_FAILED, style=BAD)
        elif backfill is not None and backfill.missing:
            lag = Text(f"misses {counted(len(backfill.missing), 'file')}", style=BAD)
        elif backfill is not None:
            lag = Text(f"backfill: {backfill.fraction:.0%}", style="cyan")
        elif view is None or view.rows is None:
            lag = Text("")
        else:
            lag = Text(f"{human_seconds(view.behind_s)} behind") if view.behind_s else Text(_CURRENT)
            if view.open_groups is not None:
                lag = Text(f"{human_count(view.open_groups)} open")
            for field, counter in counters_of(type(view)).items():
                if counter.note and (number := getattr(view, field)):
                    lag.append(f", {human_count(number)} {counter.note}")
            if view.held_since is not None:
                lag.append(", held", style=BAD)
        rows, is_closing = (None, False) if view is None else (view.rows, view.open_groups is not None)
        views[name] = _View("" if view is None else view.view_class, rows, lag, is_closing)
    return views


_CURRENT, _FAILED = "current", "failed"
_COLUMNS: Sequence[Column[_View]] = (
    Column("class", 9, 2, lambda view: view.view_class, justify="left"),
    Column("rows", 11, 0, lambda view: "" if view.rows is None else human_count(view.rows, 11)),
    Column("lag", 20, 1, lambda view: view.lag, justify="left"),
)
