"""Tables that do not move while their numbers change: the width of every column is fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from actors.telemetry.text import visible

_GAP = 2
_SHORTEST_NAME, _LONGEST_NAME = 10, 32

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column.

    Args:
        title: at most as wide as the column.
        width: in characters.
        rank: where there is no room for all, those of the lowest rank are shown.
        cell: what it shows of a row.
        justify: to which side.
    """

    title: str
    width: int
    rank: int
    cell: Callable[[Row], Text | str]
    justify: Literal["left", "right"] = "right"


def name_width(names: Sequence[str], width: int) -> int:
    """How wide the column of names is on a terminal of a width, where these are the names."""
    longest = max((cell_len(visible(name)) for name in names), default=0)
    return max(_SHORTEST_NAME, min(longest, _LONGEST_NAME, width // 4))


def fitting(columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """The columns that find room, as they are ordered: by rank, until one does not fit."""
    chosen: list[Column[Row]] = []
    for column in sorted(columns, key=lambda each: each.rank):
        width -= _GAP + column.width
        if width < 0:
            break
        chosen.append(column)
    return [column for column in columns if column in chosen]


def fixed_table(
    title: str, rows: Sequence[tuple[str | Text, Row]], columns: Sequence[Column[Row]], *, names: int, width: int
) -> Table:
    """A table of named rows.

    Args:
        title: of the column of names.
        rows: name and row; a name may be of any origin, a `Text` is shown as it is.
        columns: of which there are as many as find room.
        names: see `name_width`.
        width: of the terminal.
    """
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    table.add_column(title, width=names, no_wrap=True, overflow="ellipsis")
    shown = fitting(columns, width - names)
    for column in shown:
        table.add_column(column.title, width=column.width, justify=column.justify, no_wrap=True, overflow="ellipsis")
    for name, row in rows:
        table.add_row(Text(visible(name)) if isinstance(name, str) else name, *(column.cell(row) for column in shown))
    return table
