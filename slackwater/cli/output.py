"""Arrow tables on stdout: laid out on a terminal, tab-separated in a pipe, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from actors.visible_text import visible, visible_json

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST_EXACT = 2**53  # beyond it a program that reads JSON numbers as doubles is wrong in silence


class Output:
    """How the tables and texts of one command are printed.

    Args:
        json: print one JSON document; the command then prints once.
    """

    def __init__(self, json: bool = False) -> None:
        self.json = json
        self.console = Console(soft_wrap=False, highlight=False)

    def table(self, table: pa.Table, title: str | None = None) -> None:
        """Prints every row of an Arrow table."""
        self.rows(table.to_pylist(), table.column_names, title)

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> None:
        """Prints rows, as the columns order them."""
        if self.json:
            self.document([{column: row[column] for column in columns} for row in rows])
        elif self.console.is_terminal:
            self._laid_out(rows, columns, title)
        else:
            if title:
                sys.stdout.write(f"# {title}\n")
            lines = [columns, *([_plain(row[column]) for column in columns] for row in rows)]
            sys.stdout.writelines("\t".join(line) + "\n" for line in lines)

    def document(self, value: Any) -> None:
        """Prints one JSON document.  Epochs are text, since they do not fit the numbers of every reader."""
        document = json.dumps(_jsonable(value), ensure_ascii=False, indent=2, allow_nan=False)
        sys.stdout.write(visible_json(document) + "\n")

    def line(self, value: Any) -> None:
        """Prints one JSON document as a line, at once."""
        document = json.dumps(_jsonable(value), ensure_ascii=False, allow_nan=False)
        sys.stdout.write(visible_json(document) + "\n")
        sys.stdout.flush()

    def lines(self, lines: Iterable[Sequence[Any]]) -> None:
        """Prints tab-separated lines, at once."""
        sys.stdout.writelines("\t".join(map(_plain, line)) + "\n" for line in lines)
        sys.stdout.flush()

    def text(self, text: str) -> None:
        """Prints a line for people, or some."""
        if not self.json:
            self.console.print(Text(visible(text, keep="\n")), soft_wrap=True)

    def _laid_out(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None) -> None:
        table = Table(title=title, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
        for column in columns:
            numeric = any(isinstance(row[column], (int, float, Decimal)) for row in rows)
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
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
    """One field of a line: no tab, line end or other control character in it."""
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return visible_json(json.dumps(_jsonable(value), ensure_ascii=False, allow_nan=False))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return visible(str(value).replace("\\", "\\\\"))


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _epoch_text(v) if _is_epoch(str(k)) else _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _LARGEST_EXACT else str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    return value


def _is_epoch(name: str) -> bool:
    return name == "epoch" or name.endswith("_epoch")


def _epoch_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _jsonable(value)
