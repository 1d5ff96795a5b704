"""`slackwater serve` in a process of its own."""

from __future__ import annotations

import re
import signal
import socket
import threading
from pathlib import Path

import psycopg
import pytest

from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import started
from tests.slackwater.reading.written_root import RootWriter, write_root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("serve")
    return str(write_root(Location(str(place / "root")), Location(str(place / "raw"))).root)


def test_one_line_says_where_the_endpoint_is_and_a_signal_ends_it(root: str) -> None:
    process = started("serve", root, "--port", "0", environment={"SLACKWATER_PASSWORD": "a long password"})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        said = re.fullmatch(
            rf"(postgresql://slackwater@127\.0\.0\.1:\d+/slackwater) serves file://{re.escape(root)} "
            r"\(needs the password\); Ctrl-C ends it\n",
            line,
        )
        assert said is not None, line
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(said[1])
        with psycopg.connect(said[1], password="a long password", autocommit=True) as client:
            assert client.execute("SELECT n FROM by_carrier WHERE carrier = 'AA'").fetchone() == (903,)
            # A statement that runs does not delay the end.
            timer = threading.Timer(1, process.send_signal, [signal.SIGINT])
            timer.start()
            with pytest.raises(psycopg.Error):
                client.execute("SELECT count(*) FROM range(100000000000) a, range(1000) b")
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_one_line_also_when_the_process_ends(root: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = started("serve", root, "--port", str(taken.getsockname()[1]))
        out, err = process.communicate(timeout=60)
    # DuckDB lists the objects that a process has not closed when its interpreter ends.
    assert (process.returncode, out, err.count("\n")) == (2, "", 1), err
    assert "address already in use" in err


@pytest.mark.more
def test_what_cannot_be_served_is_an_error_of_one_line(root: str, tmp_path: Path) -> None:
    RootWriter(Location(str(tmp_path / "empty")), Location("/nowhere"))
    (tmp_path / "some.pem").write_text("nothing")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, code, said in (
            ((root, "--port", port), 2, f"127.0.0.1 port {port} cannot be listened on: address already in use"),
            ((str(tmp_path / "nothing"),), 1, "there is no Slackwater store at"),
            ((str(tmp_path / "empty"),), 1, "no epoch has been committed"),
            ((root, "--host", "0.0.0.0"), 2, "variable SLACKWATER_PASSWORD must have a password; set it, or leave"),
            ((root, "--tls-key", str(tmp_path / "some.pem")), 2, "--tls-certificate is missing"),
            ((root, "--tls-certificate", str(tmp_path / "some.pem")), 2, "--tls-key is missing"),
            ((root, "-o", "endpoint"), 2, "-o takes KEY=VALUE"),
        ):
            ended = slackwater("serve", *arguments)
            assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), ended
            assert said in ended.err
