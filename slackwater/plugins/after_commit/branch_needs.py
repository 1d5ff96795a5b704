"""The files that branches of a root still have to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition, recorded_filter
from slackwater.plugins.after_commit.due_files import DueFile
from state.errors import StoreNotFoundError
from state.location import Location
from state.places.place import Place, Relation
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.upkeep.branches import Branch, branch_location, branches_of

_EVERY_NAME = PathFilter()
_READ = ("done", "replaced", "forgotten")


@dataclass(frozen=True)
class BranchReader:
    """A source of a branch that reads the place of a source of the root.

    Args:
        branch: the name of the branch.
        state: the store of the branch; None if the branch cannot be opened.
        source: the source of the branch.
        epoch: the epoch of the root at which the branch began.
        waits: why the branch keeps every file that was finished after `epoch`; empty if it keeps only the files that it
            has not read.
        path_filter: the names that the source of the branch reads.
    """

    branch: str
    state: StateStore | None
    source: str
    epoch: int
    path_filter: PathFilter = _EVERY_NAME
    waits: str = ""

    def lacks(self, files: Sequence[DueFile]) -> list[DueFile]:
        """The files that the branch still needs."""
        if self.state is None or self.waits:
            return [each for each in files if each.epoch > self.epoch]
        wanted = {
            encode_key(self.source, each.file.path, each.file.version): each
            for each in files
            if self.path_filter.accepts(each.file.path)
        }
        ledger = self.state.scan("ledger", keys=[*wanted], fields=["status"])
        rows = zip(ledger["key"].to_pylist(), ledger["status"].to_pylist(), strict=True)
        has_read = {key for key, status in rows if status in _READ}
        return [each for key, each in wanted.items() if key not in has_read]

    @property
    def reason(self) -> str:
        why = self.waits or "it has not read them: run it, or drop it"
        return f"branch {self.branch} needs the files: {why}"


def branch_readers(
    root: Location, state: StateStore, source: SourceDefinition, open_branch: Callable[[Location], StateStore]
) -> list[BranchReader]:
    """The sources of all branches of a root, and of their branches, that read the place of a source.

    Args:
        state: a handle on its store.
        source: the source of the root.
        open_branch: opens the store of a branch to read it.

    Raises:
        StorageError: a branch cannot be read.
    """
    found: list[BranchReader] = []
    for branch in branches_of(state.head.tags).values():
        if not branch.is_dropping:
            found += _readers(root, branch, source, open_branch)
    return found


def limit(readers: Iterable[BranchReader], files: Iterable[Sequence[DueFile]]) -> tuple[int, str] | None:
    """The epoch before the first file that a branch needs, and the reason; None if no branch needs a file."""
    readers, found = list(readers), None
    for some in files:
        for reader in readers:
            first = min((each.epoch for each in reader.lacks(some)), default=None)
            if first is not None and (found is None or first - 1 < found[0]):
                found = first - 1, reader.reason
    return found


def _readers(
    root: Location, branch: Branch, source: SourceDefinition, open_branch: Callable[[Location], StateStore]
) -> list[BranchReader]:
    location = branch_location(root, branch.name)
    try:
        state = open_branch(location)
    except StoreNotFoundError:
        return [
            BranchReader(branch.name, None, "", branch.epoch, waits="it is not complete: make it again, or drop it")
        ]
    catalog = Catalog.of(state.scan("catalog"))
    place, found = Place.of(source.location), []
    for name, recorded in catalog.sources.items():
        other = json.loads(recorded.definition)
        url, is_stored = Location(other["url"]), other.get("materialize", False)
        relation = place.relation(Place.of(_with_access(url, source.location)))
        if url.url == source.location.url:
            relation = Relation.EQUAL
        if not relation.overlaps:
            continue
        waits = "" if relation is Relation.EQUAL else f"its source {name} reads {url}"
        if not is_stored and (view := _unfinished_view(state, catalog, name)):
            waits = f"its view {view} has failed, or is being built"
        found.append(BranchReader(branch.name, state, name, branch.epoch, recorded_filter(recorded.definition), waits))
    for below in branches_of(state.head.tags).values():
        if not below.is_dropping:
            found += _readers(location, below, source, open_branch)
    return found


def _with_access(location: Location, like: Location) -> Location:
    """A recorded location, which has no options, with the options of `like` if the kind of store is the same."""
    same_kind = location.scheme == like.scheme
    return Location(location.url, like.storage_options if same_kind else location.storage_options)


def _unfinished_view(state: StateStore, catalog: Catalog, source: str) -> str:
    for name, view in catalog.views.items():
        version = state.head.views.get(name)
        is_built = version is not None and version.pinned_epoch is not None
        if source in view.sources and (view.error is not None or is_built):
            return name.partition(".")[0]
    return ""
