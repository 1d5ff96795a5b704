"""The CLI commands about branches: branch, branches, diff, merge and drop-branch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.options import (
    AtEpoch,
    Json,
    Root,
    StorageOptions,
    Takeover,
    Timeout,
    open_store,
    opened_store,
    storage_options,
)
from slackwater.cli.terminal.output import Output

Name = Annotated[str, typer.Argument(help="the name of the branch: a letter, then letters, digits, '.', '_', '-'")]


@command()
def branch(
    root: Root,
    name: Name,
    epoch: AtEpoch = None,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Make a root that begins with the files of an epoch of this root.  No data are copied.

    The branch is at ROOT/branches/NAME.  This root keeps the epoch until `drop-branch`.
    """
    from slackwater.branching.branch import branch as make_branch

    made = make_branch(root, name, epoch=epoch, storage_options=storage_options(option), timeout_s=timeout)
    row = {"branch": name, "epoch": made.latest_epoch(), "url": made.root}
    Output(json).rows([row], list(row))


@command()
def branches(root: Root, option: StorageOptions = None, json: Json = False) -> None:
    """Print the branches of a root: the epoch that each keeps, and whether it is ready."""
    Output(json).table(opened_store(root, option).branches())


@command("drop-branch")
def drop_branch(
    root: Root,
    name: Name,
    takeover: Takeover = False,
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Delete a branch with its files.  The root no longer keeps its epoch.

    It also releases a branch whose files were deleted by other means.
    """
    from slackwater.branching.branch import drop_branch as drop

    left = drop(root, name, storage_options=storage_options(option), takeover=takeover, timeout_s=timeout)
    output = Output(json)
    if output.json:
        output.document([{"branch": name, "left": list(left)}])
        return
    output.rows([{"branch": name}], ["branch"])
    if left:
        output.text(f"these objects of the branch are not Slackwater's, and stay: {', '.join(left)}")


@command()
def diff(
    root: Root,
    branch: Annotated[str, typer.Argument(help="a branch of this root by its name, or another root")],
    view: Annotated[str, typer.Argument(help="the name of a view in both")],
    epoch: AtEpoch = None,
    branch_epoch: Annotated[
        str | None, typer.Option("--branch-epoch", help="an epoch of the branch; by default the latest")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="print at most this number of rows of each side")] = 20,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Compare a view of a root with the same view of its branch, row by row.  Exit code 0: they are equal.

    Duplicate rows count separately.  Columns that only one of them has are named, and not compared.
    """
    options = storage_options(option)
    here = open_store(root, options)
    there = open_store(_place(root, branch, options), options)
    found = here.diff(view, there, epoch=epoch, other_epoch=branch_epoch, limit=limit)
    output = Output(json)
    counts = {
        "view": found.view,
        "epoch": found.epoch,
        "branch_epoch": found.other_epoch,
        "rows": found.rows,
        "branch_rows": found.other_rows,
        "only_in_root": found.only_here,
        "only_in_branch": found.only_there,
        "columns_only_in_root": list(found.columns_here),
        "columns_only_in_branch": list(found.columns_there),
    }
    sides = {"root": found.rows_here, "branch": found.rows_there}
    if output.json:
        output.document({**counts, **{f"first_only_in_{side}": rows.to_pylist() for side, rows in sides.items()}})
    else:
        output.rows([counts], list(counts))
        for side, rows in sides.items():
            if rows.num_rows:
                output.values(rows, title=f"{view}: first rows that only the {side} has")
    if not found.is_equal:
        sys.exit(1)


@command()
def merge(
    root: Root,
    name: Name,
    views: Annotated[
        list[str] | None, typer.Option("--view", metavar="NAME", help="only this view; repeatable; by default all")
    ] = None,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Take the views of a branch into its root, without computing them again.

    Views that were added or changed in the branch are taken.  Nothing may run on the root, and both must have read the
    same files.
    """
    from slackwater.branching.merge import merge as take_views

    merged = take_views(root, name, views=views, storage_options=storage_options(option))
    row = {"branch": name, "epoch": merged.epoch, "views": list(merged.views), "bytes": merged.bytes}
    Output(json).rows([row], list(row))


def _place(root: str, branch: str, options: Mapping[str, str]) -> str:
    """The root with this URL or path, or of the branch with this name."""
    if "/" in branch:
        return branch
    from slackwater.branching.branch import branch_of
    from state.location import Location
    from state.upkeep.branches import branch_location

    location = Location(root, options)
    branch_of(location, branch)
    return branch_location(location, branch).url
