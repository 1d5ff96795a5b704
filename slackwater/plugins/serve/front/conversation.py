"""Conversation of a client after its log-in: groups of messages to its session, answers back, within the limits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from slackwater.confinement.worker_process import EXCESS
from slackwater.plugins.serve import messages as wire
from slackwater.plugins.serve.front.message_budget import MessageBudget, MessageShare
from slackwater.plugins.serve.front.remote_session import Part, RemoteSession
from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.front.worker_pool import Worker
from slackwater.plugins.serve.sql_error import CANCELLED, OUT_OF_MEMORY, PROTOCOL_VIOLATION, TOO_MUCH, SqlError

LARGEST_TEXT = 1 << 20
"""Bytes of a statement."""

_LARGEST = 64 << 20
_MOST_AT_ONCE = 1_000
_AGAIN_EVERY_S = 0.1
_LEAST_GRACE_S = 1.0
_GROUP_ENDS = b"QSHX"
_PIECE_BYTES = 64 << 10
_NO_SHARE = "the messages of all clients take more memory than the server gives: send less at once, or try later"
# A name and the types of the parameters come with the text.
_LARGEST_OF = {b"Q": LARGEST_TEXT + 1, b"P": LARGEST_TEXT + 65_535 * 4 + 1_000}


@dataclass(frozen=True)
class Group:
    """Messages of a client up to one that wants an answer.

    Args:
        messages: the messages, as they came.
        is_end: True if the client then ends the session.
    """

    messages: bytes
    is_end: bool


async def next_group(reader: asyncio.StreamReader, share: MessageShare) -> Group:
    """The messages up to and including the next message that requires an answer.

    Args:
        reader: the messages of the client.
        share: grows with the bytes from the client; the caller releases it.

    Raises:
        SqlError: a message is too large, or is not one of the protocol.
    """
    received = bytearray()
    for _ in range(_MOST_AT_ONCE):
        kind = await reader.readexactly(1)
        size = int.from_bytes(await reader.readexactly(4), "big") - 4
        if not 0 <= size <= _LARGEST:
            raise SqlError(PROTOCOL_VIOLATION, f"a message is larger than {_LARGEST >> 20} MiB")
        if kind == b"X":
            return Group(bytes(received), True)
        if size > _LARGEST_OF.get(kind, _LARGEST):
            await _discard(reader, size)
            received += wire.refused(
                kind, TOO_MUCH, f"a statement has more than {LARGEST_TEXT >> 20} MiB: use parameters"
            )
        else:
            await _receive(reader, kind, size, received, share)
        if kind in _GROUP_ENDS or len(received) > _LARGEST:
            break
    return Group(bytes(received), False)


async def _receive(
    reader: asyncio.StreamReader, kind: bytes, size: int, received: bytearray, share: MessageShare
) -> None:
    """Adds a message, or its refusal, to the received bytes."""
    before = len(received)
    received += kind + (size + 4).to_bytes(4, "big")
    start = len(received)
    while (left := start + size - len(received)) > 0:
        piece = min(_PIECE_BYTES, left)
        # Taken as the bytes come: a size alone, without them, takes nothing from other clients.
        if not share.resize(len(received) + piece):
            del received[before:]
            share.resize(before)
            await _discard(reader, left)
            received += wire.refused(kind, OUT_OF_MEMORY, _NO_SHARE)
            return
        received += await reader.readexactly(piece)
    wire.message(kind, bytes(received[start:]))


async def _discard(reader: asyncio.StreamReader, size: int) -> None:
    for at in range(0, size, _PIECE_BYTES):
        await reader.readexactly(min(_PIECE_BYTES, size - at))


class Conversation:
    """One client and its session.

    Args:
        reader: the messages of the client.
        worker: the worker of the session.
        budget: the memory for messages of all clients.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        worker: Worker,
        session: RemoteSession,
        limits: ServingLimits,
        budget: MessageBudget,
    ) -> None:
        self._budget = budget
        self._reader, self._writer = reader, writer
        self._worker, self._session, self._limits = worker, session, limits
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Answers until the client ends the session, or the connection.

        Raises:
            SqlError: the session ends with this error.
        """
        share, next_share = self._budget.share(), self._budget.share()
        following = asyncio.create_task(next_group(self._reader, next_share))
        try:
            while True:
                group = await self._awaited(following)
                if not group.messages:
                    return
                share, next_share = next_share, self._budget.share()
                # The next messages are read meanwhile: their end shows that the client is gone.
                following = asyncio.create_task(_never() if group.is_end else next_group(self._reader, next_share))
                if await self._answered(group, following) or group.is_end:
                    return
                share.release()
        finally:
            following.cancel()
            share.release()
            next_share.release()

    async def _awaited(self, following: asyncio.Task[Group]) -> Group:
        """The next messages, unless the worker ends, or the client is idle for too long."""
        awaited: list[asyncio.Future[Any]] = [following, self._session.ended]
        await asyncio.wait(awaited, timeout=self._limits.idle_s, return_when=asyncio.FIRST_COMPLETED)
        if self._session.ended.done():
            raise self._session.ended.result()
        if not following.done():
            raise SqlError("57P05", f"the session was idle for {self._limits.idle_s:g} s (--idle-timeout)")
        return following.result()

    async def _answered(self, group: Group, following: asyncio.Task[Group]) -> bool:
        """Sends the answers to a group; True if they end the session."""
        left_s = self._limits.timeout_s
        self._session.busy_since = self._loop.time()
        answer = self._session.ask(group.messages)
        while True:
            began = self._loop.time()
            part = await self._part(answer, following, left_s)
            left_s -= self._loop.time() - began
            self._writer.write(part.answers)
            # A slow client does not use up the time of its statement.
            await self._writer.drain()
            if part.is_last:
                return part.ends_session
            answer = self._session.ask_more()

    async def _part(self, answer: asyncio.Future[Part], following: asyncio.Task[Group], left_s: float) -> Part:
        """The next answers within a time; for a client that is gone they are not computed further."""
        limit = self._limits.timeout_s
        end = self._loop.time() + left_s
        last = end + max((EXCESS - 1) * limit, _LEAST_GRACE_S)
        while not answer.done():
            awaited: list[asyncio.Future[Any]] = [answer] if following.done() else [answer, following]
            await asyncio.wait(awaited, timeout=_AGAIN_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                break
            if following.done() and _is_gone(following):
                self._session.stop("the client is gone")
            self._session.insist()
            now = self._loop.time()
            if now > end:
                message = f"the statement took more than {limit:g} s (--timeout): read less, or give it more"
                self._session.interrupt(message)
                if now > last:
                    self._worker.condemn(self._session, SqlError(CANCELLED, message))
        return answer.result()


async def _never() -> Group:
    await asyncio.Event().wait()
    raise AssertionError


def _is_gone(following: asyncio.Task[Group]) -> bool:
    return following.exception() is not None or (following.result().is_end and not following.result().messages)
