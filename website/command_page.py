"""The reference of the command `slackwater`, made from its own help, so that the two cannot differ."""

from __future__ import annotations

from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from slackwater.cli.app import app

MARKER = "<!-- every command, from its own help -->"
_NAME = "slackwater"
_WIDTH = 100


def command_names() -> list[str]:
    """The commands, in the order of the help."""
    group: Any = get_command(app)
    return list(group.commands)


def command_reference() -> str:
    """A section for each command, with its help."""
    return "\n\n".join(f"## {name}\n\n```text\n{_help(name)}\n```" for name in command_names())


def _help(name: str) -> str:
    ended = CliRunner().invoke(app, [name, "--help"], prog_name=_NAME, terminal_width=_WIDTH, color=False)
    if ended.exit_code != 0:
        raise RuntimeError(f"{_NAME} {name} --help ended with {ended.exit_code}: {ended.output}")
    return ended.output.strip()
