"""A page that is served inside the test's process, and a client that can ask for anything."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import slackwater as sw
from slackwater.plugins.ui.gate import AccessToken
from slackwater.plugins.ui.page_server import PageServer
from state.clock import Clock, SystemClock

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class ServedPage:
    """Where the page of a root is."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def ask(self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        """Any request; the header `Host` can be given as well."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def send(self, request: bytes) -> bytes:
        """The answer to a request as it stands, in bytes that no client would send."""
        with socket.create_connection((HOST, self.port), timeout=60) as connection:
            connection.sendall(request)
            return connection.recv(65_536)

    def api(self, name: str, **parameters: Any) -> Any:
        """The document of a question that is answered."""
        answer = self.ask(f"/api/{name}?{urlencode(parameters)}")
        assert answer.status == 200, answer.body
        return answer.document


@contextmanager
def served(root: str, *, token: AccessToken | None = None, clock: Clock | None = None) -> Iterator[ServedPage]:
    """Serves the page of a root from a thread, as `slackwater ui` does from its process."""
    server = PageServer(sw.open(root), clock or SystemClock(), host=HOST, port=0, token=token)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="page")
    thread.start()
    try:
        yield ServedPage(asyncio.run_coroutine_threadsafe(server.start(), loop).result(30))
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
