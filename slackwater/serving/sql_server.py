"""Server of the endpoint: connections, log-in, limits, cancellation, start and end."""

from __future__ import annotations

import asyncio
import errno
import hmac
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import structlog

from slackwater.serving import messages as wire
from slackwater.serving.authentication import MECHANISM, Password, ScramExchange
from slackwater.serving.served_root import ServedRoot
from slackwater.serving.session import Session
from slackwater.serving.session_settings import SessionSettings
from slackwater.serving.sql_error import PROTOCOL_VIOLATION, SqlError
from state.errors import SlackwaterError, UsageError

_LOG_IN_S = 60.0
_LOOK_EVERY_S = 0.5
_INSIST_EVERY_S = 0.1
_LARGEST_FIRST = 10_000
_LARGEST = 64 << 20
_MOST_AT_ONCE = 1_000
_PART_BYTES = 64 << 10
_log = structlog.get_logger(actor="serve")


@dataclass(frozen=True)
class ServingLimits:
    """Limits of the endpoint.

    Args:
        timeout_s: seconds that a statement computes at most.
        connections: clients at one time.
        max_rows: rows of one answer; None for no limit.
    """

    timeout_s: float = 300.0
    connections: int = 100
    max_rows: int | None = None


class SqlServer:
    """Serves a root until it is closed.

    Args:
        root: the epochs.
        host: the name or address to listen on.
        port: the port; 0 for any free one.
        password: the password; None for none.
        tls: the context of TLS; None for none.
        limits: the limits.
    """

    def __init__(
        self,
        root: ServedRoot,
        *,
        host: str,
        port: int,
        password: Password | None = None,
        tls: ssl.SSLContext | None = None,
        limits: ServingLimits = ServingLimits(),
    ) -> None:
        self._root, self._host, self._port = root, host, port
        self._password, self._tls, self._limits = password, tls, limits
        self._threads = ThreadPoolExecutor(limits.connections + 1, thread_name_prefix="serve")
        self._clients: dict[int, _Client] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._last_id = 0
        self._server: asyncio.Server | None = None
        self._follower: asyncio.Task[None] | None = None
        self._is_awaited = asyncio.Event()

    @property
    def sessions(self) -> int:
        """The number of clients that are logged in."""
        return len(self._clients)

    async def start(self) -> int:
        """Begins to listen, and returns the port.

        Raises:
            UsageError: the port is taken, or the host is not one of this machine.
        """
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=1 << 20)
        except OSError as error:
            raise UsageError(_not_listening(self._host, self._port, error)) from None
        self._follower = asyncio.create_task(self._follow())
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Ends all sessions, at once."""
        if self._server is not None:
            self._server.close()
        if self._follower is not None:
            self._follower.cancel()
        for client in self._clients.values():
            client.session.stop("the server ends")
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._threads.shutdown(wait=True)
        self._root.close()

    async def _follow(self) -> None:
        """Looks for later epochs while there are clients."""
        while True:
            await self._is_awaited.wait()
            await asyncio.sleep(_LOOK_EVERY_S)
            await self._refresh()
            if not self._clients:
                self._is_awaited.clear()

    async def _refresh(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._root.refresh)
        except SlackwaterError as error:
            _log.warning("the root cannot be read now; the last epoch stays", error=str(error))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        # A client whose machine has vanished ends, too.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, TimeoutError):
            pass  # the client is gone
        except asyncio.CancelledError:
            pass  # the server ends
        except SqlError as error:
            writer.write(wire.error_response(error, is_fatal=True))
        except Exception:
            _log.exception("a connection failed")
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await asyncio.wait_for(self._first(reader, writer), _LOG_IN_S)
        if isinstance(first, wire.CancelRequest):
            self._cancel(first)
            return
        settings = SessionSettings(first.parameters)
        if len(self._clients) >= self._limits.connections:
            raise SqlError(
                "53300", f"there are {self._limits.connections} clients already (--max-connections): try later"
            )
        options = [name for name in first.parameters if name.startswith("_pq_.")]
        if first.minor or options:
            writer.write(wire.minor_version(0, options))
        await asyncio.wait_for(self._log_in(reader, writer, settings.user), _LOG_IN_S)
        if not self._clients:
            await self._refresh()
        self._last_id += 1
        session = Session(self._root, settings, self._limits.max_rows)
        client = _Client(self._last_id, os.urandom(4), session)
        self._clients[client.number] = client
        self._is_awaited.set()
        try:
            for name, value in settings.reported():
                writer.write(wire.parameter_status(name, value))
            writer.write(wire.backend_key(client.number, client.secret) + wire.ready(b"I"))
            await writer.drain()
            await self._converse(reader, writer, session)
        finally:
            del self._clients[client.number]
            session.stop("the client is gone")
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, session.close))

    async def _first(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> wire.Startup | wire.CancelRequest:
        is_encrypted = False
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big") - 4
            if not 4 <= size <= _LARGEST_FIRST:
                raise SqlError(PROTOCOL_VIOLATION, "the first message is none of PostgreSQL's protocol")
            first = wire.first_message(await reader.readexactly(size))
            if not isinstance(first, wire.EncryptionRequest):
                if self._tls is not None and not is_encrypted and isinstance(first, wire.Startup):
                    raise SqlError("28000", "this server needs TLS: connect with sslmode=require")
                return first
            if not first.is_tls or self._tls is None or is_encrypted:
                writer.write(b"N")
                await writer.drain()
                continue
            writer.write(b"S")
            await writer.drain()
            await writer.start_tls(self._tls)
            is_encrypted = True

    async def _log_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str) -> None:
        if self._password is not None:
            exchange = ScramExchange(self._password, os.urandom(18).hex())
            writer.write(wire.password_question(10, MECHANISM + b"\0\0"))
            writer.write(wire.password_question(11, exchange.challenge(await _response(reader, writer))))
            writer.write(wire.password_question(12, exchange.verdict(await _response(reader, writer), user)))
        writer.write(wire.AUTHENTICATED)

    def _cancel(self, request: wire.CancelRequest) -> None:
        client = self._clients.get(request.process_id)
        if client is not None and hmac.compare_digest(client.secret, request.secret):
            client.session.interrupt("the client cancelled the statement")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: Session) -> None:
        loop = asyncio.get_running_loop()
        received = await _group(reader)
        while True:
            # The next messages are read meanwhile: their end tells that the client is gone.
            following = asyncio.create_task(_group(reader))
            try:
                is_end = isinstance(received[-1], wire.Terminate)
                answers = session.answers(received[:-1] if is_end else received)
                left_s = self._limits.timeout_s
                while True:
                    began = loop.time()
                    part = await self._part(following, session, answers, left_s)
                    left_s -= loop.time() - began
                    if not part:
                        break
                    writer.write(part)
                    await writer.drain()
                if is_end:
                    return
                received = await following
            finally:
                following.cancel()

    async def _part(
        self, following: asyncio.Task[Sequence[wire.Message]], session: Session, answers: Iterator[bytes], left_s: float
    ) -> bytes:
        """The next answers, computed in a thread within a time; of a client that is gone they are not computed on."""
        loop = asyncio.get_running_loop()
        end = loop.time() + left_s
        computed = loop.run_in_executor(self._threads, session.part, answers, _PART_BYTES)
        while not computed.done():
            awaited: list[asyncio.Future[Any]] = [computed] if following.done() else [computed, following]
            await asyncio.wait(awaited, timeout=_INSIST_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if following.done() and _is_gone(following):
                session.stop("the client is gone")
            if loop.time() > end:
                session.interrupt(
                    f"the statement took more than {self._limits.timeout_s:g} s (--timeout): read less, or give it more"
                )
            session.insist()
        return computed.result()


@dataclass(frozen=True)
class _Client:
    """A client after its log-in, by which another connection cancels its statement."""

    number: int
    secret: bytes
    session: Session


def _is_gone(following: asyncio.Task[Sequence[wire.Message]]) -> bool:
    return following.exception() is not None or isinstance(following.result()[0], wire.Terminate)


async def _response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    await writer.drain()
    kind, size = await reader.readexactly(1), int.from_bytes(await reader.readexactly(4), "big") - 4
    if kind != b"p" or not 0 <= size <= _LARGEST_FIRST:
        raise SqlError(PROTOCOL_VIOLATION, "an answer about the password is expected")
    return await reader.readexactly(size)


async def _group(reader: asyncio.StreamReader) -> Sequence[wire.Message]:
    """The messages up to the next one that wants an answer."""
    received: list[wire.Message] = []
    nbytes = 0
    while True:
        kind, size = await reader.readexactly(1), int.from_bytes(await reader.readexactly(4), "big") - 4
        if not 0 <= size <= _LARGEST:
            raise SqlError(PROTOCOL_VIOLATION, f"a message is larger than {_LARGEST >> 20} MiB")
        received.append(wire.message(kind, await reader.readexactly(size)))
        nbytes += size
        is_enough = len(received) == _MOST_AT_ONCE or nbytes > _LARGEST
        if is_enough or isinstance(received[-1], (wire.Query, wire.Sync, wire.Flush, wire.Terminate)):
            return received


def _not_listening(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"{host} is not an address of this machine: give one with --host, for example 127.0.0.1"
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "another program uses it; give another one with --port" if error.errno == errno.EADDRINUSE else "see --host"
    return f"{host} port {port} cannot be listened on: {reason.lower()}: {hint}"
