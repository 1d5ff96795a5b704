"""The CLI commands about the gate: `held` and `release`."""

from __future__ import annotations

import typer

from slackwater.cli.commands.steering import ask_owner
from slackwater.cli.options import Debug, Json, Root, StorageOptions, Timeout, Wide, opened_store
from slackwater.commands.operations import ReleaseCommand
from slackwater.terminal.edge import reports_errors
from slackwater.terminal.output import Output

gate = typer.Typer()


@gate.command()
@reports_errors
def held(
    root: Root, wide: Wide = False, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Print the views that are held back, with their violated expectations and the files that brought the rows.

    Publications, `serve` and the tag `published` stay at the last epoch that fulfilled them.
    """
    from slackwater.cli.display.expectation_list import print_held

    print_held(opened_store(root, option), Output(json, wide))


@gate.command()
@reports_errors
def release(
    root: Root, timeout: Timeout = 60, option: StorageOptions = None, json: Json = False, debug: Debug = False
) -> None:
    """Accept the rows that violate expectations now, and show the views that are held back.

    Rows that come later, and violate, are held back again.  To take the rows out instead, `forget` or `reingest` their
    files.
    """
    ask_owner(root, option, ReleaseCommand(), timeout, json)
