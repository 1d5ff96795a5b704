"""Delivery to a webhook whose answers are hostile: endless, slow, compressed, or without an end of the headers."""

from __future__ import annotations

import re
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from slackwater.plugins.alerts import delivery
from slackwater.plugins.alerts.alert import Alert
from slackwater.plugins.alerts.delivery import DeliveryError, deliver
from slackwater.plugins.lineage.emitter import Emitter
from slackwater.plugins.lineage.open_lineage import OpenLineage
from state.clock import ManualClock

_OK = b"HTTP/1.1 200 OK\r\n"
_CONTENT = {"event": "begin", "text": "it holds"}
_MOST_BYTES = 8 << 20
_PLACE = re.escape("http://127.0.0.1: ")


class _Answering:
    """A server that answers one request with bytes until the client closes the connection, or after some MiB.

    Attributes:
        sent: the bytes that it could send.
    """

    def __init__(self, first: bytes, repeated: bytes, pause_s: float) -> None:
        self.sent = 0
        self._first, self._repeated, self._pause_s = first, repeated, pause_s
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65_536)
            try:
                connection.sendall(self._first)
                while self.sent < _MOST_BYTES and not self._ended.wait(self._pause_s):
                    connection.sendall(self._repeated)
                    self.sent += len(self._repeated)
            except OSError:
                pass

    def close(self) -> None:
        self._ended.set()
        self._thread.join(60)
        self._listener.close()


@contextmanager
def _answering(first: bytes, repeated: bytes, pause_s: float = 0.0) -> Iterator[_Answering]:
    server = _Answering(first, repeated, pause_s)
    try:
        yield server
    finally:
        server.close()


def _post(url: str) -> None:
    deliver(Alert("held", to=url), _CONTENT)


def test_an_endless_answer_is_not_read() -> None:
    with _answering(_OK + b"\r\n", b"x" * 65_536) as server:
        _post(server.url)
        server.close()
        assert server.sent < _MOST_BYTES


def test_a_compressed_answer_is_not_unfolded() -> None:
    bomb = zlib.compress(b"\0" * (64 << 20))
    with _answering(_OK + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb, b"") as server:
        _post(server.url)


def test_headers_without_an_end_are_not_collected() -> None:
    with (
        _answering(_OK + b"X-Long: ", b"x" * 65_536) as server,
        pytest.raises(DeliveryError, match=_PLACE),
    ):
        _post(server.url)
    assert server.sent < _MOST_BYTES


def test_an_answer_that_arrives_byte_by_byte_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_ANSWER_S", 1.0)
    with _answering(_OK + b"X-Slow: ", b"x", pause_s=0.05) as server, pytest.raises(DeliveryError, match="Timeout"):
        _post(server.url)


def test_bytes_that_are_not_http_are_an_error_of_the_receiver() -> None:
    with _answering(b"SSH-2.0-OpenSSH_9\r\n", b"") as server, pytest.raises(DeliveryError, match=_PLACE):
        _post(server.url)


def test_an_endless_answer_to_lineage_is_not_read() -> None:
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

    event: Any = RunEvent(
        eventType=RunState.START,
        eventTime="2026-01-01T00:00:00+00:00",
        run=Run("01890af0-0000-7000-8000-000000000000"),
        job=Job("a", "b"),
        producer="https://example.com",
    )
    with _answering(_OK + b"\r\n", b"x" * 65_536) as server:
        emitter = Emitter(OpenLineage(server.url), ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
        emitter.put([event])
        emitter.send()
        server.close()
        assert server.sent < _MOST_BYTES
