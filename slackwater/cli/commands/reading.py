"""The CLI commands that read a root: epochs, files, why, show, sql, watch and quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from slackwater.cli.application import command
from slackwater.cli.options import (
    AtEpoch,
    Json,
    Root,
    Source,
    StorageOptions,
    Timeout,
    Wide,
    opened_store,
    storage_options,
)
from slackwater.cli.terminal.output import NULL, Output
from state.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from slackwater.reading.changes.view_changes import ViewChange

_GIB = 1 << 30
_EPOCH_COLUMNS = ("number", "epoch", "committed_at", "files", "rows", "fetch_s", "align_s", "spark_s", "collect_s")
_FILE_COLUMNS = ("source", "status", "rows_read", "rows_bad", "size", "path", "error")
_SAME_COLUMNS = ("source", "content", "size", "rows_read", "path")
_CHANGE_COLUMNS = ("epoch", "change")


@command()
def epochs(
    root: Root,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="print at most this number of rows, the last rows")
    ] = 1_000,
    wide: Wide = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print the retained epochs: counts, and seconds of each phase."""
    Output(json, wide).table(opened_store(root, option).epochs(limit=limit), short=_EPOCH_COLUMNS)


@command()
def files(
    root: Root,
    source: Source = None,
    status: Annotated[
        Literal["waiting", "reading", "done", "quarantined", "vanished", "replaced", "forgotten"] | None,
        typer.Option("--status", help="only files in this state"),
    ] = None,
    same_content: Annotated[
        bool, typer.Option("--same-content", help="only files whose content another file of the source has, too")
    ] = False,
    wide: Wide = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print the ledger: one row for each version of each file."""
    ledger = opened_store(root, option).ledger
    if same_content:
        if status is not None:
            raise UsageError("--same-content shows the files with rows in the views: leave --status out")
        Output(json, wide).table(ledger.same_content(source), short=_SAME_COLUMNS)
    else:
        Output(json, wide).table(ledger.files(source, status=status), short=_FILE_COLUMNS)


@command()
def views(root: Root, wide: Wide = False, option: StorageOptions = None, json: Json = False) -> None:
    """Print the views of a root: class, state, rows, sources."""
    from slackwater.cli.display.view_list import print_views

    print_views(opened_store(root, option), Output(json, wide))


@command()
def why(
    root: Root,
    path: Annotated[str, typer.Argument(help="the whole URL or path of an object")],
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print why the rows of an object are in the views, or not."""
    output = Output(json)
    history = opened_store(root, option).ledger.why(path)
    if json:
        output.document(asdict(history))
    else:
        output.paragraph(history.text)


@command()
def show(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="print at most this number of rows")] = 20,
    epoch: AtEpoch = None,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print rows of a view at an epoch."""
    output = Output(json)
    snapshot = opened_store(root, option).snapshot(epoch)
    shown = snapshot.view(view)
    output.values(shown.head(limit), title=f"{view} at epoch {snapshot.epoch}")
    count = shown.count_rows()
    if count > limit:
        output.text(f"{limit:,} of {count:,} rows; --limit shows more")


@command()
def sql(
    root: Root,
    query: Annotated[str, typer.Argument(help="a SELECT over the views, and over `files`, the ledger")],
    epoch: AtEpoch = None,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="seconds that the query may take")] = 300,
    max_memory_gib: Annotated[
        float | None,
        typer.Option("--max-memory-gib", min=0, help="memory for the query and for its answer; by default at most 4"),
    ] = None,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Query all views of one epoch in the SQL of DuckDB."""
    snapshot = opened_store(root, option).snapshot(epoch)
    ask = partial(snapshot.sql, timeout_s=timeout)
    if max_memory_gib is not None:
        ask = partial(ask, max_memory_bytes=int(max_memory_gib * _GIB))
    print_answer(ask, query, f"epoch {snapshot.epoch}", Output(json))


@command()
def watch(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    since: Annotated[
        str | None,
        typer.Option("--since", help="only changes after this epoch, tag or ISO time; by default all rows first"),
    ] = None,
    poll_s: Annotated[float, typer.Option("--poll-s", min=0, help="seconds between two reads")] = 0.5,
    option: StorageOptions = None,
    json: Annotated[bool, typer.Option("--json", help="print each change as one JSON document on a line")] = False,
) -> None:
    """Follow a view: print its changes until Ctrl-C."""
    print_changes(opened_store(root, option).watch(view, since=since, poll_s=poll_s), Output(json))


@command()
def quarantine(
    root: Root,
    source: Annotated[str | None, typer.Option("--source", help="only records of this source")] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="write all records into a new file: .parquet, .csv, or .json (one per line)"),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="delete their content, after the export or with --yes")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="clear without an export")] = False,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Print, export or clear the bad records of a root.

    Each has its file and row, its content, and the reason.  Cleared records keep their positions in the files, and
    still count in the ledger.  Poison messages of an event queue are bad records without a row.
    """
    options = storage_options(option)
    from slackwater.cli.commands.quarantine import export_quarantine, print_quarantine

    if clear and export is None and not yes:
        raise UsageError("--clear deletes the content of the bad records: give --export FILE too, or --yes")
    if export is None and not clear:
        print_quarantine(root, options, source, Output(json))
    else:
        export_quarantine(root, options, source, Output(json), file=export, clear=clear, timeout_s=timeout)


def print_answer(ask: Callable[[str], pa.Table], query: str, title: str, output: Output) -> None:
    """Prints every row of the answer to a query.

    Raises:
        UsageError: as `Snapshot.sql`; or two columns have one name, and one would hide the other.
    """
    answer = ask(query)
    counts = Counter(answer.column_names)
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"two columns of the answer are called {twice!r}: give one of them another name with AS")
    output.values(answer, title=title)


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    """The values of a row with its nulls, and nothing for a column that it does not have."""
    return [NULL if name in row and row[name] is None else row.get(name) for name in columns]


def print_changes(changes: Iterable[ViewChange], output: Output) -> None:
    """Prints each change when it arrives.  An interrupt ends it, and is not an error.

    A removed row has only the columns that identify it.
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
                output.lines([[*_CHANGE_COLUMNS, *columns]])
            for kind, table in (("removed", change.removed), ("row", change.rows)):
                rows = table.to_pylist()
                output.lines([change.epoch, kind, *_cells(row, columns)] for row in rows)
    except KeyboardInterrupt:
        return
