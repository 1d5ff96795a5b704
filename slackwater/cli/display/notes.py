"""The lines about faults of a run: `slackwater status` prints them, and the display of a run ends with them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from slackwater.status.text import counted
from state.visible import visible

BAD = "bold red"


def note(text: str, style: str = BAD) -> Text:
    """One line of the display, cut at the width of the terminal."""
    return Text(visible(text), style=style, no_wrap=True, overflow="ellipsis")


def notes(lines: Sequence[str], most: int, kind: str) -> list[Text]:
    """The lines of a kind of fault on the display.

    Args:
        most: the largest number of lines; if there are more, the last line gives the number of faults left out.
        kind: the failed thing, for the line with the count.
    """
    if len(lines) <= most:
        return [*map(note, lines)]
    shown = lines[: most - 1]
    return [*map(note, shown), *rest(len(lines) - len(shown), kind)]


def rest(number: int, kind: str) -> list[Text]:
    """The line with the number of faults that are not shown; no line for 0."""
    return [note(f"{counted(number, f'other {kind}')} failed; see `slackwater status`")] if number else []
