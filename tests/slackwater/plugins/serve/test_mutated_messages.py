"""Mutated messages over real sockets: the server answers or closes, and goes on serving."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from random import Random

import pytest

from slackwater.plugins.serve.front.serving_limits import ServingLimits
from tests.slackwater.plugins.serve.raw_client import RawClient, framed, startup
from tests.slackwater.plugins.serve.served_sql import ServedSql, served
from tests.slackwater.reading.written_root import WrittenRoot

_TEXTS = [
    b"SELECT carrier, n FROM by_carrier WHERE carrier = $1", b"BEGIN", b"COMMIT", b"SELECT 1; SELECT 2",
    b"DECLARE c CURSOR WITH HOLD FOR SELECT * FROM range(1000)", b"FETCH 10 FROM c", b"SHOW ALL", b"CLOSE ALL",
    b"EXPLAIN ANALYZE SELECT count(*) FROM files", b"SET slackwater.epoch = '3'", b"DISCARD ALL", b"",
    b"SELECT relname FROM pg_catalog.pg_class WHERE relname OPERATOR(pg_catalog.~) '^(a)$' COLLATE pg_catalog.default",
    b"SELECT levenshtein(repeat('a', 3000), repeat('b', 3000))", b"SELECT $$ $1 $$, 'a''b', \"c\" /* d */ -- e",
    b"SELECT * FROM slackwater_why('day=1/a.csv')", b"WITH a AS (SELECT 1) SELECT * FROM a JOIN late ON true LIMIT 5",
]  # fmt: skip
_MARKS = [b"'", b'"', b"$", b";", b"\r", b"/*", b"--", b"\xef\xbb\xbf", b"("]
_VALUES = [b"AA", b"", b"'", b"\0", b"1", b"\xff\xfe", b"x" * 5_000]
_OIDS = [0, 16, 17, 20, 23, 25, 700, 1082, 1114, 1700, 1007, 2950, 999_999]


def sane(random: Random) -> bytes:
    """A group of messages as a driver sends them."""
    text, value = random.choice(_TEXTS), random.choice(_VALUES)
    if random.random() < 0.3:
        return framed(b"Q", text + b"\0")
    name = random.choice([b"", b"p"])
    bind = name + b"\0" + name + struct.pack("!HHH", 1, random.randrange(2), 1) + struct.pack("!I", len(value)) + value
    return b"".join(
        [
            framed(b"C", b"S" + name + b"\0"),
            framed(b"P", name + b"\0" + text + b"\0" + struct.pack("!HI", 1, random.choice(_OIDS))),
            framed(b"B", bind + struct.pack("!HH", 1, random.randrange(2))),
            framed(b"D", random.choice([b"S", b"P"]) + name + b"\0"),
            framed(b"E", name + b"\0" + struct.pack("!I", random.choice([0, 1, 10]))),
            framed(b"S", b""),
        ]
    )


def mutated(random: Random, sent: bytes) -> bytes:
    """The same with some bytes changed, dropped, repeated, or cut off."""
    changed = bytearray(sent)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed))
        match random.randrange(5):
            case 0:
                changed[at] = random.randrange(256)
            case 1:
                del changed[at : at + random.randrange(1, 9)]
            case 2:
                changed[at:at] = random.randbytes(random.randrange(1, 9))
            case 3:
                changed[at:at] = changed[at : at + random.randrange(1, 40)]
            case _:
                changed[at : at + 1] = random.choice(
                    [b"'", b'"', b"$", b";", b"\r", b"/*", b"--", b"\xef\xbb\xbf", b"("]
                )
        changed = changed or bytearray(b"S")
    return bytes(changed)


@pytest.fixture(scope="module")
def served_root(written: WrittenRoot) -> Iterator[ServedSql]:
    limits = ServingLimits(timeout_s=4)
    with served(written.root.url, limits=limits, max_memory_bytes=256 << 20, spare=1) as endpoint:
        yield endpoint


def talk(endpoint: ServedSql, random: Random, groups: int) -> float:
    """Sends groups, most of them mutated, over connections that end as they may.  Returns the longest wait."""
    longest, sent = 0.0, 0
    while sent < groups:
        with RawClient(endpoint.port) as client:
            client.send(startup()).until(b"Z")
            client.socket.settimeout(0.05)
            for _ in range(random.randrange(1, 40)):
                group = sane(random)
                began = time.monotonic()
                try:
                    client.send(mutated(random, group) if random.random() < 0.8 else group)
                    sent += 1
                    received = client.socket.recv(65_536)
                    while received and received[-6:-1] != b"Z\0\0\0\5":
                        received = client.socket.recv(65_536)
                    if not received:
                        break
                except TimeoutError:
                    pass  # the message says that more bytes follow, or no answer is due
                except ConnectionError:
                    break
                longest = max(longest, time.monotonic() - began)
    return longest


@pytest.mark.more
def test_mutated_messages_end_no_server(served_root: ServedSql) -> None:
    assert talk(served_root, Random(1), 60) < 60
    assert served_root.rows("SELECT n FROM by_carrier WHERE carrier = 'AA'") == [(903,)]


@pytest.mark.more
def test_20_000_mutated_messages_end_no_server(served_root: ServedSql) -> None:
    for seed in range(50):
        # A hundred groups have some 450 messages.
        longest = talk(served_root, Random(seed), 100)
        assert longest < 60, seed
        assert served_root.rows("SELECT n FROM by_carrier WHERE carrier = 'AA'") == [(903,)], seed
