"""Values of this package as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import pyarrow as pa

from state.visible import visible


def as_html(title: str, rows: pa.Table, note: str = "") -> str:
    """A title, some rows as a table, and a note below it.  Every text is data, and is escaped.

    Args:
        title: the text above the table.
        rows: the rows; nulls are visible.
        note: the text below it; left out if it is empty.
    """
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    head = _row("th", rows.column_names)
    body = "".join(_row("td", row) for row in values)
    below = f"<p>{_text(note)}</p>" if note else ""
    return f"<b>{_text(title)}</b><table><thead>{head}</thead><tbody>{body}</tbody></table>{below}"


def _row(kind: str, values: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{kind}>{_text(each)}</{kind}>' for each in values)}</tr>"


def _text(value: Any) -> str:
    return "<i>null</i>" if value is None else escape(visible(str(value)))
