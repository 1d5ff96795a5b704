"""The display of a run in fixed columns, for `run` and `status --watch` on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from slackwater.cli.display.companion_block import after_commit_lines, publication_lines
from slackwater.cli.display.epoch_block import epoch_block
from slackwater.cli.display.notes import notes
from slackwater.cli.display.source_block import source_block, source_notes
from slackwater.cli.display.view_block import view_block, view_notes
from slackwater.cli.terminal.fixed_table import name_width
from slackwater.status.quantities import human_duration, human_seconds
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus, StartupStep

_PHASE_STYLES = {"running": "bold green", **dict.fromkeys(("failed", "recovering", "gone", "silent"), "bold red")}
_STARTED_PHASES = ("starting", "running", "paused")
# The two lines of the head, the three of the epochs, the heads of the two tables, a blank line before each of these
# three, and the line of the cursor.
_FIXED_LINES = 2 + 3 + 2 + 3 + 1
_MIN_ROWS = 2
_MAX_NOTES = 4
_GAP = 3


@dataclass(frozen=True)
class RunDisplay:
    """Renders a status; the same status and size give the same picture.

    Sources and views that do not fit are summed up in a last line.  The selection does not change with the numbers.

    Args:
        root: of the run, as an argument of the commands that notes name.
        note: text next to the phase, for example the process of the run.
        warning: a problem with the status, for example its age; shown instead of the message.
    """

    name: str
    root: str
    note: str = ""
    warning: str = ""

    def render(self, status: RunStatus, width: int, height: int) -> RenderableType:
        """The picture.

        Args:
            width: of the terminal, in characters.
            height: of the terminal, in lines.
        """
        names = name_width([*status.sources, *status.views, *status.backfills], width)
        below = [*source_notes(status.sources, _MAX_NOTES), *view_notes(status.views, self.root, _MAX_NOTES)]
        below += notes(publication_lines(status.publications), _MAX_NOTES, "publication")
        below += notes(after_commit_lines(status.after_commit), _MAX_NOTES, "source")
        sources, views = _shares(
            len(status.sources), len({**status.views, **status.backfills}), height - _FIXED_LINES - len(below)
        )
        blocks: list[RenderableType] = [self._head(status, width), self._below_head(status, width)]
        if status.sources:
            blocks += [Text(), source_block(status.sources, sources, names=names, width=width)]
            blocks += [Text(), epoch_block(status, names=names, width=width)]
        if status.views or status.backfills:
            blocks += [Text(), view_block(status, views, names=names, width=width)]
        # Last: they appear and disappear.
        return Group(*blocks, *below)

    def _head(self, status: RunStatus, width: int) -> Text:
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(visible(self.name), style="bold")
        head.append(f"  {visible(status.phase):<10}", style=_PHASE_STYLES.get(status.phase, "bold cyan"))
        parts = [human_duration(status.seconds)] if status.seconds else []
        if self.note:
            parts.append(visible(self.note))
        if status.epoch:
            parts.append(f"epoch {status.epoch}")
        if status.epochs:
            parts.append(_counted(status.epochs, "epoch"))
        if status.fetchers:
            parts.append(_counted(status.fetchers, "fetch actor"))
        if wrong := sum(status.rebuilt_indexes.values()):
            parts.append(f"{wrong:,} wrong {'index' if wrong == 1 else 'indexes'} rebuilt: verify the views")
        if status.recoveries:
            parts.append(f"recovered {_counted(status.recoveries, 'time')}")
        for part in parts:
            if head.cell_len + _GAP + cell_len(part) <= width:
                head.append(" " * _GAP + part)
        return head

    def _below_head(self, status: RunStatus, width: int) -> Text:
        """One line, also without text, so that the blocks below it do not move."""
        line = Text(no_wrap=True, overflow="ellipsis")
        if self.warning:
            return line.append(visible(self.warning), style="bold red")
        if start := _start(status, width):
            return start
        if message := " ".join(status.message.split()) or _idle(status) or status.scaling:
            line.append(visible(message), style="red" if status.phase == "recovering" else "")
        return line


def _start(status: RunStatus, width: int) -> Text | None:
    """The steps of a start with their seconds; on a narrow terminal without the completed steps."""
    if status.phase not in _STARTED_PHASES or all(step.done for step in status.startup):
        return None
    line = _steps(status.startup)
    return line if line.cell_len <= width else _steps(step for step in status.startup if not step.done)


def _steps(steps: Iterable[StartupStep]) -> Text:
    texts = [
        Text(f"{visible(step.name)} {human_seconds(step.seconds)}", style="green" if step.done else "bold cyan")
        for step in steps
    ]
    line = Text(" " * _GAP).join(texts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _idle(status: RunStatus) -> str:
    """The event that an idle run waits for, in words; empty for a busy run."""
    if status.phase in _STARTED_PHASES and status.spark == "starting":
        return "Spark starts"
    unfinished = status.in_flight or any(each.waiting or each.reading for each in status.sources.values())
    if status.phase != "running" or not status.caught_up or unfinished:
        return ""
    return "all listed files are committed; waiting for new files"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _shares(sources: int, views: int, room: int) -> tuple[int, int]:
    """The lines for sources and for views, from their numbers and the lines of the terminal."""
    room = max(room, 2 * _MIN_ROWS)
    if sources + views <= room:
        return sources, views
    half = room // 2
    if sources <= half:
        return sources, room - sources
    return (room - views, views) if views <= half else (room - half, half)
