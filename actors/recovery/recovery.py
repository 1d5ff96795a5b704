"""Recovery: takes a root over, fences its earlier writers, and reads the committed state, also of a cold start."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from actors.files import FileKey
from actors.listing.listing_state import ListedState
from actors.recovery.attempt_plan import AttemptPlan, Poisoned
from actors.recovery.catalog_changes import CatalogChanges
from actors.recovery.committed_files import CommittedFiles
from actors.sources.pipeline_definition import PipelineDefinition
from state.errors import CommitRefusedError, FencedError, StoreNotFoundError
from state.store.restored_views import restored_views
from state.store.root import Root
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import EpochRecord, Head, ViewVersion
from state.upkeep.tags import require_gate_tag

_TAKE_OVER_TRIES = 10


@dataclass(frozen=True, kw_only=True)
class RecoveredState(CommittedFiles):
    """The committed state that an attempt begins with.

    Args:
        store: a handle on the store, under the new term.
        head: the head that this attempt has won.
        catalog: the catalog, with the changes of the declaration.
        views: name → version, restored under the new term.
        listed: source → its last listing, if one is known.
        unacknowledged: epochs that an earlier attempt of the run committed and died before reporting.
    """

    store: StateStore
    head: Head
    catalog: CatalogChanges
    views: Mapping[str, ViewVersion]
    listed: Mapping[str, ListedState]
    unacknowledged: Sequence[EpochRecord]

    def poisoned(self, accused: Mapping[FileKey, Poisoned]) -> dict[FileKey, str]:
        """The versions that are given up, and the reasons: without versions of which rows were committed since.

        Args:
            accused: the versions that earlier attempts have accused, see `AttemptPlan`.
        """
        rows = {each.key: each.row_offset for each in self.unfinished}
        return {file: each.reason for file, each in accused.items() if rows.get(file, each.rows) <= each.rows}

    def num_waiting(self, source: str, poisoned: Container[FileKey]) -> int:
        """The number of unfinished objects of a source.

        Args:
            poisoned: versions that are given up: they do not count.
        """
        left = [each.key for each in self.unfinished if each.key not in poisoned]
        return len({path for of, path, _ in left if of == source})


def check(definition: PipelineDefinition, root: Root, *, holds_back: bool = False) -> Mapping[str, pa.Schema]:
    """Compares a declaration with the root, without changing anything.

    Args:
        holds_back: whether a view of it holds results back, so that the gate owns the tag `published`.

    Returns:
        Source → schema, of the sources whose schema is decided or declared.

    Raises:
        UsageError: the root and the declaration do not go together.
        StorageError: the root cannot be read.
    """
    committed, epoch = Catalog(), 0
    try:
        store = root.open(read_only=True)
        committed, epoch = Catalog.of(store.scan("catalog")), store.head.epoch
        if holds_back:
            require_gate_tag(definition.root, committed.gate, store.head.tags)
    except StoreNotFoundError:
        pass
    changes = CatalogChanges(committed)
    changes.declare(definition, epoch)
    return changes.schemas


def as_recorded(definition: PipelineDefinition, root: Root) -> PipelineDefinition:
    """The definition with the defaults that the root has recorded for its sources; see `SourceDefinition.as_recorded`.

    Raises:
        StorageError: the root cannot be read.
    """
    try:
        recorded = Catalog.of(root.open(read_only=True).scan("catalog")).sources
    except StoreNotFoundError:
        return definition
    sources = (
        source if (known := recorded.get(source.name)) is None else source.as_recorded(known.definition)
        for source in definition.sources
    )
    return replace(definition, sources=tuple(sources))


def current_head(root: Root) -> Head:
    """The head that the last writer of the root has left; of term 0 if the root has no store."""
    try:
        return root.open(read_only=True).head
    except StoreNotFoundError:
        return Head(0, 0)


def recover(definition: PipelineDefinition, plan: AttemptPlan, root: Root) -> RecoveredState:
    """Opens the store of a pipeline as its only writer.

    The declaration is checked first: a pipeline that does not belong to the root fences no writer.

    Raises:
        UsageError: the root and the declaration do not go together.
        FencedError: another process has taken the root over.
        StorageError: the root cannot be read or written.
    """
    store, catalog, head = _take_over(definition, plan, root)
    views = restored_views(head.views, lambda view: root.restore(view, head.term))
    return RecoveredState(
        **vars(CommittedFiles.read(store, definition)),
        store=store,
        head=head,
        catalog=catalog,
        views=views,
        listed=ListedState.of_rows(store.scan("list_state").to_pylist()),
        unacknowledged=store.epochs(after=plan.so_far.epoch) if plan.held_root else [],
    )


def _take_over(
    definition: PipelineDefinition, plan: AttemptPlan, root: Root
) -> tuple[StateStore, CatalogChanges, Head]:
    for tries_left in reversed(range(_TAKE_OVER_TRIES)):
        store = root.create_or_open()
        if store.head.run != plan.run and (plan.held_root or _is_newer(store.head, plan)):
            raise FencedError(
                f"{definition.root} was taken over by the run {store.head.run}; this run has stopped for good"
            )
        catalog = CatalogChanges(Catalog.of(store.scan("catalog")))
        catalog.declare(definition, store.head.epoch, plan.began_at)
        try:
            return store, catalog, store.take_over(plan.run)
        except CommitRefusedError:
            # A commit was still on its way, of an earlier attempt or of the owner that is replaced: now it is in.
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def _is_newer(head: Head, plan: AttemptPlan) -> bool:
    """True if a run that began after this one holds the head."""
    return plan.replaces_term is not None and head.term > plan.replaces_term and head.run not in plan.replaces
