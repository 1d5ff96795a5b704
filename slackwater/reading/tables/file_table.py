"""Table of files: the ledger and the queue of one version of the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.tables.page import require_limit
from state.errors import NotFoundError, UsageError
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.row_selection import Clue, after_prefix
from state.tables.tables import TABLES, LedgerStatus

FileStatus: TypeAlias = Literal["waiting", "reading"] | LedgerStatus

STATUSES: tuple[FileStatus, ...] = ("waiting", "reading", *get_args(LedgerStatus))
FILE_COLUMNS = (
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
    "deleted_epoch",
    "removed_epoch",
    "bytes_read",
    "requests",
    "attempts",
    "error",
)
VERSION_COLUMNS = (*FILE_COLUMNS, "version")
"""The columns of the public table, with the fingerprint of the version."""
FILE_SCHEMA = pa.schema([TABLES["ledger"].field(name) for name in FILE_COLUMNS])
_UNFINISHED = ("waiting", "reading")


def source_url(definition: str) -> str:
    """The URL of a source, from its definition in the catalog."""
    return str(json.loads(definition)["url"])


def read_files(
    store: StateStore,
    state_version: int | None,
    *,
    columns: Sequence[str] = FILE_COLUMNS,
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
        # The queue is bounded: all keys of the ledger would not fit into one array.
        known = ledger["key"].filter(pc.is_in(ledger["key"], value_set=queue["key"].combine_chunks()))
        is_known = pc.is_in(queue["key"], value_set=known.combine_chunks())
        queue = queue.filter(pc.invert(pc.and_(replaces, is_known)))
        ledger = ledger.filter(pc.invert(pc.is_in(ledger["key"], value_set=queue["key"].combine_chunks())))
    return pa.concat_tables([ledger.select(["key", *columns]), _as_files(queue, columns)])


def file_table(
    store: StateStore,
    catalog: Catalog,
    state_version: int | None,
    *,
    source: str | None,
    status: FileStatus | None,
    where: pc.Expression | None = None,
    limit: int | None = None,
) -> pa.Table:
    """The rows of `file_batches`, ordered by source, path and epoch.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: the status, the condition or the limit is not valid.
    """
    batches = file_batches(store, catalog, state_version, source=source, status=status, where=where, limit=limit)
    files = pa.Table.from_batches(batches, FILE_SCHEMA)
    return files.sort_by([("source", "ascending"), ("path", "ascending"), ("listed_epoch", "ascending")])


def file_batches(
    store: StateStore,
    catalog: Catalog,
    state_version: int | None = None,
    *,
    source: str | None = None,
    status: FileStatus | None = None,
    where: pc.Expression | None = None,
    limit: int | None = None,
    columns: Sequence[str] = FILE_COLUMNS,
) -> Iterator[pa.RecordBatch]:
    """The public table of files, with whole URLs, ordered by source and path, part by part.

    The queue is read first, and then the ledger in slices, each when it is needed.  Of the ledger a rare status reads
    only its rows, and an unfinished one nothing.

    Args:
        store: a handle on the store.
        state_version: an older version of the store; None for the handle's.
        source: only files of this source.
        status: only files of this status.
        where: a condition on the public columns.
        limit: the largest number of rows; no slice behind them is read.
        columns: the columns of the result; without `where`, no others are read.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: the status, the condition or the limit is not valid.
    """
    require_source(source, catalog)
    require_status(status)
    if limit is not None:
        require_limit(limit)
    if where is not None:
        _filtered(FILE_SCHEMA.empty_table(), where)
    start = None if source is None else encode_key(source)
    within = _Within(start, None if start is None else after_prefix(start), state_version)
    read = FILE_COLUMNS if where is not None else tuple(dict.fromkeys(["source", "path", "status", *columns]))
    return _limited(_parts(store, catalog, within, read, status, where, columns), limit)


def keyed_files(
    store: StateStore, *, source: str | None, status: FileStatus | None, after: bytes | None
) -> Iterator[pa.Table]:
    """The rows of `read_files` in the order of their keys, slice by slice.

    Args:
        store: a handle on the store.
        source: only files of this source.
        status: only files of this status.
        after: only files behind this key.
    """
    first = b"" if source is None else encode_key(source)
    start = first if after is None else max(first, after + b"\x00")
    end = None if source is None else after_prefix(first)
    return _merged(store, _Within(start, end, None), FILE_COLUMNS, status)


@dataclass(frozen=True)
class _Within:
    """A range of keys at a version of the store, as arguments of `scan` and `slices`."""

    start: bytes | None
    end: bytes | None
    state_version: int | None


def _parts(
    store: StateStore,
    catalog: Catalog,
    within: _Within,
    read: Sequence[str],
    status: FileStatus | None,
    where: pc.Expression | None,
    columns: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    for files in _merged(store, within, read, status):
        shown = files.set_column(files.column_names.index("path"), "path", whole_urls(files, catalog))
        shown = shown if where is None else _filtered(shown, where)
        yield from shown.select(list(columns)).to_batches()


def _merged(
    store: StateStore, within: _Within, columns: Sequence[str], status: FileStatus | None
) -> Iterator[pa.Table]:
    """The rows of `read_files` with a status, in the order of their keys, slice by slice."""
    queue = store.scan("queue", fields=_of_queue(columns), **vars(within))
    again = queue.filter(pc.fill_null(queue["replaces"], False))["key"].to_pylist()
    known = store.scan("ledger", keys=again, fields=["status"], state_version=within.state_version)["key"]
    queue = queue.filter(pc.invert(pc.is_in(queue["key"], value_set=known.combine_chunks()))).sort_by("key")
    queued = queue["key"].combine_chunks()
    waiting = _of_status(_as_files(queue, columns), status)
    clues = [] if status is None else [Clue("status", equals=status)]
    has_some = status not in _UNFINISHED and (status is None or _is_counted(store, status, within.state_version))
    slices = store.slices("ledger", where=clues, fields=columns, **vars(within)) if has_some else ()
    for ledger in slices:
        if not ledger.num_rows:
            continue
        until = pc.less_equal(waiting["key"], ledger["key"][-1])
        finished = ledger.filter(pc.invert(pc.is_in(ledger["key"], value_set=queued))).select(["key", *columns])
        yield pa.concat_tables([finished, waiting.filter(until)]).sort_by("key")
        waiting = waiting.filter(pc.invert(until))
    yield waiting


def _is_counted(store: StateStore, status: FileStatus, state_version: int | None) -> bool:
    """True if the ledger has a file with a status: its counts say so without a reading of all files."""
    return status in store.count_ledger(state_version)["status"].to_pylist()


def _of_status(files: pa.Table, status: FileStatus | None) -> pa.Table:
    return files if status is None else files.filter(pc.equal(files["status"], status))


def _filtered(files: pa.Table, where: pc.Expression) -> pa.Table:
    """The rows that fit a condition.

    Raises:
        UsageError: the condition is not one on columns of the table.
    """
    try:
        return files.filter(where)
    except (pa.ArrowException, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"where={where} is not a condition on files: {reason}; give an expression as pc.field('rows_bad') > 0 "
            f"(pyarrow.compute); the columns are: {', '.join(FILE_COLUMNS)}"
        ) from None


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The batches up to a number of rows."""
    missing = limit
    for batch in batches:
        if missing is None:
            yield batch
            continue
        yield batch.slice(0, missing)
        missing -= min(missing, batch.num_rows)
        if not missing:
            return


def require_source(source: str | None, catalog: Catalog) -> None:
    """Refuses the name of an unknown source.

    Raises:
        NotFoundError: the message lists the sources.
    """
    if source is not None and source not in catalog.sources:
        raise NotFoundError(f"there is no source {source!r}; the sources are: {', '.join(catalog.sources) or 'none'}")


def require_status(status: str | None) -> FileStatus | None:
    """Returns the status, if it is one of a file.

    Raises:
        UsageError: it is not valid.
    """
    if status is None:
        return None
    for known in STATUSES:
        if status == known:
            return known
    raise UsageError(f"{status!r} is not a valid status of a file; give one of {', '.join(STATUSES)}")


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
