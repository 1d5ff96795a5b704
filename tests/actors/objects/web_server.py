"""A web server with a few files; on request it redirects, refuses or breaks off."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WRITTEN = "Mon, 01 Jan 2024 00:00:00 GMT"


@dataclass(frozen=True)
class Answer:
    """An answer of the server.

    Args:
        body: its content.
        status: its status.
        headers: its headers beside the length.
        length: the length that the header tells; None for that of the body.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


def redirect(target: str, status: int = 302) -> Answer:
    return Answer(b"", status, {"Location": target})


def entry(href: str, size: int | str, written: str = WRITTEN, kind: str = "") -> str:
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:getcontentlength>{size}</D:getcontentlength>"
        f"<D:getlastmodified>{written}</D:getlastmodified><D:resourcetype>{kind}</D:resourcetype></D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def listing(*entries: str) -> Answer:
    body = '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">' + "".join(entries) + "</D:multistatus>"
    return Answer(body.encode(), 207, {"Content-Type": "application/xml"})


@dataclass
class WebServer:
    """A running server.

    Args:
        port: its port.
        answers: method and path, with its query or without → the answers, one after the other; the last one stays.
        requests: the requests so far, as method and path.
        headers: their headers.
        clients: the connections so far, by the ports of their other end.
    """

    port: int
    answers: dict[tuple[str, str], list[Answer]]
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    clients: set[int] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        self.requests.append((method, path))
        self.headers.append(headers)
        answers = self.answers.get((method, path)) or self.answers.get((method, path.partition("?")[0]))
        if answers is None:
            return Answer(status=404)
        return answers.pop(0) if len(answers) > 1 else answers[0]


@contextmanager
def web_server(answers: Mapping[tuple[str, str], Answer | list[Answer]]) -> Iterator[WebServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            running.clients.add(self.client_address[1])
            answer = running.answer(self.command, self.path, dict(self.headers))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            self.close_connection = answer.length is not None

        do_PROPFIND = do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that has read enough

    server = Server(("127.0.0.1", 0), Handler)
    running = WebServer(
        server.server_port, {key: each if isinstance(each, list) else [each] for key, each in answers.items()}
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
