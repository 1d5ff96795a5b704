"""The commands that ask a view something: `sql` and `watch`."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from slackwater.cli.edge import reports_errors
from slackwater.cli.options import AtEpoch, Debug, Json, Root, StorageOptions, opened_store
from slackwater.cli.output import Output

reading = typer.Typer()


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
    from slackwater.cli.answer import print_answer

    print_answer(opened_store(root, option).snapshot(epoch), query, Output(json))


@reading.command()
@reports_errors
def watch(
    root: Root,
    view: Annotated[str, typer.Argument(help="the view's name")],
    since: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--since", help="only changes after this epoch, tag or ISO time; by default all rows first"),
    ] = None,
    poll_s: Annotated[float, typer.Option("--poll-s", min=0, help="seconds between two looks")] = 0.5,
    option: StorageOptions = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON document a line for each change")] = False,
    debug: Debug = False,
) -> None:
    """Follow a view: what each epoch changes in it, until Ctrl-C."""
    from slackwater.cli.follow import print_changes

    print_changes(opened_store(root, option).watch(view, since=since, poll_s=poll_s), Output(json))
