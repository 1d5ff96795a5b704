"""The commands to a running pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from random import SystemRandom  # noqa: TID251 - here chance begins
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.options import Debug, Json, Root, Source, StorageOptions, Timeout, storage_options
from slackwater.commands.ask import TIMEOUT_S, ask
from slackwater.terminal.edge import reports_errors
from slackwater.terminal.output import Output
from state.clock import SystemClock
from state.errors import UsageError
from state.location import Location
from state.ownership.command import Command
from state.ownership.command_inbox import Answer
from state.vnode import VNODES, fetcher_bounds

if TYPE_CHECKING:
    from state.ownership.command import Command


def carry_out(
    root: str,
    options: Mapping[str, str],
    command: Command,
    *,
    timeout_s: float = TIMEOUT_S,
    takeover: bool = False,
) -> Answer:
    """Has a command done.  Errors as `slackwater.commands.ask.ask`."""
    return ask(
        Location(root, options),
        command,
        clock=SystemClock(),
        random=SystemRandom(),
        timeout_s=timeout_s,
        takeover=takeover,
    )


def parsed_fetchers(text: str) -> tuple[int, int]:
    """The fewest and the most fetch actors that `4` or `1-8` stands for.

    Raises:
        UsageError: it stands for none.
    """
    fewest, dash, most = text.partition("-")
    numbers = (fewest, most if dash else fewest)
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UsageError(f"{text!r} is no number of fetch actors: give one from 1 to {VNODES}, or two as in 1-8")
    return fetcher_bounds(tuple(int(number) for number in numbers))


def print_outcome(answer: Answer, output: Output) -> None:
    """Prints what was done."""
    if output.json:
        output.document({"text": answer.text, **answer.values})
    else:
        output.text(answer.text)


steering = typer.Typer()
Files = Annotated[
    str, typer.Argument(metavar="PATH|GLOB", help="which files: a whole URL or path, or a glob below a source")
]


class Off(StrEnum):
    """How `throttle` lifts its limits."""

    OFF = "off"


@steering.command()
@reports_errors
def pause(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Have a running pipeline list and read nothing more, until `resume`."""
    from state.ownership.command import PauseCommand

    ask_owner(root, option, PauseCommand(), timeout, json)


@steering.command()
@reports_errors
def resume(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Take a `pause` back."""
    from state.ownership.command import ResumeCommand

    ask_owner(root, option, ResumeCommand(), timeout, json)


@steering.command()
@reports_errors
def stop(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """End a running pipeline after a last epoch."""
    from state.ownership.command import StopCommand

    ask_owner(root, option, StopCommand(), timeout, json)


@steering.command()
@reports_errors
def throttle(
    root: Root,
    off: Annotated[Off | None, typer.Argument(help="lift every limit")] = None,
    files_per_second: Annotated[
        float | None,
        typer.Option("--files-per-second", help="open no more files than this each second"),
    ] = None,
    bytes_per_second: Annotated[
        float | None,
        typer.Option("--bytes-per-second", help="read no more bytes than this each second"),
    ] = None,
    rows_per_second: Annotated[
        float | None,
        typer.Option("--rows-per-second", help="emit no more rows than this each second"),
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Limit how fast a running pipeline reads.  A new limit replaces those before."""
    from state.errors import UsageError
    from state.ownership.command import ThrottleCommand

    rates = {
        "files_per_second": files_per_second,
        "bytes_per_second": bytes_per_second,
        "rows_per_second": rows_per_second,
    }
    if (off is None) == (set(rates.values()) == {None}):
        raise UsageError("give --files-per-second, --bytes-per-second or --rows-per-second, one or more; or else `off`")
    command = ThrottleCommand(**rates)
    ask_owner(root, option, command, timeout, json)


@steering.command()
@reports_errors
def rescale(
    root: Root,
    fetchers: Annotated[str, typer.Argument(metavar="N|N-M", help="how many; or the fewest and the most")],
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Take a running pipeline to another number of fetch actors; with `1-8` it chooses by how much there is to do."""
    from state.ownership.command import RescaleCommand

    fewest, most = parsed_fetchers(fetchers)
    ask_owner(root, option, RescaleCommand(fewest=fewest, most=most), timeout, json)


@steering.command()
@reports_errors
def retry(
    root: Root,
    source: Source = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="GLOB", help="only these: a whole URL or path, or a glob below a source"),
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read quarantined files again, each from the row where it ended.

    Single bad records, which `quarantine` shows, are not retried: the views hold the rows around them.  Export them,
    mend them, and put them as a new file.  A file that is mended in place is read again as a whole if its source has
    on_change="append": leave the rows out that were read.
    """
    from state.ownership.command import RetryCommand

    ask_owner(root, option, RetryCommand(source=source, file=file), timeout, json)


@steering.command()
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
    from state.ownership.command import ReingestCommand

    ask_owner(root, option, ReingestCommand(file=file, source=source), timeout, json)


@steering.command()
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
    from state.ownership.command import ForgetCommand

    ask_owner(root, option, ForgetCommand(file=file, source=source), timeout, json)


def ask_owner(root: str, option: list[str] | None, command: Command, timeout_s: float, json: bool) -> None:
    """Has a command done, and prints the answer."""
    options = storage_options(option)

    print_outcome(carry_out(root, options, command, timeout_s=timeout_s), Output(json))
