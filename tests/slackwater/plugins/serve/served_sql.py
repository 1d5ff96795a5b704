"""An endpoint that is served inside the test's process, and clients of it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.front.worker_pool import WorkerPool, WorkerSettings
from slackwater.plugins.serve.log_in.authentication import Password
from slackwater.plugins.serve.sql_server import SqlServer
from state.location import Location

HOST = "127.0.0.1"


@dataclass(frozen=True)
class ServedSql:
    """An endpoint."""

    port: int
    pool: WorkerPool
    server: SqlServer

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A client without a transaction, unless `autocommit=False`."""
        known = {"host": HOST, "port": self.port, "user": "ann", "dbname": "slackwater", "autocommit": True}
        return psycopg.connect(**{**known, **options})

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The answer to one query, by a client of its own."""
        with self.connect() as client:
            return client.execute(query, parameters or None).fetchall()


@contextmanager
def served(
    root: str,
    *,
    password: str = "",
    tls: ssl.SSLContext | None = None,
    limits: ServingLimits = ServingLimits(),
    max_memory_bytes: int = 1 << 30,
    host: str = HOST,
    spare: int = 0,
) -> Iterator[ServedSql]:
    """Serves a root from a thread by one worker, as `slackwater serve` does from its process."""
    location = Location(root)
    settings = WorkerSettings(location.url, {}, max_memory_bytes, limits.max_rows, limits.max_answer_bytes)
    pool = WorkerPool(settings, 1, spare)
    proof = Password.of(password) if password else None
    server = SqlServer(pool, host=host, port=0, password=proof, tls=tls, limits=limits)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="endpoint")
    thread.start()
    try:
        yield ServedSql(asyncio.run_coroutine_threadsafe(server.start(), loop).result(60), pool, server)
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
