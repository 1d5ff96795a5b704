"""Log-in, TLS, and clients that break the protocol."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from slackwater.plugins.serve.log_in.authentication import VARIABLE, Password
from slackwater.plugins.serve.log_in.tls import tls_context
from state.errors import UsageError
from tests.slackwater.plugins.serve.raw_client import framed
from tests.slackwater.plugins.serve.served_sql import HOST, ServedSql, served
from tests.slackwater.plugins.serve.value_root import write_values
from tests.waiting import eventually

_PASSWORD = "ä long pässword, 16"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[ServedSql]:
    """An endpoint with a password and TLS."""
    root = write_values(tmp_path_factory.mktemp("locked") / "root")
    with served(root, password=_PASSWORD, tls=tls_context(*certificate)) as endpoint:
        yield endpoint


def test_a_client_proves_its_password_over_tls(locked: ServedSql, certificate: tuple[Path, Path]) -> None:
    with locked.connect(password=_PASSWORD, sslmode="verify-full", sslrootcert=str(certificate[0])) as client:
        assert client.execute("SELECT count(*) FROM totals").fetchone() == (3,)
        assert client.pgconn.ssl_in_use
        client.cancel_safe()
    with locked.connect(password=_PASSWORD, require_auth="scram-sha-256"):
        pass


@pytest.mark.parametrize("password", ["wrong password", "", _PASSWORD[:-1]])
def test_a_wrong_password_is_refused(locked: ServedSql, password: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        locked.connect(password=password)
    assert locked.connect(password=_PASSWORD).execute("SELECT 1").fetchone() == (1,)


def test_without_tls_a_server_with_files_refuses_the_client(locked: ServedSql) -> None:
    with pytest.raises(psycopg.OperationalError, match="sslmode=require"):
        locked.connect(password=_PASSWORD, sslmode="disable")


@pytest.mark.more
def test_a_server_without_files_says_so_to_a_client_that_wants_tls(values: ServedSql) -> None:
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        values.connect(sslmode="require")
    with values.connect(sslmode="prefer") as client:
        assert not client.pgconn.ssl_in_use


def test_a_password_that_is_too_short_is_refused() -> None:
    assert Password.from_environment({}) is None
    with pytest.raises(UsageError, match=f"{VARIABLE} is too short: give 8 characters or more"):
        Password.from_environment({VARIABLE: "short"})


def test_one_file_of_tls_is_not_enough(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    file, key = certificate
    assert tls_context(None, None) is None
    assert isinstance(tls_context(file, key), ssl.SSLContext)
    for one, other, said in (
        (file, None, "--tls-key is missing"),
        (None, key, "--tls-certificate is missing"),
        (tmp_path / "nothing", key, "--tls-certificate .*nothing cannot be read: No such file"),
        (key, file, "are not a certificate and its key"),
    ):
        with pytest.raises(UsageError, match=said):
            tls_context(one, other)


_STARTUP = struct.pack("!I", 196608) + b"user\0ann\0\0"
BROKEN = {
    "a page request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an old protocol": framed(b"", struct.pack("!I", 131072) + b"user\0ann\0\0"),
    "no end": framed(b"", struct.pack("!I", 196608) + b"user\0ann"),
    "a negative size": struct.pack("!i", -1),
    "an unknown message": framed(b"", _STARTUP) + framed(b"?", b""),
    "a short message": framed(b"", _STARTUP) + framed(b"B", b"\0\0\0\5"),
    "a large message": framed(b"", _STARTUP) + b"Q" + struct.pack("!I", 1 << 31),
    "a copy": framed(b"", _STARTUP) + framed(b"d", b"x"),
    "no text": framed(b"", _STARTUP) + framed(b"Q", b"\xff\xfe\0"),
    "nothing": b"",
    "half a message": framed(b"", _STARTUP) + b"Q\0\0",
}


@pytest.mark.more
def test_a_client_that_breaks_the_protocol_is_told_and_harms_no_other(values: ServedSql) -> None:
    with values.connect() as other:
        for name, said in BROKEN.items():
            with socket.create_connection((HOST, values.port), timeout=30) as connection:
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            is_silent = name in ("nothing", "half a message")
            assert (b"SFATAL" in answer) != is_silent, (name, answer)
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_another_session_is_not_cancelled_without_its_secret(values: ServedSql) -> None:
    with values.connect() as client:
        request = framed(b"", struct.pack("!II", 80877102, client.info.backend_pid) + b"\0\0\0\0")
        is_over, tried = threading.Event(), []

        def cancel() -> None:
            while not is_over.is_set():
                with socket.create_connection((HOST, values.port), timeout=30) as connection:
                    connection.sendall(request)
                    tried.append(connection.recv(100))

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            assert client.execute("SELECT count(*) FROM range(300000000)").fetchone() == (300_000_000,)
        finally:
            is_over.set()
            thread.join()
    assert set(tried) == {b""}


def test_the_statement_of_a_client_that_is_gone_ends(values: ServedSql) -> None:
    client = values.connect()
    client.pgconn.send_query(b"SELECT count(*) FROM range(100000000000) a, range(1000) b")
    client.pgconn.flush()
    assert values.server.sessions == 1
    client.pgconn.finish()
    eventually(lambda: not values.server.sessions, 30)
    assert values.rows("SELECT 1") == [(1,)]
