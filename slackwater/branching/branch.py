"""Branches of a root: made at one epoch, and dropped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from random import SystemRandom  # noqa: TID251 - chance begins here

from actors.sources.source import SourceDefinition
from slackwater import __version__
from slackwater.branching.branch_steps import end_branch, forget_branch, make_branch
from slackwater.commands.ask import TIMEOUT_S, ask
from slackwater.commands.maintenance import run_as_owner
from slackwater.commands.operations import BranchTagCommand
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.overlap_table import require_apart
from slackwater.reading.store import Store
from slackwater.reading.store import open as open_root
from slackwater.tables.static_table import copy_table, table_location
from state.capabilities.store_record import record_branch
from state.clock import SystemClock
from state.errors import NotFoundError, StoreNotFoundError, UsageError
from state.lance.branch_files import BranchFiles
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.places.marker import Marker, write_marker
from state.store.store import StateStore
from state.tables.catalog import Catalog, put_source
from state.tables.delta import Delta, DeltaBuilder
from state.upkeep.branches import Branch, branches_of, check_branch_name

_CLOCK = SystemClock()


def branch(
    root: str | os.PathLike[str],
    name: str,
    *,
    epoch: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Store:
    """Makes a root that begins with the files of one epoch of another root; no data are copied.

    The branch is at `<root>/branches/<name>`, and is a root like any other: a pipeline with this `root` runs on it, by
    itself, from that epoch on.  The root keeps the epoch until the branch is dropped.  A call that was interrupted is
    repeated with the same name.

    Args:
        root: the URL or directory of the root; a pipeline may run on it.
        name: the name of the branch: a letter, then letters, digits, `.`, `_` and `-`.
        epoch: an epoch as for `Store.snapshot`; None for the latest.
        storage_options: as for `open`.
        timeout_s: seconds to wait for the owner of the root, which notes the branch.

    Returns:
        The branch, opened for reading.

    Raises:
        UsageError: the name is not valid, the branch exists, or a link leads out of the root.
        EpochNotFoundError: the epoch does not exist.
        StoreNotFoundError: no pipeline has written to the root.
        CommandRefusedError, CommandUnansweredError: the owner of the root refuses, or does not answer.
        StorageError: the root cannot be read or written.

    Example:
        >>> trial = branch("s3://lake/flights", "trial")  # doctest: +SKIP
        >>> pipeline = Pipeline("flights", root=trial.root)  # doctest: +SKIP
    """
    check_branch_name(name)
    store = open_root(root, storage_options)
    location = Location(os.fspath(root), storage_options or {})
    files = _Files(location, name)
    notes = _Notes(location, timeout_s)
    require_apart([DeclaredPlace(PlaceKind.ROOT, "", location), DeclaredPlace(PlaceKind.BRANCH, name, files.location)])
    make_branch(name, files, notes, lambda: store.snapshot(epoch).epoch, is_chosen=epoch is not None)
    owner = store.owner()
    pipeline = "" if owner is None else owner.pipeline
    record = record_branch(location, files.location)
    identity = "" if record is None else record.identity
    write_marker(files.location, Marker("root", pipeline, files.location.url, "", __version__, identity))
    return open_root(files.location.url, storage_options)


def drop_branch(
    root: str | os.PathLike[str],
    name: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    takeover: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> tuple[str, ...]:
    """Deletes a branch with all files that Slackwater wrote; the root no longer keeps its epoch.

    Repeat a call that was interrupted.  A call also releases a branch whose files were deleted by other means.

    Args:
        root: the URL or directory of the root.
        name: the name of the branch.
        storage_options: as for `open`.
        takeover: take the branch from a run that seems to live.
        timeout_s: seconds to wait for the owner of the root.

    Returns:
        The first names of objects below the branch that Slackwater did not write.  They stay.

    Raises:
        NotFoundError: there is no such branch.
        UsageError: the branch has branches itself.
        OwnedError: a pipeline runs on the branch.
        CommandRefusedError, CommandUnansweredError: the owner of the root refuses, or does not answer.
        StorageError: the root cannot be read or written.
    """
    location = Location(os.fspath(root), storage_options or {})
    known = branch_of(location, name)
    files, notes = _Files(location, name), _Notes(location, timeout_s)

    def end(store: StateStore | None) -> None:
        own = branches_of(store.head.tags) if store is not None else {}
        if own:
            raise UsageError(f"branch {name!r} has branches itself, drop these first: {', '.join(own)}")
        end_branch(name, known.epoch, files, notes)

    try:
        # As its owner: no run begins on the branch, and no branch of it, until its store is gone.
        run_as_owner(files.location.url, storage_options, lambda store, _: end(store), takeover=takeover)
    except NotFoundError as error:
        # It was never whole, or was deleted by other means, or a part of it was deleted by an earlier drop.
        if not (known.is_dropping or isinstance(error, StoreNotFoundError)):
            raise
        end(None)
    return forget_branch(name, files, notes)


def branch_of(root: Location, name: str) -> Branch:
    """The record of a branch.

    Raises:
        NotFoundError: there is no such branch.
        StorageError: the root cannot be read.
    """
    known = branches_of(LanceStateStore.open(root, _CLOCK, read_only=True).head.tags)
    if name not in known:
        raise NotFoundError(f"{root} has no branch {name!r}; its branches are: {', '.join(known) or 'none'}")
    return known[name]


class _Files(BranchFiles):
    """The files of a branch, see `FilesOfBranch`.

    Args:
        root: the root above it.
        name: its name.
    """

    def __init__(self, root: Location, name: str) -> None:
        super().__init__(root, name, _CLOCK)
        self._above = root

    def __str__(self) -> str:
        return str(self.location)

    def make(self, epoch: int, definitions: Delta | None = None) -> None:
        super().make(epoch, _definitions(self._above, self.location, epoch) if definitions is None else definitions)


class _Notes:
    """See `NotesOfRoot`; without an owner of the root, this process notes.

    Args:
        root: the root.
        timeout_s: seconds to wait for its owner.
    """

    def __init__(self, root: Location, timeout_s: float) -> None:
        self._root, self._timeout_s = root, timeout_s

    def __str__(self) -> str:
        return str(self._root)

    def tags(self) -> Mapping[str, int]:
        return LanceStateStore.open(self._root, _CLOCK, read_only=True).head.tags

    def note(self, tag: str, epoch: int | None) -> None:
        _change_tag(self._root, tag, epoch, self._timeout_s)


def _change_tag(root: Location, tag: str, epoch: int | None, timeout_s: float) -> None:
    """Has the owner of the root note a branch; without an owner this process does."""
    command = BranchTagCommand(name=tag, epoch=epoch)
    ask(root, command, clock=_CLOCK, random=SystemRandom(), timeout_s=timeout_s)


def _definitions(root: Location, place: Location, epoch: int) -> Delta:
    """Copies the static tables that are stored below the root, and returns their definitions at the branch."""
    store = LanceStateStore.open(root, _CLOCK, read_only=True)
    record = store.epoch(epoch)
    assert record is not None, "the root keeps the epoch"
    delta = DeltaBuilder()
    for name, source in Catalog.of(store.scan("catalog", state_version=record.state_version)).sources.items():
        definition = SourceDefinition.of_json(name, source.definition)
        if definition.table == "frame":
            copy_table(table_location(root, name), table_location(place, name))
            moved = replace(definition, location=table_location(place, name))
            put_source(delta, replace(source, definition=moved.to_json()))
    return delta.build()
