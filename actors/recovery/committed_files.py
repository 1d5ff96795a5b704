"""The files of a pipeline as of the last commit: handed on, unfinished, finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, FileVersion, PathKey, place
from actors.listing.seen_index import SeenIndex
from actors.protocol.reports import SourceProgress
from actors.rows import Offset
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import orders
from state.store.store import StateStore
from state.tables.fingerprint import path_fingerprint, path_fingerprints
from state.tables.tables import REMOVED_STATUSES


@dataclass(frozen=True, kw_only=True)
class CommittedFiles:
    """The files that were handed on, with their progress.

    Args:
        seen: source → the versions that were handed on.
        unfinished: the files of the queue, in the order of reading.
        without_rows: versions in the ledger of which no row was ingested.
        held: objects of which a version was to replace others, and could not be read.
        ingested: the sources of which rows were ingested.
        finished: source → its counts in the ledger and the queue.
    """

    seen: Mapping[str, SeenIndex]
    unfinished: Sequence[FileProgress]
    without_rows: Sequence[FileKey]
    held: frozenset[PathKey]
    ingested: frozenset[str]
    finished: Mapping[str, SourceProgress]

    @classmethod
    def read(cls, store: StateStore, definition: PipelineDefinition) -> CommittedFiles:
        """Reads the tables of a store; changes nothing.

        Args:
            store: a handle on the store.
            definition: the pipeline; only its sources count.

        Raises:
            StorageError: the store cannot be read.
        """
        queue, ledger = store.scan("queue"), store.scan("ledger")
        declared = [source.name for source in definition.sources]
        # Filters by a mask: each filter by an expression would start a query engine of its own.
        # A version that had vanished and was handed on again is in the queue; its old row in the ledger does not count.
        queued = set(_file_keys(queue))
        has_no_rows = pc.and_(_is_of(declared, ledger), pc.equal(ledger["rows_read"], 0))
        without_rows = [key for key in _file_keys(ledger.filter(has_no_rows)) if key not in queued]
        vanished = set(_file_keys(ledger.filter(pc.equal(ledger["status"], "vanished")))).intersection(without_rows)
        could_not = pc.and_(has_no_rows, pc.fill_null(ledger["replaces"], False))
        held = frozenset(key[:2] for key in _file_keys(ledger.filter(could_not)))
        ingested = {*ledger["source"].filter(pc.greater(ledger["rows_read"], 0)).unique().to_pylist()}
        ingested |= {*queue["source"].filter(pc.greater(queue["row_offset"], 0)).unique().to_pylist()}
        return cls(
            seen=_seen(store.scan("seen"), definition, vanished, _gone(ledger, queue)),
            unfinished=sorted(
                map(_progress, queue.filter(_is_of(declared, queue)).to_pylist()),
                key=partial(_reading_order, orders(definition.sources)),
            ),
            without_rows=without_rows,
            held=held,
            ingested=frozenset(ingested),
            finished={source.name: _finished(source.name, ledger, queue) for source in definition.sources},
        )

    @classmethod
    def nothing(cls, definition: PipelineDefinition) -> CommittedFiles:
        """The files of a root without a store: none."""
        return cls(
            seen={source.name: SeenIndex() for source in definition.sources},
            unfinished=(),
            without_rows=(),
            held=frozenset(),
            ingested=frozenset(),
            finished={},
        )


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
    """Ledger rows of the files that are not there any more; those in the queue are back."""
    gone = ledger.filter(pc.is_valid(ledger["gone_epoch"]))
    return gone.filter(pc.invert(pc.is_in(gone["key"], value_set=queue["key"].combine_chunks())))


def _seen(
    rows: pa.Table, definition: PipelineDefinition, vanished: Iterable[FileKey], gone: pa.Table
) -> dict[str, SeenIndex]:
    """Source → the versions that were handed on.

    Args:
        rows: the table `seen`.
        definition: the pipeline.
        vanished: versions that had vanished before a row of them was read: they are new if they are back.
        gone: ledger rows of files that are known to be gone: they are not reported again.
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


def num_ignored(ledger: pa.Table, queue: pa.Table) -> int:
    """The number of files of one source that have changed, and were not read again.

    Args:
        ledger: its rows of the source.
        queue: its rows of the source.
    """
    noted = ledger.filter(pc.is_valid(ledger["changed_epoch"]))
    if not noted.num_rows:
        return 0
    latest: dict[str, int] = {}
    for table in (ledger, queue):
        for path, listed in zip(table["path"].to_pylist(), table["listed_epoch"].to_pylist(), strict=True):
            latest[path] = max(listed, latest.get(path, 0))
    rows = zip(*(noted[name].to_pylist() for name in ("path", "changed_epoch")), strict=True)
    return sum(latest[path] < changed for path, changed in rows)
