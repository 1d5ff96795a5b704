"""Reads what is committed, takes the root over, and fences whoever wrote before.  A cold start is the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from actors.catalog_changes import CatalogChanges
from actors.file_progress import FileKey, FileProgress
from actors.messages import FileVersion
from actors.pipeline_definition import PipelineDefinition
from actors.seen_index import SeenIndex
from state.catalog import Catalog
from state.clock import Clock
from state.errors import StoreNotFoundError
from state.fingerprint import path_fingerprint
from state.lance_store import LanceStateStore
from state.location import Location
from state.records import ViewVersion
from state.store import StateStore
from state.view_dataset import restore


@dataclass(frozen=True)
class RecoveredState:
    """What an attempt begins with."""

    store: StateStore
    catalog: CatalogChanges
    views: Mapping[str, ViewVersion]
    seen: Mapping[str, SeenIndex]
    unfinished: Sequence[FileProgress]
    without_rows: Sequence[FileKey]
    ingested: frozenset[str]


def check(definition: PipelineDefinition, clock: Clock) -> Mapping[str, pa.Schema]:
    """Compares a declaration with the root, without changing anything.

    Returns:
        The schemas of the sources, as far as they are decided or declared.

    Raises:
        UsageError: the root and the declaration do not go together.
        StorageError: the root cannot be read.
    """
    committed, epoch = Catalog(), 0
    try:
        store = LanceStateStore.open(definition.root, clock, read_only=True)
        committed, epoch = Catalog.of(store.scan("catalog")), store.head.epoch
    except StoreNotFoundError:
        pass
    changes = CatalogChanges(committed)
    changes.declare(definition, epoch)
    return changes.schemas


def is_fenced(root: Location, term: int, clock: Clock) -> bool:
    """Whether another process has taken the root over since `term`."""
    return LanceStateStore.open(root, clock, read_only=True).head.term != term


def recover(definition: PipelineDefinition, clock: Clock) -> RecoveredState:
    """Opens the store of a pipeline as its only writer.

    The declaration is checked first: a pipeline that does not belong to the root fences nobody.

    Raises:
        UsageError: the root and the declaration do not go together.
        FencedError: another process took the root over at the same moment.
        StorageError: the root cannot be read or written.
    """
    store = LanceStateStore.create_or_open(definition.root, clock)
    catalog = CatalogChanges(Catalog.of(store.scan("catalog")))
    catalog.declare(definition, store.head.epoch)
    head = store.take_over()
    views = {name: restore(definition.root, view, head.term) for name, view in head.views.items()}
    queue, ledger = store.scan("queue"), store.scan("ledger")
    is_declared = pc.field("source").isin([source.name for source in definition.sources])
    # A version that had vanished and was handed on again is in the queue; its old row in the ledger says nothing more.
    queued = set(_file_keys(queue))
    rows_read, has_vanished = pc.field("rows_read"), pc.field("status") == "vanished"
    without_rows = [key for key in _file_keys(ledger.filter(is_declared & (rows_read == 0))) if key not in queued]
    vanished = set(_file_keys(ledger.filter(has_vanished))).intersection(without_rows)
    ingested = {*ledger.filter(rows_read > 0)["source"].unique().to_pylist()}
    ingested |= {*queue.filter(pc.field("row_offset") > 0)["source"].unique().to_pylist()}
    return RecoveredState(
        store=store,
        catalog=catalog,
        views=views,
        seen=_seen(store.scan("seen"), definition, vanished),
        unfinished=[_progress(row) for row in queue.filter(is_declared).to_pylist()],
        without_rows=without_rows,
        ingested=frozenset(ingested),
    )


def _file_keys(rows: pa.Table) -> list[FileKey]:
    columns = [rows[name].to_pylist() for name in ("source", "path", "version")]
    return list(zip(*columns, strict=True))


def _seen(rows: pa.Table, definition: PipelineDefinition, vanished: Iterable[FileKey]) -> dict[str, SeenIndex]:
    """What was handed on, by source; a version that had vanished before a row of it was read is new if it is back."""
    indexes = {}
    for source in definition.sources:
        own = rows.filter(pc.field("source") == source.name)
        indexes[source.name] = SeenIndex(own["key"].to_pylist(), own["version"].to_pylist())
    for name, path, version in vanished:
        indexes[name].forget(path_fingerprint(name, path), version)
    return indexes


def _progress(row: Mapping[str, object]) -> FileProgress:
    file = FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__})  # type: ignore[arg-type]
    return FileProgress(
        file,
        listed_epoch=row["listed_epoch"],  # type: ignore[arg-type]
        first_epoch=row["first_epoch"],  # type: ignore[arg-type]
        row_offset=row["row_offset"],  # type: ignore[arg-type]
        attempts=0,
        requests=row["requests"],  # type: ignore[arg-type]
        bytes_read=row["bytes_read"],  # type: ignore[arg-type]
        stored=True,
    )
