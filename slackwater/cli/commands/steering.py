"""The CLI commands of operations with arguments of their own: throttle, rescale, retry and replace-table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from actors.protocol.barrier import Throttle
from slackwater.cli.commands.asking import ask_owner, carry_out, named, print_answer
from slackwater.cli.options import Debug, Json, Root, Source, StorageOptions, Timeout, storage_options
from slackwater.cli.terminal.edge import reports_errors
from slackwater.commands.operations import (
    ReadTableCommand,
    RescaleCommand,
    RetryCommand,
    RetryViewCommand,
)
from slackwater.status.text import counted
from state.errors import UsageError
from state.location import Location
from state.ownership.command import Answer
from state.ownership.owner import read_owner
from state.vnode import VNODES, fetcher_bounds

steering = typer.Typer()


@steering.command()
@reports_errors
def throttle(
    root: Root,
    off: Annotated[Literal["off"] | None, typer.Argument(help="remove all limits")] = None,
    files_per_second: Annotated[
        float | None, typer.Option("--files-per-second", help="open at most this number of files each second")
    ] = None,
    bytes_per_second: Annotated[
        float | None, typer.Option("--bytes-per-second", help="read at most this number of bytes each second")
    ] = None,
    rows_per_second: Annotated[
        float | None, typer.Option("--rows-per-second", help="emit at most this number of rows each second")
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Limit the reading rate of a running pipeline.  New limits replace all earlier ones."""
    limits = Throttle(files_per_second, bytes_per_second, rows_per_second)
    if (off is None) == (limits == Throttle()):
        raise UsageError("give one or more of --files-per-second, --bytes-per-second and --rows-per-second, or `off`")
    ask_owner(root, option, limits, timeout, json)


@steering.command()
@reports_errors
def rescale(
    root: Root,
    fetchers: Annotated[str, typer.Argument(metavar="N|N-M", help="a number, or the fewest and the most")],
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Change the number of fetch actors of a running pipeline.  With `1-8` it chooses the number by its backlog."""
    fewest, most = parsed_fetchers(fetchers)
    ask_owner(root, option, RescaleCommand(fewest=fewest, most=most), timeout, json)


@steering.command()
@reports_errors
def retry(
    root: Root,
    source: Source = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            metavar="PATH|GLOB",
            callback=named,
            help="only these files: a whole URL or path, or a glob below a source",
        ),
    ] = None,
    view: Annotated[
        str | None, typer.Option("--view", metavar="NAME", help="build this failed view anew, instead of files")
    ] = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Read quarantined files again, or build a failed view anew.

    A file continues at the row where reading failed.  Single bad records (see `quarantine`) are not retried: the views
    hold the rows around them.  Export the records, correct them, and upload them as a new file.  If you correct a file
    in place and its source has on_change="append", all of the file is read again: remove the rows that were read.

    A view is built from all rows of its sources: first remove what it failed over, for example with `forget`.  One with
    emit="on_close" or expire="by_watermark" need not have failed: the late rows come in.
    """
    if view is not None and (source is not None or file is not None):
        raise UsageError("--view names a view, --source and --file name files: give one or the other")
    command = RetryCommand(source=source, file=file) if view is None else RetryViewCommand(view=view)
    ask_owner(root, option, command, timeout, json)


@steering.command("replace-table")
@reports_errors
def replace_table(
    root: Root,
    table: Annotated[str, typer.Argument(help="the name of the static table")],
    file: Annotated[Path, typer.Argument(help="its new rows: a .parquet, .csv, .json or .jsonl file")],
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Replace the rows of a static table that came with the pipeline, in all views, in one epoch.

    A run reads the new rows at once; without one, the next run does.  They stay until the pipeline declares other rows.
    """
    from slackwater.commands.replace_table import replace_table as put

    place = Location(root, storage_options(option))
    rows = put(place, table, file)
    text = f"table {table}: {counted(rows, 'row')}"
    owner = read_owner(place)
    if owner is None or owner.is_gone():
        when = "which the next run reads"
    else:
        carry_out(root, storage_options(option), ReadTableCommand(table=table), timeout_s=timeout)
        when = "which the run reads now"
    print_answer(Answer(True, f"{text}, {when}", {"rows": rows}), json)


def parsed_fetchers(text: str) -> tuple[int, int]:
    """The fewest and the most fetch actors, from `4` or `1-8`.

    Raises:
        UsageError: the text is not valid.
    """
    fewest, dash, most = text.partition("-")
    numbers = (fewest, most if dash else fewest)
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UsageError(
            f"{text!r} is not a valid number of fetch actors: give one from 1 to {VNODES}, or two, for example 1-8"
        )
    return fetcher_bounds(tuple(int(number) for number in numbers))
