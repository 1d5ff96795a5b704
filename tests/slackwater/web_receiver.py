"""A real web server that keeps the JSON that is posted to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class WebReceiver:
    """The server.

    Attributes:
        got: the documents.
        asked: path and authorization of each request.
        answers: the status of each of the next answers; 200 after them.
        url: of the server.
    """

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str | None]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.asked.append((self.path, self.headers["Authorization"]))
                status = receiver.answers.pop(0) if receiver.answers else 200
                if status == 200:
                    receiver.got.append(body)
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *values: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    """A server that ends with the block."""
    receiver = WebReceiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()
