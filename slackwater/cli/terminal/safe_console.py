"""The console of all commands: all output on it is plain text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from state.visible import visible


class SafeConsole(Console):
    """A console without markup, emoji codes and highlighting, on which control characters are escapes.

    Headers, titles and cells contain names of columns, files and views, which are data.

    Args:
        options: other options of rich's `Console`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """Raises the error again: the edge of the CLI ends the process, with code 0."""
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does; the segments that control the terminal are rich's own."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible(segment.text, keep="\n")
            yield segment if text == segment.text else Segment(text, segment.style)


def progress_bar(console: Console) -> Progress:
    """A bar with its description, count and seconds, removed at its end."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def print_note(text: str) -> None:
    """Prints one line on stderr."""
    sys.stderr.write(visible(text) + "\n")
    sys.stderr.flush()
