"""The expectations of views: `slackwater held`, and a part of `slackwater status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.display.view_block import utc
from slackwater.cli.terminal.output import Output
from slackwater.status.text import counted, shell_root
from state.epoch import epoch_time
from state.location import Location

if TYPE_CHECKING:
    from slackwater.reading.store import Store

_COLUMNS = ("view", "expectation", "rows", "accepted", "came", "is_held", "held_since", "error", "found")
_SHORT = ("view", "expectation", "rows", "is_held")


class RootExpectations:
    """The expectations of the views of a root, and the last epoch that fulfilled them."""

    def __init__(self, facts: RootFacts) -> None:
        self._rows, self._root = facts.store.views.expectations().to_pylist(), facts.root
        self._published = facts.store.published_epoch()

    def document(self) -> Mapping[str, Any]:
        return {"expectations": self._rows, "published": self._published or None}

    def show(self, output: Output) -> None:
        if not self._rows:
            return
        output.rows(self._rows, _COLUMNS, title="expectations: rows that violate", short=_SHORT)
        for line in (*held_lines(self._rows, self._published, self._root), *quarantine_lines(self._rows, self._root)):
            output.text(line)


def print_held(store: Store, output: Output) -> None:
    """Prints the views that close the gate."""
    store = store.frozen()
    views, published = store.views.held(), store.published_epoch()
    if output.json:
        output.document({"published": published or None, "epoch": store.latest_epoch() or None, "views": views})
        return
    if not views:
        output.text("no view is held back")
        return
    root = shell_root(Location(store.root))
    output.text(gate_line(published))
    for view in views:
        output.text(f"view {view['view']} is held back since epoch {view['since']} ({utc(epoch_time(view['since']))})")
        rows = [
            {"expectation": name, "rows": number, "error": view["errors"].get(name), "found": view["found"].get(name)}
            for name, number in view["expectations"].items()
        ]
        output.rows(rows, ("expectation", "rows", "error", "found"))
        _print_files(view, root, output)
    output.text(f"the rows are right as they are: slackwater release {root}")


def held_lines(rows: Sequence[Mapping[str, Any]], published: int, root: str) -> list[str]:
    """Lines on the views that are held back, with the next step.

    Args:
        rows: of `Views.expectations`.
        published: the last epoch that the gate let pass; 0 for none.
        root: the root, as an argument of a command.
    """
    held = dict.fromkeys(row["view"] for row in rows if row["is_held"])
    if not held:
        return []
    views = f"{'view' if len(held) == 1 else 'views'} {', '.join(held)}"
    return [f"{views} held back: {gate_line(published)}; `slackwater held {root}` shows the files"]


def quarantine_lines(rows: Sequence[Mapping[str, Any]], root: str) -> list[str]:
    """Lines on the views of rows that violate expectations, and were left out of another view.

    Args:
        rows: of `Views.expectations`.
        root: the root, as an argument of a command.
    """
    views = dict.fromkeys(row["view"] for row in rows if row["on_violation"] == "quarantine" and row["rows"])
    return [f"rows left out by expectations: slackwater sql {root} 'SELECT * FROM {view}'" for view in views]


def gate_line(published: int) -> str:
    """The epoch that publications and SQL clients see while the gate is closed."""
    if not published:
        return "no epoch is published yet"
    return f"published is epoch {published}, committed at {utc(epoch_time(published))}"


def _print_files(view: Mapping[str, Any], root: str, output: Output) -> None:
    files: list[str] = view["files"]
    if not files:
        output.text("its rows do not name their files, and no file was finished in the epochs that brought them")
        return
    brought = "brought these rows" if view["rows_name_files"] else "finished in the epochs that brought these rows"
    output.rows([{"file": each} for each in files], ("file",), title=f"{counted(len(files), 'file')} {brought}")
    if view["expectations"].keys() - view["found"].keys():  # else no row violates, but the view as a whole
        output.text(f"take the rows of one out: slackwater forget {root} {files[0]}")
