"""Server of the endpoint: connections, log-in, limits, cancellation, start and end."""

from __future__ import annotations

import asyncio
import errno
import hmac
import os
import resource
import socket
import ssl
from dataclasses import dataclass, field

import structlog

from slackwater.plugins.serve import messages as wire
from slackwater.plugins.serve.front.conversation import Conversation
from slackwater.plugins.serve.front.message_budget import MessageBudget
from slackwater.plugins.serve.front.remote_session import RemoteSession
from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.front.worker_pool import WorkerPool
from slackwater.plugins.serve.log_in.authentication import MECHANISM, Password, ScramExchange
from slackwater.plugins.serve.log_in.client_connection import ClientConnection, PlaintextBehindTlsRequestError
from slackwater.plugins.serve.log_in.connection_slots import SURPLUS, ConnectionSlots, Slot
from slackwater.plugins.serve.log_in.log_in_pace import LogInPace
from slackwater.plugins.serve.session_settings import SessionSettings
from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, SqlError
from state.errors import UsageError

_REFUSAL_S = 1.0
_LARGEST_RESPONSE = 10_000
_ACCEPT_AGAIN_S = 0.1
_BACKLOG = 128
_OWN_FILES = 200
"""Open files of the process that are not connections of clients: sockets of workers, the log."""
_LONGEST_LOGGED = 64
_log = structlog.get_logger(actor="serve")


