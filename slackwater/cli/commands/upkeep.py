"""`slackwater vacuum` and `slackwater tag`."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.cli.commands.steering import carry_out
from slackwater.reading.store import open as open_store
from slackwater.terminal.output import Output
from state.errors import UsageError
from state.ownership.command import TagCommand, VacuumCommand
from state.upkeep.tags import check_tag_name


def vacuum_root(
    root: str, options: Mapping[str, str], command: VacuumCommand, output: Output, *, takeover: bool
) -> None:
    """Lets go of what retention does not keep, and says what that was."""
    before = open_store(root, options).epochs().num_rows
    gone = carry_out(root, options, command, takeover=takeover).values
    left = open_store(root, options).epochs().num_rows
    report = {
        "epochs_expired": before - left,
        "epochs_left": left,
        "versions_deleted": gone["versions"],
        "datasets_deleted": gone["datasets"],
        "bytes_freed": gone["bytes"],
    }
    output.document(report) if output.json else output.rows([report], list(report))


def list_tags(root: str, options: Mapping[str, str], output: Output) -> None:
    """Every tag with its epoch and when that was committed."""
    store = open_store(root, options)
    times = {row["epoch"]: row["committed_at"] for row in store.epochs().select(["epoch", "committed_at"]).to_pylist()}
    rows = [{"tag": tag, "epoch": epoch, "committed_at": times.get(epoch)} for tag, epoch in store.tags().items()]
    output.rows(rows, ["tag", "epoch", "committed_at"])


def set_tag(
    root: str, options: Mapping[str, str], name: str, epoch: str | None, output: Output, *, takeover: bool
) -> None:
    """Gives an epoch, by default the latest, a name."""
    check_tag_name(name)
    number = open_store(root, options).snapshot(epoch).epoch
    carry_out(root, options, TagCommand(name=name, epoch=number), takeover=takeover)
    output.rows([{"tag": name, "epoch": number}], ["tag", "epoch"])


def remove_tag(root: str, options: Mapping[str, str], name: str, output: Output, *, takeover: bool) -> None:
    """Takes a name away."""
    tags = open_store(root, options).tags()
    if name not in tags:
        raise UsageError(f"there is no tag {name!r} at {root}; the tags are: {', '.join(tags) or 'none'}")
    carry_out(root, options, TagCommand(name=name, epoch=None), takeover=takeover)
    output.rows([{"tag": name, "epoch": tags[name]}], ["tag", "epoch"])
