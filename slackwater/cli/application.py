"""The application `slackwater`, and the decorator that adds a command to it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from slackwater.cli.command_groups import GroupedCommands
from slackwater.cli.terminal.edge import reports_errors

Debug = Annotated[bool, typer.Option("--debug", help="show the traceback of an error")]
Function = TypeVar("Function", bound=Callable[..., None])

app = typer.Typer(
    name="slackwater",
    cls=GroupedCommands,
    help="Keeps SQL views up to date over the files that arrive in an object store.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(name: str | None = None, *, help: str | None = None) -> Callable[[Function], Function]:
    """Adds a function as a command, with the option `--debug`; an error becomes one line and an exit code.

    Args:
        name: the name of the command; None for the name of the function.
        help: the help text; None for the docstring.
    """

    def add(function: Function) -> Function:
        @reports_errors
        @functools.wraps(function)
        def called(*, debug: bool, **arguments: Any) -> None:
            function(**arguments)

        own = inspect.signature(function, eval_str=True)
        debug = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
        called.__signature__ = own.replace(parameters=[*own.parameters.values(), debug])  # type: ignore[attr-defined]
        app.command(name, help=help)(called)
        return function

    return add
