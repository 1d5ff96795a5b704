"""Program of a worker that answers `Snapshot.sql`: one query over a snapshot at a time, in a new DuckDB each."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from slackwater.confinement.confined_duckdb import confine, unconfined_duckdb
from slackwater.confinement.duckdb_error import duckdb_reason
from slackwater.confinement.query_parser import QueryParser, RefusedQueryError
from slackwater.confinement.request_loop import arrow_stream, serve_requests
from slackwater.reading.file_relation import FileRelation
from slackwater.reading.named_views import named
from slackwater.reading.relation import Relation
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.snapshot_sql import SnapshotQuery, too_large
from slackwater.reading.view_reader import ViewReader
from slackwater.reading.view_relation import ViewRelation
from state.allocation import return_memory, share_arenas
from state.clock import SystemClock
from state.errors import UsageError
from state.lance.lance_store import LanceStateStore

_ROWS_AT_ONCE = 10_000
_FILES = "files"
_IDLE_S = 60.0


def run(connection: socket.socket) -> None:
    """Answers queries until the front closes the socket, or none has come for a minute."""
    share_arenas()
    serve_requests(connection, _Queries(), _IDLE_S)


class _Queries:
    """The queries of one front."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Any = None

    def answer(self, body: bytes) -> Iterator[bytes]:
        query: SnapshotQuery = pickle.loads(body)  # from the front, which is trusted
        store = LanceStateStore.open(query.root, SystemClock(), read_only=True)
        snapshot = Snapshot(query.root, store, query.record)
        views = {name: ViewReader(query.root, query.record.views[name]) for name in snapshot.views}
        place = f"epoch {snapshot.epoch} of {query.root}"
        with unconfined_duckdb(query.max_memory_bytes) as connection, self._interruptible(connection):
            schema, batches = computed(
                connection, query.text, views, snapshot.file_relation(), place, query.max_memory_bytes
            )
            yield from arrow_stream(schema, batches)
        return_memory()

    def interrupt(self) -> None:
        with self._lock:
            if self._running is not None:
                self._running.interrupt()

    @contextmanager
    def _interruptible(self, connection: Any) -> Iterator[None]:
        with self._lock:
            self._running = connection
        try:
            yield
        finally:
            with self._lock:
                self._running = None


def computed(
    connection: Any,
    text: str,
    views: Mapping[str, ViewReader],
    files: FileRelation,
    place: str,
    max_memory_bytes: int | None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of one SELECT, as they are computed.

    Args:
        connection: a DuckDB that nothing else uses; it is confined here.
        views: the views that it may name.
        place: the epoch and the root, for messages.
        max_memory_bytes: the largest result.

    Raises:
        UsageError: the query is refused, or fails; the rows raise it, too.
        EpochExpiredError, StorageError: a view or the ledger cannot be read.
    """
    relations: list[Relation] = []
    with _errors(relations, views, place, max_memory_bytes):
        confine(connection)
        query = QueryParser(connection).query(text)
        for name in named(query, views):
            relations.append(ViewRelation(views[name]))
            connection.register(name, relations[-1])
        if named(query, [_FILES]) and _FILES not in {name.casefold() for name in views}:
            relations.append(files)
            connection.register(_FILES, files)
        rows = connection.sql(query.text).to_arrow_reader(_ROWS_AT_ONCE)

    def batches() -> Iterator[pa.RecordBatch]:
        nbytes = 0
        with _errors(relations, views, place, max_memory_bytes):
            for batch in rows:
                nbytes += batch.nbytes
                if max_memory_bytes is not None and nbytes > max_memory_bytes:
                    raise too_large(max_memory_bytes)
                yield batch

    return rows.schema, batches()


@contextmanager
def _errors(
    relations: list[Relation], views: Mapping[str, ViewReader], place: str, max_memory_bytes: int | None
) -> Iterator[None]:
    import duckdb

    try:
        yield
    except RefusedQueryError as error:
        known = f"; the views at {place} are: {', '.join(views) or 'none'}" if error.reason == "syntax" else ""
        raise UsageError(f"SQL over views is one SELECT: {error}{known}") from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if isinstance(error, duckdb.OutOfMemoryException):
            raise too_large(max_memory_bytes) from None
        failure = next((each.failure for each in relations if each.failure is not None), None)
        if failure is not None:
            raise failure from error
        raise UsageError(
            f"{duckdb_reason(str(error))}; the views at {place} are: {', '.join(views) or 'none'}"
        ) from None
