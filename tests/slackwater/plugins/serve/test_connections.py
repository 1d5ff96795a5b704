"""Connections of the endpoint: their number, their time before the log-in, refused passwords, and TLS."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
import structlog

from slackwater.plugins.serve.front.serving_limits import ServingLimits
from slackwater.plugins.serve.log_in.authentication import VARIABLE, Password, ScramExchange
from slackwater.plugins.serve.log_in.client_connection import ClientConnection
from slackwater.plugins.serve.log_in.connection_slots import SURPLUS, ConnectionSlots, Slot, network_of
from slackwater.plugins.serve.log_in.log_in_pace import LogInPace
from slackwater.plugins.serve.log_in.tls import tls_context
from slackwater.plugins.serve.sql_error import SqlError
from state.errors import UsageError
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.serve.raw_client import SSL_REQUEST, RawClient, framed, startup
from tests.slackwater.plugins.serve.served_sql import HOST, ServedSql, served
from tests.slackwater.reading.written_root import WrittenRoot
from tests.waiting import eventually

_PASSWORD = "a long password"
_FEW = 3


@pytest.fixture(scope="module")
def few(written: WrittenRoot) -> Iterator[ServedSql]:
    """An endpoint with a password, for three connections."""
    with served(written.root.url, password=_PASSWORD, limits=ServingLimits(connections=_FEW)) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def encrypted(written: WrittenRoot, certificate: tuple[Path, Path]) -> Iterator[ServedSql]:
    """An endpoint with a password and TLS, where a log-in may take one second."""
    limits = ServingLimits(log_in_s=1.0)
    with served(written.root.url, password=_PASSWORD, tls=tls_context(*certificate), limits=limits) as endpoint:
        yield endpoint


def _is_in(endpoint: ServedSql) -> bool:
    try:
        with endpoint.connect(password=_PASSWORD, sslmode="disable") as client:
            return client.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


# ---- the number of connections ---------------------------------------------------------------------------------------


def test_no_more_clients_are_in_than_connections_are_allowed(few: ServedSql) -> None:
    together = threading.Barrier(12)
    clients: list[psycopg.Connection[Any]] = []

    def log_in(_: int) -> str:
        together.wait(60)
        try:
            clients.append(few.connect(password=_PASSWORD, sslmode="disable"))
        except psycopg.OperationalError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(12) as threads:
        refusals = [reason for reason in threads.map(log_in, range(12)) if reason]
    try:
        assert 1 <= len(clients) <= _FEW and len(clients) == few.server.sessions
        while len(clients) < _FEW:
            clients.append(few.connect(password=_PASSWORD, sslmode="disable"))
        with pytest.raises(psycopg.OperationalError, match="3 connections already"):
            few.connect(password=_PASSWORD, sslmode="disable")
        assert refusals and few.server.sessions == _FEW
        # Sessions are not evicted by later connections.
        with ExitStack() as silent:
            for _ in range(3 * SURPLUS):
                silent.enter_context(RawClient(few.port))
            eventually(lambda: few.server.connections == _FEW + SURPLUS, 30)
            assert all(client.execute("SELECT 1").fetchone() == (1,) for client in clients)
    finally:
        for client in clients:
            client.close()
    eventually(lambda: few.server.connections == 0, 30)
    assert _is_in(few)


def test_a_statement_can_be_cancelled_when_all_connections_are_taken(few: ServedSql) -> None:
    with ExitStack() as clients:
        first = clients.enter_context(few.connect(password=_PASSWORD, sslmode="disable"))
        for _ in range(_FEW - 1):
            clients.enter_context(few.connect(password=_PASSWORD, sslmode="disable"))
        timer = threading.Timer(0.2, first.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            first.execute("SELECT count(*) FROM range(100000000000) a, range(1000) b")
        timer.join()
    eventually(lambda: few.server.connections == 0, 30)


def test_silent_connections_lock_nobody_out(few: ServedSql) -> None:
    with ExitStack() as silent:
        connections = [silent.enter_context(RawClient(few.port)) for _ in range(300)]
        for connection in connections[::2]:
            try:
                connection.send(startup()[:-1])
            except ConnectionError:
                pass  # it was evicted before
        assert _is_in(few)
        assert few.server.connections <= _FEW


def test_the_network_with_most_pending_connections_gives_up_its_oldest() -> None:
    evicted: list[str] = []

    def slot(name: str, network: str) -> Slot:
        return Slot(network, lambda: evicted.append(name))

    slots = ConnectionSlots(4)
    session = slot("session", "flood")
    slots.take(session)
    assert slots.may_log_in(session)
    slots.log_in(session)
    alone = slot("alone", "other")
    slots.take(alone)
    for number in range(6):
        slots.take(slot(f"flood {number}", "flood"))
    assert evicted == ["flood 0", "flood 1", "flood 2", "flood 3"] and slots.count == 4
    assert slots.may_log_in(alone)
    slots.log_in(alone)
    slots.release(session)
    slots.take(slot("late", "other"))
    assert len(evicted) == 4 and slots.count == 4


def test_a_connection_beyond_the_limit_logs_in_when_another_one_has_ended() -> None:
    slots = ConnectionSlots(1)
    first, second = Slot("a", pytest.fail), Slot("b", pytest.fail)
    slots.take(first)
    slots.log_in(first)
    slots.take(second)
    assert not slots.may_log_in(second)
    slots.release(first)
    assert slots.may_log_in(second)
    slots.log_in(second)
    slots.release(second)
    assert slots.count == 0


def test_addresses_of_one_network_count_as_one() -> None:
    assert network_of("192.0.2.7") == "192.0.2.7" != network_of("192.0.2.8")
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") != network_of("2001:db8:0:1::1")
    assert network_of("fe80::1%eth0") == network_of("fe80::2%eth0")


def test_more_connections_than_open_files_are_refused_at_the_start(written: WrittenRoot) -> None:
    ended = slackwater("serve", written.root.url, "--port", "0", "--max-connections", str((1 << 31) - 1))
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert "open files, and this process may open" in ended.err


# ---- before the log-in -----------------------------------------------------------------------------------------------

_SILENT: dict[str, Callable[[RawClient], object]] = {
    "nothing": lambda client: None,
    "half a length": lambda client: client.send(b"\0\0"),
    "half a first message": lambda client: client.send(startup()[:-3]),
    "a request for TLS": lambda client: (client.send(SSL_REQUEST), client.exactly(1)),
    "half a handshake": lambda client: (client.send(SSL_REQUEST), client.exactly(1), client.send(b"\x16\3\1\2\0\1\0")),
    "TLS, and nothing inside it": RawClient.start_tls,
    "no proof": lambda client: (client.start_tls(), client.send(startup()), client.message()),
    "half a proof": lambda client: (client.start_tls(), client.send(startup() + b"p\0\0\0\x40"), client.message()),
}


@pytest.mark.more
@pytest.mark.parametrize("kind", _SILENT)
def test_a_client_that_does_not_log_in_is_disconnected(encrypted: ServedSql, kind: str) -> None:
    with RawClient(encrypted.port) as client:
        _SILENT[kind](client)
        client.rest()
    eventually(lambda: encrypted.server.connections == 0, 30)


def test_a_log_in_may_take_ten_seconds() -> None:
    assert ServingLimits().log_in_s == 10.0


def test_bytes_between_a_request_for_tls_and_its_handshake_close_the_connection(encrypted: ServedSql) -> None:
    with structlog.testing.capture_logs() as logged, RawClient(encrypted.port) as client:
        client.send(SSL_REQUEST + startup(application_name="injected"))
        assert client.rest() == b""
        client.socket.close()
        eventually(lambda: encrypted.server.connections == 0, 30)
    assert [(line["event"], line["address"]) for line in logged] == [
        ("a connection was closed: plaintext follows its request for TLS", HOST)
    ]


def test_plaintext_in_place_of_a_handshake_closes_the_connection(encrypted: ServedSql) -> None:
    with RawClient(encrypted.port) as client:
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        client.send(startup())
        assert b"SCRAM" not in client.rest()


@pytest.mark.parametrize("request_", [SSL_REQUEST, framed(b"", (80877104).to_bytes(4, "big"))], ids=["TLS", "GSSAPI"])
def test_a_client_asks_for_each_encryption_once(few: ServedSql, request_: bytes) -> None:
    with RawClient(few.port) as client:
        client.send(request_)
        assert client.exactly(1) == b"N"
        client.send(request_)
        kind, body = client.message()
        assert kind == b"E" and b"twice" in body


# ---- passwords -------------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_logged_with_its_address_and_answered_late(few: ServedSql) -> None:
    with structlog.testing.capture_logs() as logged:
        began = monotonic()
        with RawClient(few.port) as client:
            kind, body = client.log_in("a wrong password")
        assert kind == b"E" and b"C28P01" in body and monotonic() - began >= 1.0
        with RawClient(few.port) as client:
            assert client.log_in(_PASSWORD)[0] == b"R"
    assert [line for line in logged if line["log_level"] == "warning"] == [
        {
            "actor": "serve",
            "event": "a log-in was refused: wrong password",
            "address": HOST,
            "user": "ann",
            "log_level": "warning",
        }
    ]


def test_a_log_in_with_a_wrong_password_does_not_stop_other_clients(few: ServedSql) -> None:
    with few.connect(password=_PASSWORD, sslmode="disable") as client, RawClient(few.port) as other:
        other.send(startup())
        bare = other.send_nonce()
        other.send_proof(bare, other.message()[1][4:], "a wrong password")
        assert client.execute("SELECT 1").fetchone() == (1,)
        assert other.message()[0] == b"E"


def test_after_a_wrong_password_its_network_waits_for_its_turn() -> None:
    async def times() -> None:
        loop, pace = asyncio.get_running_loop(), LogInPace()

        async def attempt(network: str, *, is_wrong: bool) -> float:
            began = loop.time()
            async with pace.turn(network):
                if is_wrong:
                    pace.refused(network)
            return loop.time() - began

        assert await attempt("a", is_wrong=False) < 0.1 and pace.networks == 0
        guesses = [asyncio.create_task(attempt("a", is_wrong=True)) for _ in range(5)]
        gone = [asyncio.create_task(attempt("a", is_wrong=True)) for _ in range(500)]
        await asyncio.sleep(0)
        right = asyncio.create_task(attempt("a", is_wrong=False))
        assert await attempt("b", is_wrong=False) < 0.1
        for task in gone:
            task.cancel()
        # Behind five wrong passwords, and not behind clients that are gone.
        assert 0.5 <= await right < 10
        assert [await guess >= number * 0.1 - 0.01 for number, guess in enumerate(guesses)] == [True] * 5
        for number in range(1_000):
            await attempt(str(number), is_wrong=True)
        await asyncio.sleep(0.2)
        assert await attempt("last", is_wrong=False) < 0.1 and pace.networks == 0

    asyncio.run(times())


def test_a_client_that_leaves_during_its_log_in_gives_its_place_back(few: ServedSql) -> None:
    with ExitStack() as others:
        guessing = [others.enter_context(RawClient(few.port)) for _ in range(_FEW)]
        for client in guessing:
            client.send(startup())
            bare = client.send_nonce()
            client.send_proof(bare, client.message()[1][4:], "a wrong password")
        eventually(lambda: few.server.connections == _FEW, 30)
    eventually(lambda: few.server.connections == 0, 30)
    assert _is_in(few)


def test_work_for_a_client_that_is_gone_is_cancelled() -> None:
    async def left() -> None:
        accepted, client = socket.socketpair()
        accepted.setblocking(False)
        connection = ClientConnection(accepted, HOST)
        cancelled = asyncio.Event()

        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        with client:
            await connection._make_streams(None, 1.0)
            work = asyncio.create_task(connection.unless_gone(endless()))
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            with pytest.raises(asyncio.IncompleteReadError):
                await work
        assert cancelled.is_set()
        await connection.close()

    asyncio.run(left())


def test_a_message_before_the_verdict_ends_the_log_in(few: ServedSql) -> None:
    with RawClient(few.port) as client:
        client.send(startup())
        bare = client.send_nonce()
        client.send_proof(bare, client.message()[1][4:], "a wrong password")
        client.send(framed(b"Q", b"SELECT 1\0"))
        kind, body = client.message()
        assert kind == b"E" and b"C08P01" in body


def test_guesses_of_the_secret_of_a_session_are_slow_and_logged(few: ServedSql) -> None:
    with few.connect(password=_PASSWORD, sslmode="disable") as victim:
        request = framed(b"", struct.pack("!II", 80877102, victim.info.backend_pid) + b"\0\0\0\0")
        with structlog.testing.capture_logs() as logged:
            began = monotonic()
            for _ in range(4):
                with RawClient(few.port) as client:
                    assert client.send(request).rest() == b""
            assert monotonic() - began >= 0.3
        assert [line["address"] for line in logged if "wrong secret" in line["event"]] == [HOST] * 4
        assert victim.execute("SELECT 1").fetchone() == (1,)


def _reset(client: RawClient) -> None:
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "TLS"])
def test_a_reset_at_any_step_leaves_nothing_behind(few: ServedSql, encrypted: ServedSql, is_encrypted: bool) -> None:
    endpoint = encrypted if is_encrypted else few
    with structlog.testing.capture_logs() as logged:
        for step in range(6):
            client = RawClient(endpoint.port)
            if is_encrypted and step:
                client.start_tls()
            if step > 1:
                client.send(startup())
            if step > 2:
                bare = client.send_nonce()
            if step > 3:
                challenge = client.message()[1][4:]
            if step > 4:
                client.send_proof(bare, challenge, _PASSWORD)
            _reset(client)
        for number in range(1, 4):
            client = RawClient(endpoint.port)
            if is_encrypted:
                client.start_tls()
            assert client.log_in(_PASSWORD)[0] == b"R"
            if number > 1:
                client.until(b"Z")
            if number > 2:
                client.send(framed(b"Q", b"SELECT count(*) FROM range(100000000000) a, range(1000) b\0"))
            _reset(client)
        eventually(lambda: endpoint.server.connections == 0 and endpoint.server.sessions == 0, 60)
    assert [line["event"] for line in logged if line["log_level"] in ("error", "critical")] == []


@pytest.mark.more
def test_clients_that_reset_their_connections_fill_no_log(flights: ServedSql, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        _reset(RawClient(flights.port).send(startup()))
    eventually(lambda: not flights.server.connections, 60)
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


REFUSED = {
    "channel binding": {"header": b"p=tls-server-end-point,,", "mechanism": b"SCRAM-SHA-256-PLUS"},
    "another mechanism": {"mechanism": b"PLAIN"},
    "another identity": {"header": b"n,a=admin,"},
    "no header": {"header": b""},
    "no nonce": {"bare": b"n=,r="},
    "a nonce of bytes": {"bare": b"n=,r=\xff\xfe"},
    "a nonce with a field": {"bare": b"n=,r=a,s=AAAA,i=1"},
    "an extension": {"bare": b"m=1,n=,r=abcdefgh"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_first_message_of_another_exchange_is_refused(few: ServedSql, name: str) -> None:
    with RawClient(few.port) as client:
        client.send(startup())
        client.send_nonce(**REFUSED[name])
        kind, body = client.message()
        assert kind == b"E" and b"C08P01" in body and b"SCRAM-SHA-256 without channel binding" in body


def test_mutated_exchanges_end_in_errors_of_the_protocol() -> None:
    rng = random.Random(7)
    password = Password.of(_PASSWORD)
    first = b"SCRAM-SHA-256\0\0\0\0\x10n,,n=,r=abcdefgh"

    def mutated(message: bytes) -> bytes:
        edited = bytearray(message)
        for _ in range(rng.randrange(4)):
            edited[rng.randrange(len(edited))] = rng.choice(b"\0\xff,=nrcp\xc3" + bytes([rng.randrange(256)]))
        return bytes(edited[: rng.randrange(len(edited) + 1)] if rng.random() < 0.3 else edited)

    answered = 0
    for _ in range(3_000):
        exchange = ScramExchange(password)
        try:
            challenge = exchange.challenge(mutated(first))
            answered += 1
            nonce = challenge.split(b",")[0][2:]
            exchange.verdict(mutated(b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"="), "ann")
        except SqlError:
            continue
        pytest.fail("a password was proved without being known")
    assert answered > 500


@pytest.mark.more_after(1)
@pytest.mark.parametrize("text", ["ein größeres Paßwort", "with a no-break\u00a0space", "soft\u00adhyphenated"])
def test_a_password_beyond_ascii_is_prepared_as_libpq_does(written: WrittenRoot, text: str) -> None:
    with served(written.root.url, password=text) as endpoint:
        assert endpoint.connect(password=text).execute("SELECT 1").fetchone() == (1,)


def test_a_password_that_saslprep_prohibits_is_refused() -> None:
    with pytest.raises(UsageError, match=f"{VARIABLE} contains a character that SASLprep"):
        Password.from_environment({VARIABLE: "a long password \U0001f980"})
    assert "keys" not in repr(Password.of(_PASSWORD))


def _mutated(rng: random.Random, message: bytes) -> bytes:
    """A message with some bytes changed, a length field at an edge, cut off, or doubled."""
    edited = bytearray(message)
    for _ in range(rng.randrange(1, 4)):
        edited[rng.randrange(len(edited))] = rng.randrange(256)
    match rng.randrange(5):
        case 0:
            return bytes(edited[: rng.randrange(len(edited))])
        case 1:
            edge = rng.choice([0, 3, 4, 7, 8, 10_003, 10_004, 10_005, 1 << 31, (1 << 32) - 1])
            return struct.pack("!I", edge) + bytes(edited[4:])
        case 2:
            return bytes(edited) * 2
    return bytes(edited)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.more) for seed in range(2, 12))])
def test_mutated_log_ins_leave_the_server_as_it_was(few: ServedSql, encrypted: ServedSql, seed: int) -> None:
    rng = random.Random(seed)
    steps = [
        SSL_REQUEST,
        struct.pack("!IIII", 16, 80877102, 1, 1),
        startup(application_name="mutated", client_encoding="UTF8"),
        framed(b"p", b"SCRAM-SHA-256\0\0\0\0\x10n,,n=,r=abcdefgh"),
        framed(b"p", b"c=biws,r=abcdefgh,p=" + b"A" * 43 + b"="),
    ]
    with structlog.testing.capture_logs() as logged:
        for number in range(100):
            endpoint = encrypted if number % 2 else few
            with RawClient(endpoint.port) as client:
                try:
                    if number % 4 == 1:
                        client.start_tls()
                    wrong = rng.randrange(len(steps))
                    for step in steps[2 if wrong > 2 else wrong : wrong]:
                        client.send(step)
                    client.send(_mutated(rng, steps[wrong]))
                    client.socket.shutdown(socket.SHUT_WR)
                    client.rest()
                except OSError:
                    pass  # the server has closed the connection
        eventually(lambda: few.server.connections == encrypted.server.connections == 0, 60)
    assert [line["event"] for line in logged if line["log_level"] in ("error", "critical")] == []
    assert _is_in(few)


# ---- the port --------------------------------------------------------------------------------------------------------


@pytest.mark.more
def test_all_addresses_of_a_host_have_the_same_free_port(written: WrittenRoot) -> None:
    with served(written.root.url, host="localhost") as endpoint:
        for family, _, _, _, address in socket.getaddrinfo("localhost", endpoint.port, type=socket.SOCK_STREAM):
            with socket.socket(family) as connection:
                connection.connect(address)
                connection.sendall(startup())
                assert connection.recv(1) == b"R"
