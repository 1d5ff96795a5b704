"""`slackwater watch`: changes as they come, a line for each row or a JSON document for each change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from slackwater.cli.terminal.output import Output

if TYPE_CHECKING:
    from slackwater.reading.changes.view_changes import ViewChange

_HEAD = ("epoch", "change")


def print_changes(changes: Iterable[ViewChange], output: Output) -> None:
    """Prints each change when it comes; ends when it is interrupted, which is no error.

    Of a row that was removed there are only the columns that it is known by.
    """
    columns: list[str] = []
    try:
        for change in changes:
            if output.json:
                removed = change.removed.to_pylist()
                output.line({"epoch": change.epoch, "removed": removed, "rows": change.rows.to_pylist()})
                continue
            if change.rows.column_names != columns:
                columns = change.rows.column_names
                output.lines([[*_HEAD, *columns]])
            for kind, table in (("removed", change.removed), ("row", change.rows)):
                rows = table.to_pylist()
                output.lines([change.epoch, kind, *(row.get(name) for name in columns)] for row in rows)
    except KeyboardInterrupt:
        return
