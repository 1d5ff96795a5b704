"""The front against a worker that was taken over: it sends frames of its own choice."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from slackwater.confinement import frames
from slackwater.confinement.errors import WorkerEndedError, decoded_error, encoded_error
from slackwater.plugins.serve.front.remote_session import RemoteSession
from slackwater.plugins.serve.front.worker_pool import Worker, WorkerSettings
from slackwater.plugins.serve.sql_error import SqlError
from state.errors import EpochExpiredError, OwnedError, SlackwaterError, UsageError


class _NoProcess:
    """Replaces the process of a worker whose socket the test holds."""

    pid, exit_code = 0, None

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.is_killed = connection, False

    def private_bytes(self) -> int:
        return 0

    def kill(self) -> None:
        self.is_killed = True

    def wait(self) -> None:
        assert self.is_killed

    def was_out_of_memory(self) -> bool:
        return False


BROKEN = {
    "an answer without a request": frames.packed(frames.PART, 2, b"x"),
    "an answer of an unknown session": frames.packed(frames.LAST, 77, b"x"),
    "an unknown kind": frames.packed(b"?", 1, b"x"),
    "a second start": frames.packed(frames.READY, 0),
    "a huge frame": frames.HEADER.pack(frames.PART, 1, 4_000_000_000),
    "half a frame": frames.packed(frames.PART, 1, b"xyz")[:-1],
    "nothing": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_worker_that_breaks_the_protocol_is_ended(name: str) -> None:
    async def run() -> tuple[bool, SqlError, SqlError]:
        mine, its = socket.socketpair()
        process = _NoProcess(mine)
        worker = Worker(WorkerSettings("file:///nowhere", {}, 1 << 30), process)  # type: ignore[arg-type]
        its.sendall(frames.packed(frames.READY, 0))
        reader = await worker.start()
        asking, idle = worker.open({}), worker.open({})
        answer = asking.ask(b"S\0\0\0\4")
        its.sendall(BROKEN[name])
        if name in ("half a frame", "nothing"):
            its.shutdown(socket.SHUT_WR)
        await asyncio.wait_for(worker.read(reader), 60)
        with pytest.raises(SqlError) as raised:
            await answer
        its.close()
        return process.is_killed, raised.value, idle.ended.result()

    is_killed, of_asking, of_idle = asyncio.run(run())
    assert is_killed
    assert (of_asking.sqlstate, of_idle.sqlstate) == ("57P01", "57P01")


def test_an_answer_goes_to_its_session_alone() -> None:
    async def run() -> None:
        sent: list[bytes] = []
        session = RemoteSession(5, sent.append)
        answer = session.ask(b"messages")
        assert sent == [frames.packed(frames.MESSAGES, 5, b"messages")]
        assert session.receive(frames.Frame(frames.PART, 5, b"one"))
        part = await answer
        assert (part.answers, part.is_last, part.ends_session) == (b"one", False, False)
        assert not session.receive(frames.Frame(frames.PART, 5, b"more"))

    asyncio.run(run())


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"\xff", b'{"kind": "SystemExit", "text": "x"}', b'{"kind": [], "text": "x"}', b"[" * 100_000],
)
def test_an_error_of_a_worker_is_of_a_known_class(body: bytes) -> None:
    assert type(decoded_error(body)) is WorkerEndedError


@pytest.mark.parametrize(
    ("error", "kind"), [(EpochExpiredError("e"), EpochExpiredError), (OwnedError("o"), SlackwaterError)]
)
def test_an_error_keeps_its_class_if_the_front_accepts_it(error: SlackwaterError, kind: type[SlackwaterError]) -> None:
    decoded = decoded_error(encoded_error(error))
    assert (type(decoded), str(decoded)) == (kind, str(error))
    long = decoded_error(json.dumps({"kind": "UsageError", "text": "x" * 100_000}).encode())
    assert type(long) is UsageError and len(str(long)) <= 10_000
