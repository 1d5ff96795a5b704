"""Program of a worker of verification: DuckDB's tables, which one front fills and queries."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator

from slackwater.confinement.request_loop import arrow_stream, serve_requests
from slackwater.verification.duckdb_tables import Answer, Begin, DuckDbTables, End, Insert, Open, Request
from slackwater.verification.engine import CannotComputeError


def run(connection: socket.socket) -> None:
    """Answers requests until the front closes the socket."""
    serve_requests(connection, _Requests())


class _Requests:
    def __init__(self) -> None:
        self._tables: DuckDbTables | None = None

    def answer(self, body: bytes) -> Iterator[bytes]:
        request: Request = pickle.loads(body)  # from the front, which is trusted
        try:
            answer = self._answer(request)
        except CannotComputeError as error:
            yield b"\0" + str(error).encode("utf-8", "replace")
            return
        yield b"\1"
        yield from answer

    def interrupt(self) -> None:
        if self._tables is not None:
            self._tables.interrupt()

    def _answer(self, request: Request) -> Iterator[bytes]:
        if isinstance(request, Open):
            self._tables = DuckDbTables(request)
            return iter(())
        assert self._tables is not None
        match request:
            case Begin(source):
                self._tables.begin(source)
            case Insert():
                self._tables.insert(request)
            case End(is_complete):
                self._tables.end(is_complete=is_complete)
            case Answer():
                rows = self._tables.answer(request)
                return arrow_stream(rows.schema, iter(rows.to_batches()))
        return iter(())
