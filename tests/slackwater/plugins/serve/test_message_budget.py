"""Memory of the front for messages that clients have not finished, or whose answers are not sent yet."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from slackwater.plugins.serve.front.serving_limits import ServingLimits
from tests.slackwater.plugins.serve.raw_client import RawClient, framed, startup
from tests.slackwater.plugins.serve.served_sql import ServedSql, served
from tests.slackwater.reading.written_root import WrittenRoot
from tests.waiting import eventually

_MIB = 1 << 20
_BUDGET = 8 * _MIB


@pytest.fixture(scope="module")
def endpoint(written: WrittenRoot) -> Iterator[ServedSql]:
    with served(written.root.url, limits=ServingLimits(max_message_bytes=_BUDGET)) as endpoint:
        yield endpoint


def parameter_of(size: int) -> bytes:
    """Messages of a statement with a parameter of some bytes."""
    value = b"\0\0" + struct.pack("!HHI", 0, 1, size) + b"x" * size + struct.pack("!H", 0)
    parse = framed(b"P", b"\0SELECT length($1::text)\0" + struct.pack("!HI", 1, 25))
    return parse + framed(b"B", value) + framed(b"E", b"\0\0\0\0\0") + framed(b"S", b"")


def answer(client: RawClient) -> bytes:
    """The fields of the row, or of the error, in the answer to such messages."""
    return b"".join(body for kind, body in client.until(b"Z") if kind in (b"D", b"E"))


def test_half_sent_messages_share_a_budget_and_stop_no_client(endpoint: ServedSql) -> None:
    with ExitStack() as stack:
        half_sent = [stack.enter_context(RawClient(endpoint.port)) for _ in range(20)]
        for client in half_sent:
            client.send(startup()).until(b"Z")
            client.send(b"B" + struct.pack("!I", 32 * _MIB) + b"x" * _MIB)
        eventually(lambda: endpoint.server.message_bytes > _BUDGET - _MIB, 60)
        assert endpoint.server.message_bytes <= _BUDGET

        # The rest of the clients are served, except for one with a large message of its own.
        assert endpoint.rows("SELECT length(%s::text)", "x" * 50_000) == [(50_000,)]
        large = stack.enter_context(RawClient(endpoint.port))
        large.send(startup()).until(b"Z")
        large.send(parameter_of(2 * _MIB))
        assert b"C53200" in answer(large)
        assert large.until(b"Z")[-1][0] == b"Z"

        for client in half_sent:
            client.socket.close()
        eventually(lambda: endpoint.server.message_bytes == 0, 60)
        large.send(parameter_of(2 * _MIB))
        assert answer(large).endswith(str(2 * _MIB).encode())


@pytest.mark.more
def test_a_message_returns_its_share_when_it_is_answered(endpoint: ServedSql) -> None:
    with RawClient(endpoint.port) as client:
        client.send(startup()).until(b"Z")
        for _ in range(4):
            client.send(parameter_of(3 * _MIB))
            assert answer(client).endswith(str(3 * _MIB).encode())
            eventually(lambda: endpoint.server.message_bytes == 0, 60)
        client.send(parameter_of(9 * _MIB))
        assert b"C53200" in answer(client)
