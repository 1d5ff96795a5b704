"""Session in a worker, as the front sees it: messages in, parts of the answers out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from slackwater.confinement import frames
from slackwater.plugins.serve.sql_error import SqlError


@dataclass(frozen=True)
class Part:
    """Some of the answers to a group of messages.

    Args:
        is_last: True if the group is answered.
        ends_session: True if the session has ended with these answers.
    """

    answers: bytes
    is_last: bool
    ends_session: bool = False


class RemoteSession:
    """One session; at most one group of messages, and one request for answers, is open.

    Args:
        number: its number in its worker.
        send: sends a frame to the worker.
    """

    def __init__(self, number: int, send: Callable[[bytes], None]) -> None:
        self.number, self._send = number, send
        self._awaited: asyncio.Future[Part] | None = None
        self.ended: asyncio.Future[SqlError] = asyncio.get_running_loop().create_future()
        self.busy_since = 0.0
        self._reason = ""

    @property
    def is_busy(self) -> bool:
        return self._awaited is not None

    def ask(self, messages: bytes) -> asyncio.Future[Part]:
        """Sends a group of messages, and asks for the first answers."""
        return self._ask(frames.MESSAGES, messages)

    def ask_more(self) -> asyncio.Future[Part]:
        """Asks for the next answers."""
        return self._ask(frames.MORE)

    def interrupt(self, reason: str) -> None:
        """Ends the statement that runs now, if one runs."""
        if self.is_busy:
            self._reason = reason
            self._send(frames.packed(frames.INTERRUPT, self.number, reason.encode()))

    def insist(self) -> None:
        """Repeats an interruption: DuckDB forgets one that comes just before it begins."""
        if self._reason:
            self.interrupt(self._reason)

    def stop(self, reason: str) -> None:
        """Ends the running statement and all later statements."""
        self._send(frames.packed(frames.STOP, self.number, reason.encode()))

    def close(self) -> None:
        self._send(frames.packed(frames.CLOSE, self.number))

    def receive(self, frame: frames.Frame) -> bool:
        """Takes a frame of the worker; False if it was not asked for."""
        if self._awaited is None or frame.kind not in (frames.PART, frames.LAST, frames.FATAL):
            return False
        awaited, self._awaited = self._awaited, None
        if frame.kind != frames.PART:
            self._reason = ""
        if not awaited.done():
            awaited.set_result(Part(frame.body, frame.kind != frames.PART, frame.kind == frames.FATAL))
        return True

    def end(self, error: SqlError) -> None:
        awaited, self._awaited = self._awaited, None
        if awaited is not None and not awaited.done():
            awaited.set_exception(error)
            awaited.exception()  # marks it as read: a server that ends does not await it
        if not self.ended.done():
            self.ended.set_result(error)

    def _ask(self, kind: bytes, body: bytes = b"") -> asyncio.Future[Part]:
        loop = asyncio.get_running_loop()
        self._awaited = loop.create_future()
        if self.ended.done():
            self._awaited.set_exception(self.ended.result())
            self._awaited.exception()
        else:
            self._send(frames.packed(kind, self.number, body))
        return self._awaited
