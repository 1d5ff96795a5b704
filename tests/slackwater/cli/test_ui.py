"""`slackwater ui` in a process of its own."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from state.location import Location
from tests.cases import few
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import started
from tests.slackwater.reading.written_root import write_root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("ui")
    return str(write_root(Location(str(place / "root")), Location(str(place / "raw"))).root)


@contextmanager
def serving(*arguments: str, token: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and the line that it prints first."""
    process = started("ui", *arguments, environment={"SLACKWATER_UI_TOKEN": token})
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def asked(port: int, token: str = "") -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/now", headers={"Authorization": f"Bearer {token}"} if token else {})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM], signal.SIGTERM))
def test_one_line_says_where_the_page_is_and_a_signal_ends_it(root: str, number: signal.Signals) -> None:
    with serving(root, "--port", "0") as (process, line):
        said = re.fullmatch(rf"http://127\.0\.0\.1:(\d+)/ shows file://{re.escape(root)}; Ctrl-C ends it\n", line)
        assert said is not None, line
        assert asked(int(said[1]))[0] == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")


def test_beyond_this_machine_a_new_token_is_made_and_told_once(root: str) -> None:
    with serving(root, "--host", "0.0.0.0", "--port", "0") as (process, line):
        said = re.match(r"http://[^/]+:(\d+)/#token=([0-9a-f]{48}) shows ", line)
        assert said is not None, line
        port, token = int(said[1]), said[2]
        assert asked(port)[0] == 401
        assert asked(port, token)[0] == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert token not in out + err


@pytest.mark.more
def test_a_token_that_somebody_chose_is_asked_for_and_not_told(root: str, tmp_path: Path) -> None:
    token, file = "a-token-of-some-length", tmp_path / "token"
    file.write_text(token)
    for arguments, variable in ((("--token-file", str(file)), ""), ((), token)):
        with serving(root, "--port", "0", *arguments, token=variable) as (_, line):
            assert token not in line and "(needs the token)" in line
            port = int(line.split("/ ")[0].rpartition(":")[2])
            assert (asked(port)[0], asked(port, token)[0]) == (401, 200)


@pytest.mark.more
def test_what_cannot_be_served_is_an_error_of_one_line(root: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = slackwater("ui", root, "--port", port)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert f"port {port} cannot be listened on" in ended.err and "--port" in ended.err
    for arguments, code, said in (
        ((str(tmp_path / "nothing"),), 1, "there is no Slackwater store at"),
        ((root, "--host", "no.such.host.invalid"), 2, "is not an address of this machine"),
        ((root, "--host", "192.0.2.1"), 2, "192.0.2.1 port 8270 cannot be listened on"),
        ((root, "--token-file", str(tmp_path / "nothing")), 2, "cannot be read"),
        ((root, "-o", "secret_access_key=x"), 2, "secrets are not taken from the command line"),
        ((root, "-o", "endpoint"), 2, "-o takes KEY=VALUE"),
    ):
        ended = slackwater("ui", *arguments)
        assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), ended
        assert said in ended.err
