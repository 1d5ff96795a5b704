"""The help of `slackwater`: commands in groups, each with its first sentence as a whole."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from slackwater.cli.commands.asking import groups as operations_by_group

_GROUPS = {
    "Run": ("init", "run", "demo", "doctor", "explain"),
    "Look": ("status", "ui", "views", "epochs", "files", "why", "trace", "quarantine", "held", "alerts"),
    "Read": ("show", "sql", "serve", "watch", "publish", "verify"),
    "Steer a run": (...,),
    "Correct": (..., "replace-table"),
    "Keep": ("tag", ..., "branch", "branches", "diff", "merge", "drop-branch"),
}
"""Title → commands; `...` is the place of the commands that `slackwater.cli.commands.asking` makes."""
_OTHERS = "Others"


class GroupedCommands(TyperGroup):
    """Commands in groups; one without a group is among the others.

    Typer brings the classes of click or its own copies, by its version: their types have no common name.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: each for name, each in commands.items() if each is not None and not each.hidden}
        known = _with_operations()
        grouped = {name for names in known.values() for name in names}
        groups = {**known, _OTHERS: tuple(name for name in shown if name not in grouped)}
        for title, names in groups.items():
            rows = [(name, _sentence(shown[name])) for name in names if name in shown]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=20)


def _with_operations() -> dict[str, tuple[str, ...]]:
    operations = operations_by_group()
    return {
        title: tuple(each for name in names for each in (operations.get(title, ()) if name is ... else (name,)))
        for title, names in _GROUPS.items()
    }


def _sentence(command: Any) -> str:
    """The first sentence of the help of a command; `get_short_help_str` cuts it off."""
    text: str = command.get_short_help_str(limit=1_000)
    return text
