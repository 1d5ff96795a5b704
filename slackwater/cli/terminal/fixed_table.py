"""Tables with fixed column widths: they do not move when their numbers change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from state.visible import visible

_GAP = 2
_SHORTEST_NAME, _LONGEST_NAME = 10, 32

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column.

    Args:
        title: at most as wide as the column.
        width: in characters.
        rank: on a narrow terminal, columns with lower ranks are shown first.
        cell: the content for a row.
    """

    title: str
    width: int
    rank: int
    cell: Callable[[Row], Text | str]
    justify: Literal["left", "right"] = "right"


def name_width(names: Sequence[str], width: int) -> int:
    """The width of the column for these names, on a terminal of a width."""
    longest = max((cell_len(visible(name)) for name in names), default=0)
    return max(_SHORTEST_NAME, min(longest, _LONGEST_NAME, width // 4))


def fitting(columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """The columns that fit into a width, chosen by rank, in their order."""
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
        title: title of the column of names.
        rows: name and row; control characters in a `str` are made visible, a `Text` is printed unchanged.
        columns: the columns; columns that do not fit are left out.
        names: width of the column of names, see `name_width`.
    """
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    table.add_column(title, width=names, no_wrap=True, overflow="ellipsis")
    shown = fitting(columns, width - names)
    for column in shown:
        table.add_column(column.title, width=column.width, justify=column.justify, no_wrap=True, overflow="ellipsis")
    for name, row in rows:
        table.add_row(Text(visible(name)) if isinstance(name, str) else name, *(column.cell(row) for column in shown))
    return table
