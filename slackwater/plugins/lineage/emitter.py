"""The way of events to their endpoint or file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from slackwater.plugins.lineage.open_lineage import OpenLineage
from state.clock import Clock

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.transport import Transport

API_KEY = "OPENLINEAGE_API_KEY"
MOST_WAITING = 10_000
LAST_EVENTS_S = 10.0

_TIMEOUT_S = 5.0
_LONGEST_PAUSE_S = 60.0
_TRY_AGAIN = (408, 429)
_NO_RETRY = {"total": 0, "read": 0, "connect": 0, "status_forcelist": []}
"""The run has a queue and pauses of its own."""

_log = structlog.get_logger(actor="lineage")


class Emitter:
    """Sends events in their order.

    An event that cannot be sent is tried again, with pauses of up to a minute, and those behind it wait; of more than
    `MOST_WAITING` the oldest are left out.  An event that the endpoint refuses is left out at once.

    Args:
        target: the endpoint or file.
    """

    def __init__(self, target: OpenLineage, clock: Clock) -> None:
        self._target, self._clock = target, clock
        self._waiting: deque[RunEvent] = deque()
        self._transport = _transport(target)
        self._failures, self._not_before_s = 0, float("-inf")

    def put(self, events: Iterable[RunEvent]) -> None:
        """Takes events, to be sent by `send`."""
        self._waiting += events
        too_many = len(self._waiting) - MOST_WAITING
        if too_many > 0:
            for _ in range(too_many):
                self._waiting.popleft()
            _log.warning("lineage events left out", events=too_many, reason="too many wait for the endpoint")

    def send(self) -> None:
        """Sends what waits, as far as that is possible now."""
        while self._waiting and self._clock.monotonic() >= self._not_before_s:
            try:
                self._transport.emit(self._waiting[0])
            except Exception as error:  # errors of requests, of the file system, and of the library
                status = getattr(getattr(error, "response", None), "status_code", None)
                if status is None or status >= 500 or status in _TRY_AGAIN:
                    self._wait(_reason(error, status))
                    return
                self._waiting.popleft()
                _log.warning("lineage events left out", events=1, reason=f"{self._place} answered {status}")
            else:
                self._waiting.popleft()
                self._failures = 0

    def end(self) -> None:
        """Sends the last events, for at most `LAST_EVENTS_S` seconds."""
        deadline = self._clock.monotonic() + LAST_EVENTS_S
        self._not_before_s = float("-inf")
        while self._waiting and self._clock.monotonic() < deadline:
            self.send()
            if self._waiting:
                self._clock.sleep(max(0.0, min(self._not_before_s, deadline) - self._clock.monotonic()))
        if self._waiting:
            _log.warning("lineage events left out", events=len(self._waiting), reason="the run is over")
        self._transport.close()

    @property
    def _place(self) -> str:
        """The receiver, without what may be a secret in its URL."""
        if not self._target.is_web:
            return self._target.to
        parts = urlsplit(self._target.to)
        return f"{parts.scheme}://{parts.hostname}"

    def _wait(self, reason: str) -> None:
        self._failures += 1
        pause_s = min(_LONGEST_PAUSE_S, 2.0 ** min(self._failures - 1, 10))
        self._not_before_s = self._clock.monotonic() + pause_s
        if self._failures == 1:
            _log.warning("lineage waits", error=f"{self._place}: {reason}", events=len(self._waiting))


def _reason(error: Exception, status: int | None) -> str:
    return f"answered {status}" if status is not None else type(error).__name__


def _transport(target: OpenLineage) -> Transport:
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    if not target.is_web:
        return FileTransport(FileConfig(log_file_path=str(Path(target.to).absolute()), append=True))
    options: dict[str, Any] = {"url": target.to, "timeout": _TIMEOUT_S, "retry": _NO_RETRY}
    if key := os.environ.get(API_KEY):
        options["auth"] = {"type": "api_key", "apiKey": key}
    transport = HttpTransport(HttpConfig.from_dict(options))
    # The body of an answer is not used.  Read as a whole, an endless one would fill the memory.
    transport.session.stream = True
    return transport
