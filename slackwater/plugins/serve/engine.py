"""Engine of one session: a DuckDB of its own, without files, network and tables; an epoch is a catalog of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from slackwater.confinement.confined_duckdb import confine, unconfined_duckdb
from slackwater.plugins.serve.sql_error import CANCELLED, OUT_OF_MEMORY, SqlError, error_of_duckdb
from slackwater.reading.file_history import HISTORY_EPOCHS, FileHistory
from slackwater.reading.relation import Relation

SCHEMA = "public"
WHY = "slackwater_why"
_ROWS_AT_ONCE = 2_048
_HISTORY = {
    "path": "VARCHAR", "source": "VARCHAR", "status": "VARCHAR", "text": "VARCHAR", "rows_bad": "BIGINT",
    "first_bad": "VARCHAR",
}  # fmt: skip


class Interruption:
    """The end of a statement from another thread: by a client's wish, or by the limit of time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Any = None
        self._reason: str | None = None
        self._is_final = False

    @contextmanager
    def of(self, connection: Any) -> Iterator[None]:
        """While DuckDB computes in this connection, an interruption ends it.

        Raises:
            SqlError: it was interrupted.
        """
        with self._lock:
            if self._is_final:
                raise SqlError(CANCELLED, str(self._reason))
            self._running, self._reason = connection, None
        try:
            yield
        except Exception:
            if self._reason is not None:
                raise SqlError(CANCELLED, self._reason) from None
            raise
        finally:
            with self._lock:
                self._running = None

    def interrupt(self, reason: str) -> None:
        """Ends the running statement, if any."""
        with self._lock:
            if self._running is not None:
                self._reason = reason
                self._running.interrupt()

    def insist(self) -> None:
        """Interrupts again: DuckDB forgets an interruption that comes just before it begins."""
        with self._lock:
            if self._running is not None and self._reason is not None:
                self._running.interrupt()

    def stop(self, reason: str) -> None:
        """Ends the running statement and all later statements."""
        with self._lock:
            self._reason, self._is_final = reason, True
            if self._running is not None:
                self._running.interrupt()


class Engine:
    """A confined DuckDB for one session: nothing that its statements leave behind is seen by another session.

    Args:
        max_memory_bytes: the largest memory of its statements, as DuckDB counts it.

    Raises:
        UsageError: DuckDB is not installed.
    """

    def __init__(self, max_memory_bytes: int) -> None:
        self._connection = unconfined_duckdb(max_memory_bytes)
        self._histories: dict[str, Callable[[str], FileHistory]] = {}
        # As text: `struct_type` would make DuckDB's default database of the process, with nine threads and unconfined.
        fields = ", ".join(f"{name} {_HISTORY.get(name, 'BIGINT')}" for name in (*_HISTORY, *HISTORY_EPOCHS))
        self._connection.create_function(
            "slackwater_file_history", self._file_history, ["VARCHAR", "VARCHAR"], f"STRUCT({fields})"
        )
        confine(self._connection)

    def attach(self, name: str, why: Callable[[str], FileHistory]) -> None:
        """A new catalog without relations.

        Args:
            why: returns the history of an object; the function `slackwater_why` of SQL calls it.
        """
        self._histories[name] = why
        self._connection.execute(f"ATTACH ':memory:' AS {name}; CREATE SCHEMA {name}.{SCHEMA}")
        self._connection.execute(
            f"CREATE MACRO {name}.{SCHEMA}.{WHY}(object) AS TABLE SELECT unnest(slackwater_file_history('{name}', "
            f"object))"
        )

    def detach(self, name: str) -> None:
        """Removes a catalog that no cursor uses."""
        self._connection.execute(f"DETACH {name}")
        del self._histories[name]

    def cursor(self, catalog: str) -> Any:
        """A connection whose names are the names of a catalog."""
        cursor = self._connection.cursor()
        cursor.execute(f"USE {catalog}.{SCHEMA}")
        return cursor

    def _file_history(self, name: str, path: str) -> dict[str, Any]:
        history = self._histories[name](path)
        shown = {field: getattr(history, field) for field in _HISTORY}
        return {**shown, **{field: history.epochs.get(field) for field in HISTORY_EPOCHS}}

    def close(self) -> None:
        """Ends DuckDB."""
        self._connection.close()


class Engines:
    """Engines of a worker: one is always ready for the next session, since a new one takes some 20 ms.

    Args:
        max_memory_bytes: of each engine.
    """

    def __init__(self, max_memory_bytes: int) -> None:
        self._max_memory_bytes = max_memory_bytes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._lock = threading.Lock()
        self._next = self._made()

    def _made(self) -> Future[Engine]:
        return self._thread.submit(Engine, self._max_memory_bytes)

    def wait(self) -> None:
        """Waits until an engine is ready."""
        self._next.result()

    def take(self) -> Engine:
        """An unused engine, which the caller closes."""
        with self._lock:
            ready, self._next = self._next, self._made()
        return ready.result()

    def close(self) -> None:
        """Ends the engine that is ready."""
        with self._lock:
            self._next.result().close()
            self._thread.shutdown()


class Rows:
    """The rows of one question, computed as they are read.

    Args:
        connection: DuckDB's connection; it is used by nothing else until the rows are closed.
        text: a query that `QueryParser` accepted, or EXPLAIN with one.
        interruption: ends the computation.

    Raises:
        SqlError: the question is refused, fails, or is interrupted.
    """

    def __init__(
        self, connection: Any, text: str, relations: Mapping[str, Relation], interruption: Interruption
    ) -> None:
        self._connection, self._relations, self._interruption = connection, relations, interruption
        with self._errors():
            if text.startswith("EXPLAIN"):
                plan = "\n".join(str(row[1]) for row in connection.execute(text).fetchall())
                lines = pa.table({"QUERY PLAN": plan.rstrip().split("\n")})
                self._reader = lines.to_reader()
            else:
                relation = connection.sql(text)
                # DuckDB 1 has only the older name.
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
                self._reader = read(_ROWS_AT_ONCE)
        self.schema: pa.Schema = self._reader.schema

    def next_batch(self) -> pa.RecordBatch | None:
        """The next rows; None behind the last.

        Raises:
            SqlError: the question fails on the way, or is interrupted.
        """
        with self._errors():
            try:
                return self._reader.read_next_batch()
            except StopIteration:
                return None

    def close(self) -> None:
        """Drops the unread rows."""
        self._reader.close()
        del self._reader

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import duckdb

        try:
            with self._interruption.of(self._connection):
                yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            for relation in self._relations.values():
                failure, relation.failure = relation.failure, None
                if failure is not None:
                    raise failure from error
            if isinstance(error, duckdb.OutOfMemoryException):
                raise SqlError(
                    OUT_OF_MEMORY,
                    "the query needs more memory than the server gives: group, filter or limit its rows, or start the "
                    "server with a larger --max-memory-gib",
                ) from None
            raise error_of_duckdb(error) from None