class SqlServer:
    """Serves a root until it is closed.

    Args:
        workers: the workers, which are started and ended here.
        host: the name or address to listen on.
        port: the port; 0 for any free one.
        password: the password; None for none.
        tls: the context of TLS; None for none.
    """

    def __init__(
        self,
        workers: WorkerPool,
        *,
        host: str,
        port: int,
        password: Password | None = None,
        tls: ssl.SSLContext | None = None,
        limits: ServingLimits = ServingLimits(),
    ) -> None:
        self._workers, self._host, self._port = workers, host, port
        self._password, self._tls, self._limits = password, tls, limits
        self._clients: dict[int, _Client] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._slots = ConnectionSlots(limits.connections)
        self._pace = LogInPace()
        self._messages = MessageBudget(limits.max_message_bytes)
        self._last_id = 0
        self._listeners: list[socket.socket] = []
        self._loops: list[asyncio.Task[None]] = []
        self._is_full = self._accepts_none = False

    @property
    def sessions(self) -> int:
        """The number of clients that are logged in."""
        return len(self._clients)

    @property
    def connections(self) -> int:
        """The number of open connections, before and after their log-in."""
        return self._slots.count

    @property
    def message_bytes(self) -> int:
        """Bytes of unanswered messages in the memory that all clients share, beyond 64 KiB of each client."""
        return self._messages.taken

    async def start(self) -> int:
        """Begins to listen, and returns the port.

        Raises:
            UsageError: the port is taken, the host is not one of this machine, or the process may open too few files.
            SlackwaterError: the root cannot be served.
        """
        _require_files(self._limits.connections)
        try:
            self._listeners = await _listeners(self._host, self._port)
        except OSError as error:
            raise UsageError(_not_listening(self._host, self._port, error)) from None
        try:
            await self._workers.start()
        except BaseException:
            for listener in self._listeners:
                listener.close()
            raise
        self._loops = [asyncio.create_task(self._listen(each)) for each in self._listeners]
        return int(self._listeners[0].getsockname()[1])

    async def close(self) -> None:
        """Ends all sessions, at once."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        self._workers.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    # ---- connections -------------------------------------------------------------------------------------------------

    async def _listen(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._slots.evict_one()
                    if not self._accepts_none:
                        _log.warning("no connection can be accepted", error=str(error), connections=self.connections)
                    self._accepts_none = True
                await asyncio.sleep(_ACCEPT_AGAIN_S)
                continue
            self._accepts_none = False
            task = asyncio.create_task(self._serve(ClientConnection(accepted, str(peer[0]))))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            # An accepted connection does not yield to the event loop by itself: a flood must not stop the sessions.
            await asyncio.sleep(0)

    async def _serve(self, connection: ClientConnection) -> None:
        """One connection, from its acceptance to its end."""
        task = asyncio.current_task()
        assert task is not None
        slot = Slot(connection.network, task.cancel)
        self._slots.take(slot)
        try:
            async with asyncio.timeout(self._limits.log_in_s):
                first = await connection.first_message(self._tls, self._limits.log_in_s)
                if isinstance(first, wire.CancelRequest):
                    await self._cancel(first, connection)
                    return
                settings = SessionSettings(first.parameters)
                self._require_slot(slot)
                await self._log_in(connection, first, settings.user)
                self._slots.log_in(slot)
            await self._session(connection.reader, connection.writer, first)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client is gone, or has not logged in within the time
        except asyncio.CancelledError:
            # The connection is evicted, or the server ends: neither waits until the client has read the buffered bytes.
            connection.abort()
            raise
        except PlaintextBehindTlsRequestError:
            _log.warning("a connection was closed: plaintext follows its request for TLS", address=connection.address)
        except SqlError as error:
            await connection.refuse(error)
        except Exception:
            _log.exception("a connection failed", address=connection.address)
        finally:
            try:
                await connection.close()
            finally:
                self._slots.release(slot)

    def _require_slot(self, slot: Slot) -> None:
        if self._slots.may_log_in(slot):
            self._is_full = False
            return
        if not self._is_full:
            _log.warning("connections are refused: --max-connections is reached", limit=self._limits.connections)
        self._is_full = True
        raise SqlError(
            "53300", f"there are {self._limits.connections} connections already (--max-connections): try later"
        )

    async def _log_in(self, connection: ClientConnection, startup: wire.Startup, user: str) -> None:
        reader, writer = connection.reader, connection.writer
        options = [name for name in startup.parameters if name.startswith("_pq_.")]
        if startup.minor or options:
            writer.write(wire.minor_version(0, options))
        if self._password is not None:
            exchange = ScramExchange(self._password)
            writer.write(wire.password_question(10, MECHANISM + b"\0\0"))
            writer.write(wire.password_question(11, exchange.challenge(await _response(reader, writer))))
            proof = await _response(reader, writer)
            writer.write(await connection.unless_gone(self._verdict(connection, exchange, proof, user)))
        writer.write(wire.AUTHENTICATED)

    async def _verdict(self, connection: ClientConnection, exchange: ScramExchange, proof: bytes, user: str) -> bytes:
        """The last message of a log-in with the right password.

        Raises:
            SqlError: the password is wrong.
        """
        try:
            async with self._pace.turn(connection.network):
                try:
                    return wire.password_question(12, exchange.verdict(proof, user))
                except SqlError:
                    self._pace.refused(connection.network)
                    raise
        except SqlError:
            named = user[:_LONGEST_LOGGED]
            _log.warning("a log-in was refused: wrong password", address=connection.address, user=named)
            await asyncio.sleep(_REFUSAL_S)
            raise

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, startup: wire.Startup) -> None:
        worker, session = await self._workers.open(startup.parameters)
        self._last_id += 1
        client = _Client(self._last_id, os.urandom(4), session)
        self._clients[client.number] = client
        try:
            reported = SessionSettings(startup.parameters).reported()
            settings = b"".join(wire.parameter_status(name, value) for name, value in reported)
            # One write: asyncio logs a warning for each further one to a client that is gone.
            writer.write(settings + wire.backend_key(client.number, client.secret) + wire.ready(b"I"))
            await writer.drain()
            await Conversation(reader, writer, worker, session, self._limits, self._messages).run()
        finally:
            del self._clients[client.number]
            worker.close(session)

    async def _cancel(self, request: wire.CancelRequest, connection: ClientConnection) -> None:
        """Cancels the statement of a session whose secret the request has.  Wrong secrets are as slow as passwords."""
        async with self._pace.turn(connection.network):
            client = self._clients.get(request.process_id)
            if client is None:
                return
            if hmac.compare_digest(client.secret, request.secret):
                client.session.interrupt("the client cancelled the statement")
                return
            self._pace.refused(connection.network)
        _log.warning("a request to cancel was refused: wrong secret", address=connection.address)


@dataclass(frozen=True)
class _Client:
    """A client after its log-in, by which another connection cancels its statement."""

    number: int
    secret: bytes = field(repr=False)
    session: RemoteSession


async def _response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    await writer.drain()
    kind, size = await reader.readexactly(1), int.from_bytes(await reader.readexactly(4), "big") - 4
    if kind != b"p" or not 0 <= size <= _LARGEST_RESPONSE:
        raise SqlError(PROTOCOL_VIOLATION, "an answer about the password is expected")
    return await reader.readexactly(size)


async def _listeners(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host; all have the same port, also a free port."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listeners: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            name, number, *rest = address
            taken = number or (listeners[0].getsockname()[1] if listeners else 0)
            listeners.append(socket.create_server((name, taken, *rest), family=family, backlog=_BACKLOG))
            listeners[-1].setblocking(False)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _require_files(connections: int) -> None:
    """Raises the soft limit of open files as far as the connections need it.

    Raises:
        UsageError: the hard limit is lower.
    """
    needed = connections + SURPLUS + _OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise UsageError(
                f"--max-connections {connections} needs {needed} open files, and this process may open {hard}: raise "
                "the limit (ulimit -Hn, or LimitNOFILE of systemd), or give fewer connections"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _not_listening(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"{host} is not an address of this machine: give one with --host, for example 127.0.0.1"
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "another program uses it; give another one with --port" if error.errno == errno.EADDRINUSE else "see --host"
    return f"{host} port {port} cannot be listened on: {reason.lower()}: {hint}"
