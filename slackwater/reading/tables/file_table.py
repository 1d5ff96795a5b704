"""Table of files: the ledger and the queue of one version of the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.recovery.committed_files import num_ignored
from state.errors import NotFoundError, UsageError
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.tables import REMOVED_STATUSES, TABLES

STATUSES = ("waiting", "reading", "done", "quarantined", "vanished", *REMOVED_STATUSES)
_COLUMNS = (
    "source",
    "path",
    "etag",
    "size",
    "last_modified",
    "status",
    "rows_read",
    "rows_bad",
    "listed_epoch",
    "first_epoch",
    "done_epoch",
    "changed_epoch",
    "gone_epoch",
    "removed_epoch",
    "bytes_read",
    "requests",
    "attempts",
    "error",
)


def source_url(definition: str) -> str:
    """The URL of a source, from its definition in the catalog."""
    return str(json.loads(definition)["url"])


def read_files(
    store: StateStore,
    state_version: int | None,
    *,
    columns: Sequence[str] = _COLUMNS,
    start: bytes | None = None,
    end: bytes | None = None,
    keys: Collection[bytes] | None = None,
) -> pa.Table:
    """Every file version of ledger and queue, with its key, and its path relative to its source.

    A version that is queued again counts as queued.  A version that is read again to replace its own rows keeps its
    status until then.

    Args:
        store: a handle on the store.
        state_version: an older version of the store; None for the handle's.
        columns: columns of the public table.
        start: the smallest key (inclusive).
        end: the largest key (exclusive).
        keys: the keys to read; None for all.
    """
    asked: Mapping[str, Any] = {"start": start, "end": end, "keys": keys, "state_version": state_version}
    ledger = store.scan("ledger", fields=columns, **asked)
    queue = store.scan("queue", fields=_of_queue(columns), **asked)
    if queue.num_rows:
        replaces = pc.fill_null(queue["replaces"], False)
        is_known = pc.is_in(queue["key"], value_set=ledger["key"].combine_chunks())
        queue = queue.filter(pc.invert(pc.and_(replaces, is_known)))
        ledger = ledger.filter(pc.invert(pc.is_in(ledger["key"], value_set=queue["key"].combine_chunks())))
    return pa.concat_tables([ledger.select(["key", *columns]), _as_files(queue, columns)])


def ignored_changes(store: StateStore) -> dict[str, int]:
    """Source → the number of its files that changed after they were read, and were not read again."""
    changes = store.scan("ledger", fields=["source", "changed_epoch"])
    sources = changes["source"].filter(pc.is_valid(changes["changed_epoch"])).unique().to_pylist()
    if not sources:
        return {}
    fields = ["source", "path", "listed_epoch"]
    ledger, queue = store.scan("ledger", fields=[*fields, "changed_epoch"]), store.scan("queue", fields=fields)
    return {
        source: num_ignored(*(each.filter(pc.equal(each["source"], source)) for each in (ledger, queue)))
        for source in sources
    }


def file_table(
    store: StateStore, catalog: Catalog, state_version: int | None, *, source: str | None, status: str | None
) -> pa.Table:
    """The public table: `read_files` with whole URLs, of one source or status, ordered by source, path and epoch.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: the status is not valid.
    """
    require_source(source, catalog)
    if status is not None and status not in STATUSES:
        raise UsageError(f"{status!r} is not a valid status of a file; give one of {', '.join(STATUSES)}")
    files = read_files(store, state_version).drop_columns("key")
    if source is not None:
        files = files.filter(pc.equal(files["source"], source))
    if status is not None:
        files = files.filter(pc.equal(files["status"], status))
    files = files.sort_by([("source", "ascending"), ("path", "ascending"), ("listed_epoch", "ascending")])
    return files.set_column(1, "path", whole_urls(files, catalog))


def require_source(source: str | None, catalog: Catalog) -> None:
    """Refuses the name of an unknown source.

    Raises:
        NotFoundError: the message lists the sources.
    """
    if source is not None and source not in catalog.sources:
        raise NotFoundError(f"there is no source {source!r}; the sources are: {', '.join(catalog.sources) or 'none'}")


def whole_urls(files: pa.Table, catalog: Catalog) -> pa.ChunkedArray:
    """The URL of each row, from its columns `source` and `path`."""
    names = pa.array(list(catalog.sources), pa.string())
    urls = pa.array([source_url(source.definition) for source in catalog.sources.values()], pa.string())
    prefixes = urls.take(pc.index_in(files["source"].combine_chunks(), value_set=names))
    return pc.binary_join_element_wise(prefixes, files["path"].combine_chunks(), "/")


def _of_queue(columns: Sequence[str]) -> list[str]:
    """The fields of the queue that these columns, and the status, are made of."""
    known = [name for name in columns if name in TABLES["queue"].names]
    return [*known, "row_offset", "replaces"]


def _as_files(queue: pa.Table, columns: Sequence[str]) -> pa.Table:
    reading = pc.greater(pc.coalesce(queue["row_offset"], 0), 0)
    known = {
        "status": pc.if_else(reading, "reading", "waiting"),
        "rows_read": pc.coalesce(queue["row_offset"], 0),
    }
    types = TABLES["ledger"]
    values = {"key": queue["key"]}
    for name in columns:
        if name in known:
            values[name] = known[name]
        elif name in queue.column_names:
            values[name] = queue[name]
        else:
            values[name] = pa.nulls(queue.num_rows, types.field(name).type)
    return pa.table(values, schema=pa.schema([("key", pa.binary()), *(types.field(name) for name in columns)]))
