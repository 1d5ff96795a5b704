"""A reverse proxy on loopback; a subclass decides about each request."""

from __future__ import annotations

import http.client
import os
import re
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "content-length", "date", "server"})
_NO_BODY = (204, 304)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ReverseProxy:
    """An endpoint on loopback in front of an S3 server.  The Host header, which S3 signs, is passed on unchanged.

    Args:
        host: of the server behind.
        port: of the server behind.
        options_for: the storage options for an endpoint.
    """

    def __init__(self, host: str, port: int, options_for: Callable[[str], dict[str, str]]) -> None:
        self._options_for = options_for
        self._server = _Server(self, (host, 0), (host, port))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """The URL to use in place of the server's."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """The server's storage options, through this endpoint."""
        return self._options_for(self.endpoint)

    def close(self) -> None:
        """Stops answering, also on connections that are open."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def handle(self, exchange: Exchange) -> None:
        """Handles one request.  Called in a thread per connection."""
        exchange.apply()
        exchange.answer()


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer; serves one connection of a client over one connection to the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        host, port = self.server.upstream
        self._upstream = http.client.HTTPConnection(host, port, timeout=60)

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    @property
    def sent_body(self) -> bytes:
        """The content of the request."""
        return self._sent_body

    def serve(self) -> None:
        self._sent_body = self._body()
        self.request_seen = self._request()
        self._head, self._content, self._applied = b"", b"", False
        self.server.proxy.handle(self)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def apply(self) -> Request:
        """Has the server do the request, once, and keeps the answer; returns the request with its status."""
        if self._applied:
            return self.request_seen
        self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self._upstream.putheader(name, value)
        if self._sent_body or self.command in ("PUT", "POST"):
            self._upstream.putheader("Content-Length", str(len(self._sent_body)))
        self._upstream.endheaders(self._sent_body)
        with self._upstream.getresponse() as answer:
            self._content = answer.read()
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(self._content))
            if length is not None and answer.status not in _NO_BODY:
                headers.append(("Content-Length", length))
            self._head = _head(answer.status, answer.reason, headers)
        self._applied = True
        self.request_seen = replace(self.request_seen, status=answer.status)
        return self.request_seen

    def answer(self) -> None:
        """Passes the server's answer on."""
        self._send(self._head + self._content)

    def replace(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Puts another answer in the place of the server's; `answer` sends it."""
        listed = [*headers.items(), ("Content-Length", str(len(content)))]
        self._head, self._content = _head(status, "OK", listed), content

    def edit(
        self,
        *,
        head: Callable[[bytes], bytes] = lambda text: text,
        content: Callable[[bytes], bytes] = lambda text: text,
    ) -> None:
        """Changes the answer; `answer` sends it.

        Args:
            head: changes the status line and the headers.
            content: changes the content.
        """
        edited = content(self._content)
        if len(edited) != len(self._content):
            length = str(len(edited)).encode()
            self._head = re.sub(rb"(?im)^(Content-Length: )\d+", rb"\g<1>" + length, self._head)
        self._head, self._content = head(self._head), edited

    def refuse(self, status: int, code: str) -> None:
        """Answers with an error of S3 in place of the server's answer."""
        content = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))]
        self._send(_head(status, code, headers) + (b"" if self.command == "HEAD" else content))

    def cut(self, share: float) -> None:
        """Closes the connection after a part of the answer: of its content, or where it has none of its head.

        Args:
            share: from 0 to below 1.
        """
        if self._content:
            self._send(self._head + self._content[: int(len(self._content) * share)])
        else:
            self._send(self._head[: int(len(self._head) * share)])
        self.close_connection = True

    def reset(self) -> None:
        """Drops the connection, as a server does that dies."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        os.close(self.connection.detach())
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """The log is in memory; nothing goes to the terminal."""

    def _send(self, content: bytes) -> None:
        self.wfile.write(content)
        self.wfile.flush()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def _request(self) -> Request:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return Request(self.command, bucket, key, query, self.headers.get("Range"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: ReverseProxy, address: tuple[str, int], upstream: tuple[str, int]) -> None:
        super().__init__(address, Exchange)
        self.proxy, self.upstream = proxy, upstream
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that gave up, or a server that is gone: the other side sees its connection end, and that is all.
        if not isinstance(sys.exc_info()[1], (OSError, http.client.HTTPException)):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Ends the connections that clients keep open."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _head(status: int, reason: str, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


@dataclass(frozen=True)
class Request:
    """One request as it reached the proxy.

    Args:
        query: each parameter's first value.
        status: the status of the server's answer; 0 until, or if, the server does not see the request.
        fault: the fault that the proxy put in; None for an honest answer.
    """

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    range: str | None
    status: int = 0
    fault: str | None = None

    @property
    def is_list(self) -> bool:
        """True if it lists a page of a bucket."""
        return self.method == "GET" and not self.key and "list-type" in self.query
