"""The help of `slackwater`: commands in groups, each with its first sentence as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

from actors.protocol import barrier
from slackwater.commands import operations
from state.ownership.command import Command, CommandLine

_GROUPS = {
    "Run": ("init", "run", "demo", "doctor", "explain"),
    "Look": ("status", "ui", "views", "epochs", "files", "why", "trace", "quarantine", "held", "alerts"),
    "Read": ("show", "sql", "serve", "watch", "publish", "verify"),
    "Steer a run": (...,),
    "Correct": (..., "replace-table"),
    "Keep": ("tag", ..., "branch", "branches", "diff", "merge", "drop-branch"),
}
"""Title → commands; `...` is the place of the commands that follow from their classes."""
_OTHERS = "Others"


def operation_commands() -> Mapping[str, tuple[type[Command], CommandLine]]:
    """Name → the operation with this command, by the modules that define operations."""
    kinds = Command.kinds.values()
    known = [each for module in (barrier, operations) for each in kinds if each.__module__ == module.__name__]
    return {each.kind.replace("_", "-"): (each, each.line) for each in known if each.line is not None}


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
    of_operations = {
        title: tuple(name for name, (_, line) in operation_commands().items() if line.group == title)
        for title in _GROUPS
    }
    return {
        title: tuple(each for name in names for each in (of_operations[title] if name is ... else (name,)))
        for title, names in _GROUPS.items()
    }


def _sentence(command: Any) -> str:
    """The first sentence of the help of a command; `get_short_help_str` cuts it off."""
    text: str = command.get_short_help_str(limit=1_000)
    return text
