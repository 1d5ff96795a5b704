"""The CLI commands that keep a root in order: vacuum and tag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from slackwater.cli.commands.asking import carry_out
from slackwater.cli.options import AtEpoch, Debug, Json, Root, StorageOptions, Takeover, open_store, storage_options
from slackwater.cli.terminal.edge import reports_errors
from slackwater.cli.terminal.output import Output
from slackwater.commands.operations import TagCommand, VacuumCommand
from state.errors import UsageError
from state.upkeep.tags import check_tag_name

upkeep = typer.Typer()


@upkeep.command()
@reports_errors
def vacuum(
    root: Root,
    keep_s: Annotated[
        float | None,
        typer.Option("--keep-s", min=0, help="keep the epochs of this many last seconds; by default 3,600"),
    ] = None,
    keep_epochs: Annotated[
        int | None,
        typer.Option("--keep-epochs", min=1, help="keep at least this many last epochs; by default 100"),
    ] = None,
    takeover: Takeover = False,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete older epochs, and the files that only they use.  Tagged and pinned epochs are kept.

    A running pipeline does this by itself, and at once with this command; it keeps the epochs that its settings name.
    --keep-s and --keep-epochs are for a root without a running pipeline.
    """
    options = storage_options(option)

    command = VacuumCommand(keep_s=keep_s, keep_epochs=keep_epochs)
    before = open_store(root, options).epoch_times().num_rows
    deleted = carry_out(root, options, command, takeover=takeover).values
    left = open_store(root, options).epoch_times().num_rows
    report = {
        "epochs_expired": before - left,
        "epochs_left": left,
        "versions_deleted": deleted["versions"],
        "datasets_deleted": deleted["datasets"],
        "bytes_freed": deleted["bytes"],
    }
    output = Output(json)
    output.document(report) if output.json else output.rows([report], list(report))


@upkeep.command()
@reports_errors
def tag(
    root: Root,
    name: Annotated[str | None, typer.Argument(help="a letter, then letters, digits, '.', '_', '-'")] = None,
    epoch: AtEpoch = None,
    delete: Annotated[bool, typer.Option("--delete", help="delete the tag")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="print all tags; the default without a name")] = False,
    takeover: Takeover = False,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Give an epoch a name.  The epoch is kept, and can be read by the name.  An existing tag moves."""
    options = storage_options(option)

    if name is None or list_all:
        if name is not None or epoch is not None or delete:
            raise UsageError("--list takes no name and no other option: leave out --list, or the others")
        _list_tags(root, options, Output(json))
    elif delete:
        if epoch is not None:
            raise UsageError("--delete takes no --epoch: a tag is deleted whatever its epoch is")
        _delete_tag(root, options, name, Output(json), takeover=takeover)
    else:
        _put_tag(root, options, name, epoch, Output(json), takeover=takeover)


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
