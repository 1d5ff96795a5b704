"""The views of a root: `slackwater views`, `slackwater explain ROOT`, and a part of `slackwater status`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from slackwater.cli.terminal.output import Output
from slackwater.status.text import shell_root
from state.location import Location

if TYPE_CHECKING:
    from slackwater.reading.store import Store

_SHORT = ("name", "class", "state", "rows", "reads", "path")


def print_views(store: Store, output: Output) -> None:
    """Prints the views in the catalog of a root, without Spark."""
    store = store.frozen()
    rows = view_rows(store, store.views.backfills()["name"].to_pylist())
    columns = list(rows[0]) if rows else store.views.table().column_names
    shown = rows if output.json else [{**row, "reads": ", ".join(row["reads"])} for row in rows]
    output.rows(shown, columns, short=_SHORT)
    if rows:
        output.text(f"`slackwater show {shell_root(Location(store.root))} {rows[0]['name']}` prints rows")


def view_rows(store: Store, backfills: Collection[str]) -> list[Mapping[str, Any]]:
    """The rows of `Views.table`, each with its `state`.

    A view is `maintained`, `failed`, `rebuilding` (a backfill replaces the shown rows at its end), or `stopped`
    (no longer declared).

    Args:
        backfills: the names in `Views.backfills`.
    """
    return [{"state": _state(row, row["name"] in backfills), **row} for row in store.views.table().to_pylist()]


def _state(view: Mapping[str, Any], is_late: bool) -> str:
    if view["error"] is not None:
        return "failed"
    if not view["stopped"]:
        return "maintained"
    return "rebuilding" if is_late else "stopped"
