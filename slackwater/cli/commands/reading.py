"""The commands that read a root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.terminal.output import Output
from state.errors import UsageError

if TYPE_CHECKING:
    from slackwater.reading.snapshot import Snapshot


from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.reading.changes.view_changes import ViewChange


from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.options import (
    AtEpoch,
    Debug,
    Json,
    Root,
    Source,
    StorageOptions,
    Timeout,
    opened_store,
    storage_options,
)
from slackwater.terminal.edge import reports_errors


def print_answer(snapshot: Snapshot, query: str, output: Output) -> None:
    """Prints every row.

    Raises:
        UsageError: as `Snapshot.sql`; or two columns have one name, and one of them would hide the other.
    """
    answer = snapshot.sql(query)
    twice = next((name for name in answer.column_names if answer.column_names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two columns of the answer are called {twice!r}: give one of them another name with AS")
    output.table(answer, title=f"epoch {snapshot.epoch}")


_HEAD = ("epoch", "change")


def print_changes(changes: Iterable[ViewChange], output: Output) -> None:
    """Prints each change when it comes; ends when it is interrupted, which is no error.

    Of a row that was removed there are only the columns that it is known by.
    """
    columns: list[str] = []
    try:
        for change in changes:
            if output.json:
                removed = change.removed.to_pylist()
                output.line({"epoch": change.epoch, "removed": removed, "rows": change.rows.to_pylist()})
                continue
            if change.rows.column_names != columns:
                columns = change.rows.column_names
                output.lines([[*_HEAD, *columns]])
            for kind, table in (("removed", change.removed), ("row", change.rows)):
                rows = table.to_pylist()
                output.lines([change.epoch, kind, *(row.get(name) for name in columns)] for row in rows)
    except KeyboardInterrupt:
        return


reading = typer.Typer()


class FileStatus(StrEnum):
    """What the ledger says of a file."""

    WAITING = "waiting"
    READING = "reading"
    DONE = "done"
    QUARANTINED = "quarantined"
    VANISHED = "vanished"
    REPLACED = "replaced"
    FORGOTTEN = "forgotten"


@reading.command()
@reports_errors
def epochs(
    root: Root,
    limit: Annotated[int, typer.Option("--limit", min=1, help="the last so many")] = 1_000,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The retained epochs: when, how many files and rows, and the seconds of each phase."""
    table = opened_store(root, option).epochs()
    Output(json).table(table.slice(max(0, table.num_rows - limit)))


@reading.command()
@reports_errors
def files(
    root: Root,
    source: Source = None,
    status: Annotated[
        FileStatus | None,
        typer.Option("--status", help="only files in this status"),
    ] = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The ledger: one row for each version of each file."""
    Output(json).table(opened_store(root, option).files(source, status=status.value if status else None))


@reading.command()
@reports_errors
def why(
    root: Root,
    path: Annotated[str, typer.Argument(help="an object: its whole URL or path")],
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """One object's story: why its rows are in the views, or why not."""
    output = Output(json)
    story = opened_store(root, option).why(path)
    if json:
        output.document(asdict(story))
    else:
        output.text(story.text)


@reading.command()
@reports_errors
def show(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="rows")] = 20,
    epoch: AtEpoch = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The rows of a view at an epoch."""
    output = Output(json)
    snapshot = opened_store(root, option).snapshot(epoch)
    shown = snapshot.view(view)
    output.table(shown.head(limit), title=f"{view} at epoch {snapshot.epoch}")
    count = shown.count_rows()
    if count > limit:
        output.text(f"{limit:,} of {count:,} rows; --limit shows more")


@reading.command()
@reports_errors
def sql(
    root: Root,
    query: Annotated[str, typer.Argument(help="a SELECT over the views, and over `files`, the ledger")],
    epoch: AtEpoch = None,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Ask all views of one epoch in SQL, as DuckDB has it."""
    print_answer(opened_store(root, option).snapshot(epoch), query, Output(json))


@reading.command()
@reports_errors
def watch(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    since: Annotated[
        str | None,
        typer.Option("--since", help="only changes after this epoch, tag or ISO time; by default all rows first"),
    ] = None,
    poll_s: Annotated[float, typer.Option("--poll-s", min=0, help="seconds between two looks")] = 0.5,
    option: StorageOptions = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document a line for each change")] = False,
    debug: Debug = False,
) -> None:
    """Follow a view: what each epoch changes in it, until Ctrl-C."""
    print_changes(opened_store(root, option).watch(view, since=since, poll_s=poll_s), Output(json))


@reading.command()
@reports_errors
def quarantine(
    root: Root,
    source: Annotated[str | None, typer.Option("--source", help="only records of this source")] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="write all of them into a new file: .parquet, .csv, or .json with one a line"),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="forget what they were, after the export or with --yes")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="clear without an export")] = False,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The bad records that were kept: where in which file, what they are, and why they do not fit.

    Their places in the files, and their number in the ledger, stay when they are cleared.  Poison messages of a queue
    of events are among them, without a row.
    """
    options = storage_options(option)
    from slackwater.cli.commands.quarantine import export_quarantine, print_quarantine
    from state.errors import UsageError

    if clear and export is None and not yes:
        raise UsageError("--clear forgets what the bad records were: give --export FILE as well, or --yes")
    if export is None and not clear:
        print_quarantine(root, options, source, Output(json))
    else:
        export_quarantine(root, options, source, Output(json), file=export, clear=clear, timeout_s=timeout)
