"""Tables and texts on stdout: aligned on a terminal, tab-separated in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from slackwater.status.text import jsonable
from slackwater.terminal.safe_console import SafeConsole
from state.visible import visible, visible_json

if TYPE_CHECKING:
    import pyarrow as pa


class Output:
    """Prints the tables and texts of one command.

    Args:
        json: print one JSON document; the command then prints once.
    """

    def __init__(self, json: bool = False) -> None:
        self.json = json
        self.console = SafeConsole()

    def table(self, table: pa.Table, title: str | None = None) -> None:
        """Prints every row of an Arrow table."""
        self.rows(table.to_pylist(), table.column_names, title)

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> None:
        """Prints rows, with the columns in this order."""
        if self.json:
            self.document([{column: row[column] for column in columns} for row in rows])
        elif self.console.is_terminal:
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

    def text(self, text: str) -> None:
        """Prints one line or more for people; nothing with `--json`."""
        if not self.json:
            self.console.print(Text(visible(text, keep="\n")), soft_wrap=True)

    def _laid_out(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None) -> None:
        shown = None if title is None else visible(title)
        table = Table(title=shown, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
        for column in columns:
            numeric = any(isinstance(row[column], (int, float, Decimal)) for row in rows)
            table.add_column(Text(_plain(column)), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_human(row[column])) for column in columns))
        self.console.print(table)


def _human(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10 else f"{value:,.2f}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return _plain(value)


def _plain(value: Any) -> str:
    """One field of a line, without tabs, line ends and other control characters."""
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return visible_json(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return visible(str(value).replace("\\", "\\\\"))
