"""Connection of a client, from its first message to its end.

The first messages are read from the socket itself, and no byte beyond a request for TLS is read before the handshake.
So bytes that someone on the network adds to the request never pass for bytes of the encrypted connection
(CVE-2021-23214).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from slackwater.plugins.serve import messages as wire
from slackwater.plugins.serve.log_in.connection_slots import network_of
from slackwater.plugins.serve.sql_error import PROTOCOL_VIOLATION, SqlError

_LARGEST_FIRST = 10_000
_BUFFERED = 64 << 10
_CLOSING_S = 1.0
_DISCARDED = 64 << 10


_Result = TypeVar("_Result")


class PlaintextBehindTlsRequestError(Exception):
    """Unencrypted bytes follow a request for TLS."""


class ClientConnection:
    """One accepted connection.  All methods belong to the thread of the event loop.

    Args:
        accepted: the socket, non-blocking; the connection owns it.
        address: the IP address of the client.
    """

    def __init__(self, accepted: socket.socket, address: str) -> None:
        self.address = address
        self.network = network_of(address)
        self._socket = accepted
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def reader(self) -> asyncio.StreamReader:
        """The stream of the client's messages, after `first_message`."""
        assert self._streams is not None
        return self._streams[0]

    @property
    def writer(self) -> asyncio.StreamWriter:
        """The stream of the answers, after `first_message`."""
        assert self._streams is not None
        return self._streams[1]

    async def first_message(self, tls: ssl.SSLContext | None, handshake_s: float) -> wire.Startup | wire.CancelRequest:
        """Reads the first message and makes the streams.

        Args:
            tls: clients must use TLS with this context; None for no TLS.
            handshake_s: seconds for the handshake.

        Raises:
            SqlError: the first message is invalid, or comes without the TLS that the server needs.
            PlaintextBehindTlsRequestError: see its class.
            OSError, asyncio.IncompleteReadError: the client is gone, or its TLS fails.
        """
        loop = asyncio.get_running_loop()
        # A client whose machine has vanished ends, too.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        requests: set[wire.EncryptionRequest] = set()
        while True:
            first = await _first_message(self._exactly)
            if not isinstance(first, wire.EncryptionRequest):
                if tls is not None and isinstance(first, wire.Startup):
                    raise SqlError("28000", "this server needs TLS: connect with sslmode=require")
                await self._make_streams(None, handshake_s)
                return first
            if first in requests:
                raise SqlError(PROTOCOL_VIOLATION, "the client asks for the same encryption twice")
            requests.add(first)
            if first.is_tls and tls is not None:
                break
            await loop.sock_sendall(self._socket, b"N")
        if self._has_bytes():
            await self._end(b"")
            raise PlaintextBehindTlsRequestError
        await loop.sock_sendall(self._socket, b"S")
        await self._make_streams(tls, handshake_s)
        encrypted = await _first_message(self.reader.readexactly)
        if isinstance(encrypted, wire.EncryptionRequest):
            raise SqlError(PROTOCOL_VIOLATION, "the connection is encrypted already")
        return encrypted

    async def unless_gone(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """The result of work that the client awaits; the work is cancelled if the client is gone meanwhile.

        Raises:
            asyncio.IncompleteReadError: the client is gone.
            SqlError: the client sends another message instead of waiting.
        """
        task = asyncio.ensure_future(work)
        byte = asyncio.ensure_future(self.reader.read(1))
        try:
            await asyncio.wait((task, byte), return_when=asyncio.FIRST_COMPLETED)
            if not byte.done():
                return task.result()
            if not byte.result():
                raise asyncio.IncompleteReadError(b"", None)
            raise SqlError(PROTOCOL_VIOLATION, "a message came before the answer to the log-in")
        finally:
            task.cancel()
            byte.cancel()
            await asyncio.wait((task, byte))

    async def refuse(self, error: SqlError) -> None:
        """Sends an error that ends the connection."""
        last = wire.error_response(error, is_fatal=True)
        if self._streams is not None:
            self.writer.write(last)
        else:
            await self._end(last)

    async def close(self) -> None:
        """Sends the buffered bytes and closes the connection; a client that reads nothing delays this by a second."""
        if self._streams is None:
            self._socket.close()
            return
        self.writer.close()
        try:
            async with asyncio.timeout(_CLOSING_S):
                await self.writer.wait_closed()
        except (OSError, TimeoutError):
            pass
        finally:
            self.abort()

    def abort(self) -> None:
        """Closes the connection and drops the buffered bytes."""
        if self._streams is not None:
            self.writer.transport.abort()
        else:
            self._socket.close()

    async def _make_streams(self, tls: ssl.SSLContext | None, handshake_s: float) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_BUFFERED, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            self._socket,
            ssl=tls,
            ssl_handshake_timeout=handshake_s if tls else None,
            ssl_shutdown_timeout=_CLOSING_S if tls else None,
        )
        self._streams = reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _exactly(self, nbytes: int) -> bytes:
        received = b""
        while len(received) < nbytes:
            part = await asyncio.get_running_loop().sock_recv(self._socket, nbytes - len(received))
            if not part:
                raise asyncio.IncompleteReadError(received, nbytes)
            received += part
        return received

    async def _end(self, last: bytes) -> None:
        """Sends the last bytes and discards further bytes of the client: unread bytes would become a reset."""
        loop = asyncio.get_running_loop()
        left = _DISCARDED
        try:
            async with asyncio.timeout(_CLOSING_S):
                await loop.sock_sendall(self._socket, last)
                self._socket.shutdown(socket.SHUT_WR)
                while left > 0 and (part := await loop.sock_recv(self._socket, left)):
                    left -= len(part)
        except (OSError, TimeoutError):
            pass

    def _has_bytes(self) -> bool:
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False


async def _first_message(
    exactly: Callable[[int], Awaitable[bytes]],
) -> wire.Startup | wire.CancelRequest | wire.EncryptionRequest:
    size = int.from_bytes(await exactly(4), "big") - 4
    if not 4 <= size <= _LARGEST_FIRST:
        raise SqlError(PROTOCOL_VIOLATION, "the first message does not belong to PostgreSQL's protocol")
    return wire.first_message(await exactly(size))
