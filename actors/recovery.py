"""Reads what is committed, takes the root over, and fences whoever wrote before.  A cold start is the same."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from actors.attempt_plan import AttemptPlan
from actors.catalog_changes import CatalogChanges
from actors.file_progress import FileProgress
from actors.ledger_corrections import num_ignored
from actors.listing_state import ListedState
from actors.messages import FileKey, FileVersion, PathKey
from actors.pipeline_definition import PipelineDefinition
from actors.reading_order import place
from actors.reports import SourceProgress
from actors.rows import Offset
from actors.seen_index import SeenIndex
from actors.source import orders
from state.catalog import Catalog
from state.errors import CommitRefusedError, FencedError, StoreNotFoundError
from state.fingerprint import path_fingerprint, path_fingerprints
from state.records import EpochRecord, Head, ViewVersion
from state.root import Root
from state.store import StateStore
from state.tables import REMOVED_STATUSES

_TAKE_OVER_TRIES = 10


@dataclass(frozen=True)
class RecoveredState:
    """What an attempt begins with.

    Args:
        head: as this attempt has won it.
        views: the views' versions, restored under the new term.
        seen: source → what was handed on.
        unfinished: what the queue holds, in the order in which it is read.
        without_rows: versions in the ledger of which no row was ingested.
        held: objects of which a version was to replace others, and could not be read.
        ingested: the sources of which rows were ingested.
        finished: source → what the ledger and the queue say of it.
        listed: source → its last listing, as far as one is known.
        unacknowledged: epochs that an earlier attempt of the run committed and did not live to tell.
    """

    store: StateStore
    head: Head
    catalog: CatalogChanges
    views: Mapping[str, ViewVersion]
    seen: Mapping[str, SeenIndex]
    unfinished: Sequence[FileProgress]
    without_rows: Sequence[FileKey]
    held: frozenset[PathKey]
    ingested: frozenset[str]
    finished: Mapping[str, SourceProgress]
    listed: Mapping[str, ListedState]
    unacknowledged: Sequence[EpochRecord]

    def num_waiting(self, source: str, poisoned: Container[PathKey]) -> int:
        """How many objects of a source are to be read on or are waiting, without those that are given up."""
        paths = {each.key[:2] for each in self.unfinished if each.file.source == source}
        return sum(path not in poisoned for path in paths)


def check(definition: PipelineDefinition, root: Root) -> Mapping[str, pa.Schema]:
    """Compares a declaration with the root, without changing anything.

    Returns:
        The schemas of the sources, as far as they are decided or declared.

    Raises:
        UsageError: the root and the declaration do not go together.
        StorageError: the root cannot be read.
    """
    committed, epoch = Catalog(), 0
    try:
        store = root.open(read_only=True)
        committed, epoch = Catalog.of(store.scan("catalog")), store.head.epoch
    except StoreNotFoundError:
        pass
    changes = CatalogChanges(committed)
    changes.declare(definition, epoch)
    return changes.schemas


def current_head(root: Root) -> Head:
    """What whoever has written to the root last has left; of term 0 if nobody has."""
    try:
        return root.open(read_only=True).head
    except StoreNotFoundError:
        return Head(0, 0)


def recover(definition: PipelineDefinition, plan: AttemptPlan, root: Root) -> RecoveredState:
    """Opens the store of a pipeline as its only writer.

    The declaration is checked first: a pipeline that does not belong to the root fences nobody.

    Raises:
        UsageError: the root and the declaration do not go together.
        FencedError: another process has taken the root over.
        StorageError: the root cannot be read or written.
    """
    store, catalog, head = _take_over(definition, plan, root)
    views = {name: root.restore(view, head.term) for name, view in head.views.items()}
    queue, ledger = store.scan("queue"), store.scan("ledger")
    declared = [source.name for source in definition.sources]
    # Filters by a mask: by an expression each would start a query engine of its own.
    # A version that had vanished and was handed on again is in the queue; its old row in the ledger says nothing more.
    queued = set(_file_keys(queue))
    has_no_rows = pc.and_(_is_of(declared, ledger), pc.equal(ledger["rows_read"], 0))
    without_rows = [key for key in _file_keys(ledger.filter(has_no_rows)) if key not in queued]
    vanished = set(_file_keys(ledger.filter(pc.equal(ledger["status"], "vanished")))).intersection(without_rows)
    could_not = pc.and_(has_no_rows, pc.fill_null(ledger["replaces"], False))
    held = frozenset(key[:2] for key in _file_keys(ledger.filter(could_not)))
    ingested = {*ledger["source"].filter(pc.greater(ledger["rows_read"], 0)).unique().to_pylist()}
    ingested |= {*queue["source"].filter(pc.greater(queue["row_offset"], 0)).unique().to_pylist()}
    return RecoveredState(
        store=store,
        head=head,
        catalog=catalog,
        views=views,
        seen=_seen(store.scan("seen"), definition, vanished, _gone(ledger, queue)),
        unfinished=sorted(
            map(_progress, queue.filter(_is_of(declared, queue)).to_pylist()),
            key=partial(_reading_order, orders(definition.sources)),
        ),
        without_rows=without_rows,
        held=held,
        ingested=frozenset(ingested),
        finished={source.name: _finished(source.name, ledger, queue) for source in definition.sources},
        listed=ListedState.of_rows(store.scan("list_state").to_pylist()),
        unacknowledged=[each for each in store.epochs() if each.epoch > plan.so_far.epoch] if plan.held_root else [],
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
    """Whether a run that began after this one holds the head."""
    return plan.replaces_term is not None and head.term > plan.replaces_term and head.run not in plan.replaces


def _finished(source: str, ledger: pa.Table, queue: pa.Table) -> SourceProgress:
    own = ledger.filter(pc.equal(ledger["source"], source))
    queue = queue.filter(pc.equal(queue["source"], source))
    in_views = own.filter(pc.invert(pc.is_in(own["status"], value_set=pa.array(REMOVED_STATUSES))))
    statuses = {each["values"]: each["counts"] for each in own["status"].value_counts().to_pylist()}
    return SourceProgress(
        done=statuses.get("done", 0),
        quarantined=statuses.get("quarantined", 0),
        vanished=statuses.get("vanished", 0),
        rows=_sum(in_views["rows_read"]) + _sum(queue["row_offset"]),
        bytes=_sum(own["bytes_read"]),
        changes_ignored=num_ignored(own, queue),
    )


def _is_of(sources: Sequence[str], rows: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(rows["source"], value_set=pa.array(sources, pa.string()))


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def _file_keys(rows: pa.Table) -> list[FileKey]:
    columns = [rows[name].to_pylist() for name in ("source", "path", "version")]
    return list(zip(*columns, strict=True))


def _gone(ledger: pa.Table, queue: pa.Table) -> pa.Table:
    """The files that are not there any more; what is in the queue is back."""
    gone = ledger.filter(pc.is_valid(ledger["gone_epoch"]))
    return gone.filter(pc.invert(pc.is_in(gone["key"], value_set=queue["key"].combine_chunks())))


def _seen(
    rows: pa.Table, definition: PipelineDefinition, vanished: Iterable[FileKey], gone: pa.Table
) -> dict[str, SeenIndex]:
    """What was handed on, by source; a version that had vanished before a row of it was read is new if it is back.

    Of the files that are `gone` nobody needs to be told again.
    """
    indexes = {}
    for source in definition.sources:
        own = rows.filter(pc.equal(rows["source"], source.name))
        indexes[source.name] = SeenIndex.of_columns(own["key"], own["version"])
    for name, path, version in vanished:
        indexes[name].forget(path_fingerprint(name, path), version)
    for name, index in indexes.items():
        own = gone.filter(pc.equal(gone["source"], name))
        keys = path_fingerprints(name, own["path"].combine_chunks())
        versions = index.lookup(keys)
        index.set_gone(
            [key for key, seen, own in zip(keys, versions, own["version"].to_pylist(), strict=True) if seen == own]
        )
    return indexes


def _reading_order(orders: Mapping[str, str], progress: FileProgress) -> tuple[bool, int, datetime, str]:
    is_new, listed_epoch, last_modified, path = progress.reading_order()
    order = orders.get(progress.file.source)
    return (is_new, listed_epoch, last_modified, path) if order is None else (is_new, 0, *place(progress.file, order))


def _progress(row: Mapping[str, object]) -> FileProgress:
    file = FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__})  # type: ignore[arg-type]
    return FileProgress(
        file,
        listed_epoch=row["listed_epoch"],  # type: ignore[arg-type]
        first_epoch=row["first_epoch"],  # type: ignore[arg-type]
        row_offset=row["row_offset"],  # type: ignore[arg-type]
        rows_bad=row["rows_bad"] or 0,  # type: ignore[arg-type]
        replaces=bool(row["replaces"]),
        anchor=Offset(0, row["anchor_row"] or 0, row["anchor_byte"] or 0),  # type: ignore[arg-type]
        attempts=row["attempts"],  # type: ignore[arg-type]
        requests=row["requests"],  # type: ignore[arg-type]
        bytes_read=row["bytes_read"],  # type: ignore[arg-type]
        stored=True,
    )
