"""The block of the epochs on the display of a run: seconds of each phase, for the last epoch and epochs in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slackwater.cli.terminal.fixed_table import Column, fixed_table
from slackwater.status.quantities import human_count, human_seconds

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus

_Cells = Mapping[str, "str | Text"]


def epoch_block(status: RunStatus, *, names: int, width: int) -> Table:
    """Two lines: the last committed epoch, and the epochs between barrier and commit, each below its phase."""
    rows: list[tuple[str | Text, _Cells]] = [("last", _last(status)), ("in flight", _in_flight(status))]
    return fixed_table("epoch", rows, _COLUMNS, names=names, width=width)


def _last(status: RunStatus) -> _Cells:
    if not status.recent:
        return {}
    epoch = status.recent[-1]
    seconds = epoch.seconds
    return {
        "fetch": human_seconds(seconds.fetch),
        "align": human_seconds(seconds.align),
        "spark": human_seconds(seconds.spark),
        "collect": human_seconds(seconds.collect_alone),
        "commit": human_seconds(epoch.commit_s) if epoch.commit_s else "",
        "files": human_count(epoch.counts.files),
        "rows": human_count(epoch.counts.rows, 11),
        "at": f"{epoch.committed_at:%H:%M:%S} UTC",
    }


def _in_flight(status: RunStatus) -> _Cells:
    """The seconds that the oldest epoch of each phase has been in it."""
    longest: dict[str, float] = {}
    for epoch in status.in_flight:
        longest[epoch.phase] = max(epoch.seconds, longest.get(epoch.phase, 0.0))
    return {phase: Text(human_seconds(seconds), style="cyan") for phase, seconds in longest.items()}


def _column(title: str, width: int, rank: int, name: str) -> Column[_Cells]:
    return Column(title, width, rank, lambda cells: cells.get(name, ""))


_COLUMNS: Sequence[Column[_Cells]] = (
    _column("fetch", 7, 1, "fetch"),
    _column("align", 7, 2, "align"),
    _column("Spark", 7, 0, "spark"),
    _column("collect", 7, 4, "collect"),
    _column("commit", 7, 3, "commit"),
    _column("files", 7, 6, "files"),
    _column("rows", 11, 5, "rows"),
    _column("committed at", 12, 7, "at"),
)
