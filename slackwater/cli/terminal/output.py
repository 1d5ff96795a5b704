"""Tables and texts on stdout: aligned on a terminal, tab-separated in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.measure import Measurement
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from slackwater.cli.terminal.safe_console import SafeConsole, progress_bar
from slackwater.status.text import jsonable
from state.visible import visible, visible_json

if TYPE_CHECKING:
    import pyarrow as pa


_ANY_WIDTH = 1_000_000


class _Null:
    r"""A null of a view: `\N` in a pipe, as `COPY` of PostgreSQL writes it; a backslash of a text is doubled."""

    def __str__(self) -> str:
        return "\\N"


NULL = _Null()
"""The value of a row that is printed as a null; None is printed as nothing."""


class Output:
    """Prints the tables and texts of one command.

    Args:
        json: print one JSON document; the command then prints once.
        wide: print all columns on a terminal, too.
    """

    def __init__(self, json: bool = False, wide: bool = False) -> None:
        self.json, self.wide = json, wide
        self.console = SafeConsole()

    def table(self, table: pa.Table, title: str | None = None, short: Sequence[str] = ()) -> None:
        """Prints every row of an Arrow table; `short` as in `rows`."""
        self.rows(table.to_pylist(), table.column_names, title, short)

    def values(self, table: pa.Table, title: str | None = None) -> None:
        r"""Prints every row of an Arrow table, with its nulls: `null` on a terminal, `\N` in a pipe."""
        rows = table.to_pylist()
        if not self.json:
            rows = [{name: NULL if value is None else value for name, value in row.items()} for row in rows]
        self.rows(rows, table.column_names, title)

    def rows(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Sequence[str],
        title: str | None = None,
        short: Sequence[str] = (),
    ) -> None:
        """Prints rows, with the columns in this order.

        Args:
            rows: column → value.
            short: the columns on a terminal that is not `wide`; of these, one without any value is left out.
        """
        if self.json:
            self.document([{column: row[column] for column in columns} for row in rows])
        elif self.console.is_terminal:
            if short and not self.wide:
                columns = [name for name in short if not rows or any(row[name] is not None for row in rows)]
            self._laid_out(rows, columns, title)
        else:
            if title:
                sys.stdout.write(f"# {visible(title)}\n")
            self.lines([columns, *([row[column] for column in columns] for row in rows)])

    def document(self, value: Any) -> None:
        """Prints one JSON document.  Epochs are text: they do not fit the numbers of every reader."""
        document = json.dumps(jsonable(value), ensure_ascii=False, indent=2, allow_nan=False)
        sys.stdout.write(visible_json(document) + "\n")

    def line(self, value: Any) -> None:
        """Prints one JSON document as a line, and flushes."""
        document = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)
        sys.stdout.write(visible_json(document) + "\n")
        sys.stdout.flush()

    def lines(self, lines: Iterable[Sequence[Any]]) -> None:
        """Prints tab-separated lines, and flushes."""
        sys.stdout.writelines("\t".join(map(_plain, line)) + "\n" for line in lines)
        sys.stdout.flush()

    def progress(self) -> Progress:
        """A bar with its description, count and seconds, removed at its end."""
        return progress_bar(self.console)

    def text(self, line: str) -> None:
        """Prints one line for people; nothing with `--json`.  A newline in a text from data is printed as an escape."""
        if not self.json:
            self.console.print(Text(visible(line)), soft_wrap=True)

    def paragraph(self, lines: str) -> None:
        """Prints a text of several lines for people, whose texts from data have no newlines; nothing with `--json`."""
        for line in lines.split("\n"):
            self.text(line)

    def _laid_out(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None) -> None:
        if title is not None:
            self.console.print(Text(visible(title), style="italic"), soft_wrap=True)
        table = Table(header_style="bold", show_edge=False, pad_edge=False)
        for column in columns:
            numeric = any(isinstance(row[column], (int, float, Decimal)) for row in rows)
            table.add_column(Text(_plain(column)), justify="right" if numeric else "left", no_wrap=True)
        for row in rows:
            table.add_row(*(_human(row[column]) for column in columns))
        # A cell is one piece, so that it can be copied: a line that is too long for the terminal is wrapped by it.
        table.width = Measurement.get(self.console, self.console.options.update(max_width=_ANY_WIDTH), table).maximum
        self.console.print(table, crop=False)


def _human(value: Any) -> Text:
    if isinstance(value, _Null):
        return Text("null", style="dim italic")
    if isinstance(value, float):
        return Text(f"{value:,.4g}" if abs(value) < 10 else f"{value:,.2f}")
    if isinstance(value, datetime):
        at = value.isoformat(sep=" ", timespec="milliseconds")
        return Text(f"{at.removesuffix('+00:00')} UTC" if at.endswith("+00:00") else at)
    return Text(_plain(value))


def _plain(value: Any) -> str:
    """One field of a line, without tabs, line ends and other control characters."""
    if value is None:
        return ""
    if isinstance(value, _Null):
        return str(value)
    if isinstance(value, (dict, list)):
        return visible_json(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return visible(str(value).replace("\\", "\\\\"))
