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

from slackwater.cli.application import command
from slackwater.cli.command_groups import operation_commands
from slackwater.cli.options import Json, Root, StorageOptions, Takeover, Timeout, storage_options
from slackwater.cli.terminal.output import Output
from slackwater.commands.ask import TIMEOUT_S, ask
from state.clock import SystemClock
from state.location import Location
from state.ownership.command import Answer, ArgumentLine, Command, CommandLine, argument_lines

_SHARED: Mapping[str, tuple[Any, Any]] = {
    "timeout": (Timeout, 60),
    "option": (StorageOptions, None),
    "json": (Json, False),
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


def _add(name: str, operation: type[Command], line: CommandLine) -> None:
    """Adds the CLI command of an operation: it sends the operation, and prints the answer."""

    def send(
        root: str,
        timeout: float,
        option: list[str] | None,
        json: bool,
        takeover: bool = False,
        **arguments: Any,
    ) -> None:
        asked = operation.of_line(**arguments)
        print_answer(carry_out(root, storage_options(option), asked, timeout_s=timeout, takeover=takeover), json)

    kind = inspect.Parameter.KEYWORD_ONLY
    shared = {**_SHARED, **({"takeover": (Takeover, False)} if line.takeover else {})}
    parameters = [inspect.Parameter("root", kind, annotation=Root)]
    parameters += [_parameter(name, *described) for name, described in argument_lines(operation).items()]
    parameters += [
        inspect.Parameter(name, kind, default=default, annotation=of) for name, (of, default) in shared.items()
    ]
    send.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command(name, help=line.help)(send)


for _name, (_operation, _line) in operation_commands().items():
    _add(_name, _operation, _line)
