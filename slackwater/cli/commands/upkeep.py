"""The CLI commands that do more than send an operation: tag also lists, replace-table writes a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.commands.asking import carry_out, print_answer
from slackwater.cli.options import (
    AtEpoch,
    Json,
    Root,
    StorageOptions,
    Takeover,
    Timeout,
    open_store,
    storage_options,
)
from slackwater.cli.terminal.output import Output
from slackwater.commands.operations import ReadTableCommand, TagCommand
from slackwater.status.text import counted
from state.errors import UsageError
from state.location import Location
from state.ownership.command import Answer
from state.ownership.owner import read_owner
from state.upkeep.tags import check_tag_name


@command()
def tag(
    root: Root,
    name: Annotated[str | None, typer.Argument(help="a letter, then letters, digits, '.', '_', '-'")] = None,
    epoch: AtEpoch = None,
    delete: Annotated[bool, typer.Option("--delete", help="delete the tag")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="print all tags; the default without a name")] = False,
    takeover: Takeover = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Give an epoch a name.  The epoch is kept, and can be read by the name.  An existing tag moves."""
    options = storage_options(option)

    if name is None or list_all:
        if name is not None or epoch is not None or delete:
            raise UsageError("--list takes no name and no other option: leave out --list, or the others")
        _list_tags(root, options, Output(json))
    elif delete:
        if epoch is not None:
            raise UsageError("--delete takes no --epoch: a tag is deleted for any epoch")
        _delete_tag(root, options, name, Output(json), takeover=takeover)
    else:
        _put_tag(root, options, name, epoch, Output(json), takeover=takeover)


@command("replace-table")
def replace_table(
    root: Root,
    table: Annotated[str, typer.Argument(help="the name of the static table")],
    file: Annotated[Path, typer.Argument(help="its new rows: a .parquet, .csv, .json or .jsonl file")],
    timeout: Timeout = 60,
    option: StorageOptions = None,
    json: Json = False,
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


def _list_tags(root: str, options: Mapping[str, str], output: Output) -> None:
    """Prints every tag, its epoch, and the time when the epoch was committed."""
    store = open_store(root, options)
    times = {row["epoch"]: row["committed_at"] for row in store.epoch_times().to_pylist()}
    rows = [{"tag": tag, "epoch": epoch, "committed_at": times.get(epoch)} for tag, epoch in store.tags().items()]
    output.rows(rows, ["tag", "epoch", "committed_at"])


def _put_tag(
    root: str, options: Mapping[str, str], name: str, epoch: str | None, output: Output, *, takeover: bool
) -> None:
    check_tag_name(name)
    number = open_store(root, options).snapshot(epoch).epoch
    carry_out(root, options, TagCommand(name=name, epoch=number), takeover=takeover)
    output.rows([{"tag": name, "epoch": number}], ["tag", "epoch"])


def _delete_tag(root: str, options: Mapping[str, str], name: str, output: Output, *, takeover: bool) -> None:
    tags = open_store(root, options).tags()
    if name not in tags:
        raise UsageError(f"there is no tag {name!r} at {root}; the tags are: {', '.join(tags) or 'none'}")
    carry_out(root, options, TagCommand(name=name, epoch=None), takeover=takeover)
    output.rows([{"tag": name, "epoch": tags[name]}], ["tag", "epoch"])
