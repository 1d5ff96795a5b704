"""The files of a pipeline as of the last commit: handed on, unfinished, finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from actors.fetching.file_progress import FileProgress
from actors.fetching.version_set import VersionSet
from actors.files import FileKey, FileVersion, PathKey, ReadingOrder, place
from actors.protocol.counters import SourceProgress
from actors.recovery.seen_names import SeenNames
from actors.rows import Offset
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import orders
from state.store.store import StateStore
from state.tables.keys import encode_key
from state.tables.row_selection import Clue
from state.tables.tables import REMOVED_STATUSES

_FILE_KEY = ("source", "path", "version")


@dataclass(frozen=True, kw_only=True)
class CommittedFiles:
    """The files that were handed on, with their progress.

    Args:
        seen: the versions that were handed on.
        unfinished: the files of the queue, in the order of reading.
        without_rows: versions in the ledger of which no row was ingested.
        held: objects of which a version was to replace others, and could not be read.
        ingested: the sources of which rows were ingested.
        finished: source → its counts in the ledger and the queue.
    """

    seen: SeenNames
    unfinished: Sequence[FileProgress]
    without_rows: VersionSet
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
        queue = store.scan("queue")
        ordered = orders(definition.sources)
        declared = [source.name for source in definition.sources]
        queued = queue["key"].combine_chunks()
        fields = [*_FILE_KEY, "status", "replaces"]
        has_no_rows = store.scan("ledger", where=[Clue("rows_read", equals=0)], fields=fields)
        has_no_rows = has_no_rows.filter(_is_of(declared, has_no_rows))
        # A version that had vanished and was handed on again is in the queue; its old row in the ledger does not count.
        without_rows = has_no_rows.filter(pc.invert(pc.is_in(has_no_rows["key"], value_set=queued)))
        absent = without_rows.filter(pc.equal(without_rows["status"], "vanished"))
        removing = frozenset(source.name for source in definition.sources if source.policy.removes)
        held = _file_keys(has_no_rows.filter(pc.fill_null(has_no_rows["replaces"], False)))
        counts = store.count_ledger()
        ingested = {*counts["source"].filter(pc.greater(counts["rows_read"], 0)).to_pylist()}
        ingested |= {*queue["source"].filter(pc.greater(queue["row_offset"], 0)).unique().to_pylist()}
        ignored = num_ignored(store)
        return cls(
            seen=SeenNames(
                store,
                declared,
                _file_keys(absent),
                _with_earlier_rows(store, absent, removing),
                queued,
                removing,
            ),
            unfinished=sorted(
                map(_progress, queue.filter(_is_of(declared, queue)).to_pylist()),
                key=partial(_reading_order, ordered),
            ),
            without_rows=VersionSet.of_ledger(ordered, without_rows),
            held=frozenset(key[:2] for key in held),
            ingested=frozenset(ingested),
            finished={name: _finished(name, counts, queue, ignored.get(name, 0)) for name in declared},
        )

    @classmethod
    def nothing(cls, definition: PipelineDefinition) -> CommittedFiles:
        """The files of a root without a store: none."""
        return cls(
            seen=SeenNames(None, [source.name for source in definition.sources]),
            unfinished=(),
            without_rows=VersionSet(orders(definition.sources)),
            held=frozenset(),
            ingested=frozenset(),
            finished={},
        )


def _with_earlier_rows(store: StateStore, absent: pa.Table, removing: Collection[str]) -> list[FileKey]:
    """The vanished versions that were to replace versions whose rows are in the views."""
    replacing = absent.filter(pc.fill_null(absent["replaces"], False))
    keys = [key for key in _file_keys(replacing) if key[0] in removing]
    if not keys:
        return []
    prefixes = {encode_key(*key[:2]) for key in keys}
    rows = store.scan("ledger", prefixes=prefixes, fields=["source", "path", "status", "rows_read"]).to_pylist()
    held = {(row["source"], row["path"]) for row in rows if row["rows_read"] and row["status"] not in REMOVED_STATUSES}
    return [key for key in keys if key[:2] in held]


def _finished(source: str, counts: pa.Table, queue: pa.Table, changes_ignored: int) -> SourceProgress:
    own = {row["status"]: row for row in counts.to_pylist() if row["source"] == source}
    queue = queue.filter(pc.equal(queue["source"], source))
    files = {status: row["files"] for status, row in own.items()}
    kept = [row for status, row in own.items() if status not in REMOVED_STATUSES]
    # An offset counts the bad records before it, too.
    bad = sum(row["rows_bad"] or 0 for row in kept) + int(pc.sum(queue["rows_bad"]).as_py() or 0)
    records = sum(row["rows_read"] for row in kept) + int(pc.sum(queue["row_offset"]).as_py() or 0)
    return SourceProgress(
        done=files.get("done", 0),
        quarantined=files.get("quarantined", 0),
        vanished=files.get("vanished", 0),
        rows=records - bad,
        rows_bad=bad,
        bytes=sum(row["bytes_read"] for row in own.values()),
        changes_ignored=changes_ignored,
    )


def _is_of(sources: Sequence[str], rows: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(rows["source"], value_set=pa.array(sources, pa.string()))


def _file_keys(rows: pa.Table) -> list[FileKey]:
    columns = [rows[name].to_pylist() for name in _FILE_KEY]
    return list(zip(*columns, strict=True))


def _reading_order(orders: Mapping[str, ReadingOrder], progress: FileProgress) -> tuple[bool, int, datetime, str]:
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


def num_ignored(store: StateStore, state_version: int | None = None) -> dict[str, int]:
    """Source → the number of its files that have changed, and were not read again.

    Args:
        store: a handle on the store.
        state_version: an older version of the store; None for the handle's.
    """
    noted = store.scan(
        "ledger",
        where=[Clue("changed_epoch", is_set=True)],
        fields=["source", "path", "changed_epoch"],
        state_version=state_version,
    )
    changes = [noted[name].to_pylist() for name in ("source", "path", "changed_epoch")]
    prefixes = {encode_key(source, path) for source, path in zip(*changes[:2], strict=True)}
    if not prefixes:
        return {}
    latest: dict[PathKey, int] = {}
    fields = ["source", "path", "listed_epoch"]
    for table in ("ledger", "queue"):
        rows = store.scan(table, prefixes=prefixes, fields=fields, state_version=state_version)
        for source, path, listed in zip(*(rows[name].to_pylist() for name in fields), strict=True):
            latest[source, path] = max(listed, latest.get((source, path), 0))
    ignored = [source for source, path, changed in zip(*changes, strict=True) if latest[source, path] < changed]
    return dict(Counter(ignored))
