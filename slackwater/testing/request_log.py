"""A reverse proxy that writes down each request, so that tests can count them where they arrive."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "content-length", "date", "server"})


@dataclass(frozen=True)
class Request:
    """One request as it reached the server; `query` has each parameter's first value."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    status: int
    range: str | None

    @property
    def is_list(self) -> bool:
        """Whether it lists a page of a bucket."""
        return self.method == "GET" and not self.key and "list-type" in self.query


class RequestLog:
    """An endpoint on loopback in front of an S3 server.  The Host header, which S3 signs, is passed on unchanged.

    Args:
        host: of the server behind.
        port: of the server behind.
        options_for: the storage options for an endpoint.
    """

    def __init__(self, host: str, port: int, options_for: Callable[[str], dict[str, str]]) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._options_for = options_for
        self._server = _Server((host, 0), _forwarder(host, port, self._note))
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

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order in which they were answered."""
        with self._lock:
            return list(self._requests)

    def of(self, method: str, key: str) -> list[Request]:
        """The requests of one method for one key."""
        return [request for request in self.requests if request.method == method and request.key == key]

    @contextmanager
    def recording(self) -> Iterator[list[Request]]:
        """Gives a list that, after the block, has the requests of the block."""
        start = len(self.requests)
        seen: list[Request] = []
        yield seen
        seen.extend(self.requests[start:])

    def close(self) -> None:
        """Stops answering, also on connections that are open."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def _note(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends the connections that clients keep open."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _forwarder(host: str, port: int, note: Callable[[Request], None]) -> type[BaseHTTPRequestHandler]:
    class Forwarder(BaseHTTPRequestHandler):
        """Serves one connection of a client over one connection to the server."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            self._upstream = http.client.HTTPConnection(host, port, timeout=60)

        def finish(self) -> None:
            self._upstream.close()
            super().finish()

        def forward(self) -> None:
            body = self._body()
            self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self._upstream.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                self._upstream.putheader("Content-Length", str(len(body)))
            self._upstream.endheaders(body)
            with self._upstream.getresponse() as answer:
                content = answer.read()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP_BY_HOP:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
                if length is not None and answer.status not in (204, 304):
                    self.send_header("Content-Length", length)
                self.end_headers()
            note(self._request(answer.status))
            self.wfile.write(content)
            self.wfile.flush()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

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

        def _request(self, status: int) -> Request:
            parts = urlsplit(self.path)
            bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            return Request(self.command, bucket, key, query, status, self.headers.get("Range"))

        def log_message(self, format: str, *args: object) -> None:
            """The log is in memory; nothing goes to the terminal."""

    return Forwarder
