"""The log of the requests that arrived at a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slackwater.testing.proxies.reverse_proxy import Exchange, Request, ReverseProxy


class RequestLog(ReverseProxy):
    """An honest proxy with a memory; the arguments are the same as of `ReverseProxy`."""

    def __init__(self, host: str, port: int, options_for: Callable[[str], dict[str, str]]) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        super().__init__(host, port, options_for)

    @property
    def requests(self) -> list[Request]:
        """All requests, in the order in which they were decided."""
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

    def handle(self, exchange: Exchange) -> None:
        self._note(exchange.apply())
        exchange.answer()

    def _note(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)
