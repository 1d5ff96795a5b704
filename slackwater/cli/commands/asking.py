"""Commands to the owner of a root, from the command line; a command with a `line` has its CLI command here."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from random import SystemRandom  # noqa: TID251 - chance begins here
from typing import Annotated, Any

import typer

from actors.protocol import barrier
from slackwater.cli.options import Debug, Json, Root, StorageOptions, Takeover, Timeout, storage_options
from slackwater.cli.terminal.edge import reports_errors
from slackwater.cli.terminal.output import Output
from slackwater.commands import operations
from slackwater.commands.ask import TIMEOUT_S, ask
from state.clock import SystemClock
from state.location import Location
from state.ownership.command import Answer, ArgumentLine, Command, CommandLine, argument_lines

asking = typer.Typer()

_SHARED: Mapping[str, tuple[Any, Any]] = {
    "timeout": (Timeout, 60),
    "option": (StorageOptions, None),
    "json": (Json, False),
    "debug": (Debug, False),
}


def named(file: str | None) -> str | None:
    """The whole URL of a file of the present directory, since the run may work elsewhere; any other name as it is."""
    if file is None or "://" in file or not Path(file).is_file():
        return file
    return Location(os.path.abspath(file)).url


def print_answer(answer: Answer, json: bool) -> None:
    """Prints the answer to a command."""
    output = Output(json)
    if json:
        output.document({"text": answer.text, **answer.values})
    else:
        output.paragraph(answer.text)


def carry_out(
    root: str,
    options: Mapping[str, str],
    command: Command,
    *,
    timeout_s: float = TIMEOUT_S,
    takeover: bool = False,
) -> Answer:
    """Has a command carried out.  Arguments and errors as `slackwater.commands.ask.ask`."""
    return ask(
        Location(root, options),
        command,
        clock=SystemClock(),
        random=SystemRandom(),
        timeout_s=timeout_s,
        takeover=takeover,
    )


def groups() -> Mapping[str, tuple[str, ...]]:
    """Title of a group in the help → its commands that follow from their classes."""
    found: dict[str, tuple[str, ...]] = {}
    for command, line in _commands():
        found[line.group] = (*found.get(line.group, ()), _name(command))
    return found


def _commands() -> list[tuple[type[Command], CommandLine]]:
    """The commands with a line, by the modules that define commands."""
    kinds = Command.kinds.values()
    known = [command for module in (barrier, operations) for command in kinds if command.__module__ == module.__name__]
    return [(command, command.line) for command in known if command.line is not None]


def _name(command: type[Command]) -> str:
    return command.kind.replace("_", "-")


def _parameter(name: str, line: ArgumentLine, kind: Any, default: Any) -> inspect.Parameter:
    """The parameter of the function that typer calls for an argument of a command."""
    declared: dict[str, Any] = {"help": line.help, "metavar": line.metavar or None}
    if line.names_files:
        declared["callback"] = named
    shown = typer.Option(line.option, **declared) if line.option else typer.Argument(**declared)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, shown],
    )


def _add(command: type[Command], line: CommandLine) -> None:
    """Adds the CLI command of a class: it sends the command, and prints the answer."""

    def send(
        root: str,
        timeout: float,
        option: list[str] | None,
        json: bool,
        debug: bool,
        takeover: bool = False,
        **arguments: Any,
    ) -> None:
        asked = command.of_line(**arguments)
        print_answer(carry_out(root, storage_options(option), asked, timeout_s=timeout, takeover=takeover), json)

    kind = inspect.Parameter.KEYWORD_ONLY
    shared = {**_SHARED, **({"takeover": (Takeover, False)} if line.takeover else {})}
    parameters = [inspect.Parameter("root", kind, annotation=Root)]
    parameters += [_parameter(name, *described) for name, described in argument_lines(command).items()]
    parameters += [
        inspect.Parameter(name, kind, default=default, annotation=of) for name, (of, default) in shared.items()
    ]
    send.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    send.__annotations__ = {each.name: each.annotation for each in parameters}
    asking.command(_name(command), help=line.help)(reports_errors(send))


for _command, _line in _commands():
    _add(_command, _line)
