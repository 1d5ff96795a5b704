"""Program of a worker of the endpoint: sessions over a root, each in a thread with a DuckDB of its own.

The main thread reads frames.  A session computes in its thread, one group of messages after the other, and sends a
part of the answers whenever the front asks for one.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import structlog

from actors.telemetry.logging import configure_default
from slackwater.confinement import frames
from slackwater.confinement.confined_duckdb import confine, unconfined_duckdb
from slackwater.confinement.errors import encoded_error
from slackwater.confinement.query_parser import QueryParser
from slackwater.plugins.serve import messages as wire
from slackwater.plugins.serve.engine import WHY, Engines
from slackwater.plugins.serve.portal import AnswerLimits
from slackwater.plugins.serve.served_root import ServedRoot
from slackwater.plugins.serve.session import Session
from slackwater.plugins.serve.session_settings import SessionSettings
from slackwater.plugins.serve.sql_error import SqlError
from slackwater.reading.store import open as open_store
from state.allocation import return_memory, share_arenas, unmap_clean_files
from state.errors import SlackwaterError

_LOOK_EVERY_S = 0.5
_PART_BYTES = 64 << 10
_FRAME_BYTES = 512 << 10
_TABLE_FUNCTIONS = frozenset({WHY, "string_to_array", "_pg_expandarray"})
_log = structlog.get_logger(actor="serve")


def run(connection: socket.socket) -> None:
    """Serves the root that the first frame names, until the front closes the socket."""
    share_arenas()
    configure_default()
    start = frames.receive(connection, frames.LARGEST_TO_WORKER)
    if start is None:
        return
    try:
        worker = _Worker(connection, json.loads(start.body))
    except SlackwaterError as error:
        connection.sendall(frames.packed(frames.FAILED, 0, encoded_error(error)))
        return
    worker.serve()


class _Worker:
    """The sessions of a worker.

    Args:
        connection: the socket to the front.
        start: root, options of its store, and limits.

    Raises:
        SlackwaterError: the root cannot be served.
    """

    def __init__(self, connection: socket.socket, start: Any) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._sessions: dict[int, _SessionThread] = {}
        self._has_sessions, self._is_over = threading.Event(), threading.Event()
        self._limits = AnswerLimits(start["max_rows"], start["max_answer_bytes"])
        parsing = unconfined_duckdb(None, threads=1)
        confine(parsing)
        self.parser = QueryParser(parsing, _TABLE_FUNCTIONS)
        engines = Engines(start["max_memory_bytes"])
        self.root = ServedRoot(open_store(start["root"], start["options"]), engines)
        # Made now, so that the first statement does not wait for it.
        self.parser.query("SELECT 1")
        epoch = self.root.epoch()
        self.root.catalog(epoch)
        engines.wait()
        return_memory()
        unmap_clean_files()

    def serve(self) -> None:
        """Reads frames until the socket ends."""
        threading.Thread(target=self._follow, name="follower", daemon=True).start()
        self.send(frames.READY, 0)
        while (frame := frames.receive(self._connection, frames.LARGEST_TO_WORKER)) is not None:
            if frame.kind == frames.OPEN:
                if not self._sessions:
                    self._refresh()
                settings = SessionSettings(json.loads(frame.body))
                session = Session(self.root, self.parser, settings, self._limits)
                self._sessions[frame.session] = _SessionThread(self, frame.session, session)
                self._has_sessions.set()
                continue
            thread = self._sessions.get(frame.session)
            if thread is None:
                continue
            if frame.kind == frames.CLOSE:
                del self._sessions[frame.session]
                if not self._sessions:
                    self._has_sessions.clear()
            thread.take(frame)
        self._is_over.set()

    def send(self, kind: bytes, session: int, body: bytes = b"") -> None:
        """Sends a frame to the front."""
        with self._sending:
            self._connection.sendall(frames.packed(kind, session, body))

    def _follow(self) -> None:
        """Looks for later epochs while there are sessions.  No error ends it."""
        while not self._is_over.is_set():
            self._has_sessions.wait()
            self._is_over.wait(_LOOK_EVERY_S)
            self._refresh()

    def _refresh(self) -> None:
        try:
            self.root.refresh()
        except SlackwaterError as error:
            _log.warning("the root cannot be read now; the last epoch stays", error=str(error))
        except Exception:
            _log.exception("the look for a later epoch failed; the last epoch stays")


class _SessionThread:
    """A session in its own thread.

    Args:
        number: the number of the session.
    """

    def __init__(self, worker: _Worker, number: int, session: Session) -> None:
        self._worker, self._number, self._session = worker, number, session
        self._work = SimpleQueue[Callable[[], bool]]()
        self._answers: Iterator[bytes] = iter(())
        self._rest = b""
        self._is_over = self._is_broken = False
        threading.Thread(target=self._run, name=f"session-{number}", daemon=True).start()

    def take(self, frame: frames.Frame) -> None:
        """Takes a frame of the front, without waiting for the work that it starts."""
        match frame.kind:
            case frames.MESSAGES:
                self._work.put(lambda: self._begin(frame.body))
            case frames.MORE:
                self._work.put(self._send_part)
            case frames.INTERRUPT:
                self._session.interrupt(frame.body.decode())
                self._session.insist()
            case frames.STOP:
                self._session.stop(frame.body.decode())
            case frames.CLOSE:
                self._session.stop("the client is gone")
                self._work.put(self._close)

    def _run(self) -> None:
        while self._work.get()():
            pass

    def _begin(self, body: bytes) -> bool:
        self._is_over = False
        try:
            self._answers = self._session.answers(_messages(body))
        except SqlError as error:
            self._is_broken, self._answers = True, iter([wire.error_response(error, is_fatal=True)])
        return self._send_part()

    def _send_part(self) -> bool:
        if not self._rest and not self._is_over:
            self._rest = self._session.part(self._answers, _PART_BYTES)
            self._is_over = len(self._rest) < _PART_BYTES
        sent, self._rest = self._rest[:_FRAME_BYTES], self._rest[_FRAME_BYTES:]
        is_last = self._is_over and not self._rest
        kind = frames.PART if not is_last else frames.FATAL if self._is_broken else frames.LAST
        self._worker.send(kind, self._number, sent)
        return True

    def _close(self) -> bool:
        self._session.close()
        return_memory()
        return False


def _messages(body: bytes) -> list[wire.Message]:
    """The messages of a client in a frame.

    Raises:
        SqlError: one of them breaks PostgreSQL's protocol.
    """
    found, at = [], 0
    while at < len(body):
        kind, size = body[at : at + 1], int.from_bytes(body[at + 1 : at + 5], "big") - 4
        found.append(wire.inner_message(kind, body[at + 5 : at + 5 + size]))
        at += 5 + size
    return found
