"""The commands that correct files: `reingest` and `forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.edge import reports_errors
from slackwater.cli.options import Debug, Json, Root, Source, StorageOptions, Timeout, storage_options
from slackwater.cli.output import Output

if TYPE_CHECKING:
    from state.command import Command

correcting = typer.Typer()
Files = Annotated[
    str, typer.Argument(metavar="PATH|GLOB", help="which files: a whole URL or path, or a glob below a source")
]


@correcting.command()
@reports_errors
def reingest(
    root: Root,
    file: Files,
    source: Source = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read files once more: in one epoch their rows of now replace those that the views hold.

    Their source must be materialized, and its pipeline must run.
    """
    from state.command import ReingestCommand

    ask_owner(root, option, ReingestCommand(file=file, source=source), timeout, json)


@correcting.command()
@reports_errors
def forget(
    root: Root,
    file: Files,
    source: Source = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Take files out of everything: in one epoch their rows leave all views, and do not come back by themselves.

    Their source must be materialized, and its pipeline must run.
    """
    from state.command import ForgetCommand

    ask_owner(root, option, ForgetCommand(file=file, source=source), timeout, json)


def ask_owner(root: str, option: list[str] | None, command: Command, timeout_s: float, json: bool) -> None:
    """Has a command done, and prints the answer."""
    options = storage_options(option)
    from slackwater.cli.commands import carry_out, print_outcome

    print_outcome(carry_out(root, options, command, timeout_s=timeout_s), Output(json))
