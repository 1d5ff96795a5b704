"""The inbox of a root, on a disk and on S3."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pytest

from actors.protocol.barrier import Pause, Throttle
from slackwater.commands.operations import RetryCommand
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import ProtocolError, UsageError
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.command import Answer
from state.ownership.command_inbox import CommandInbox

NAME = "1700000000000-00000000000000aa"


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "root"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def clock(hours: float = 0) -> ManualClock:
    """A manual clock near the store's."""
    return ManualClock(datetime.now(UTC) + timedelta(hours=hours))


def names(root: Location) -> list[str]:
    return sorted(each["path"] for batch in obstore.list(object_client(root), "commands") for each in batch)


def test_an_empty_root_has_an_empty_inbox(root: Location) -> None:
    assert CommandInbox(root, clock()).pending() == []


def test_commands_are_found_in_the_order_in_which_they_were_asked(root: Location) -> None:
    time, chance = clock(), random.Random(7)
    commands = [RetryCommand(file=str(number)) for number in range(5)]
    for command in commands:
        CommandInbox(root, time).ask(command, "run-1", chance)
        time.advance(0.001)
    asked = CommandInbox(root, clock()).pending()
    assert [(each.command, each.run, each.error) for each in asked] == [(each, "run-1", "") for each in commands]


def test_commands_of_one_moment_do_not_overwrite_each_other(root: Location) -> None:
    class Stuttering(random.Random):
        drawn: Callable[[], int] = iter([5, 5, 9]).__next__

        def getrandbits(self, k: int, /) -> int:
            return self.drawn()

    inbox, chance = CommandInbox(root, clock()), Stuttering()
    first = inbox.ask(Pause(), "run-1", chance)
    second = inbox.ask(Throttle(), "run-1", chance)
    assert first != second
    assert {each.id for each in inbox.pending()} == {first, second}


def test_an_answered_command_is_not_found_again_and_its_first_answer_stays(root: Location) -> None:
    inbox = CommandInbox(root, clock())
    name = inbox.ask(Pause(), "run-1", random.Random(7))
    assert inbox.answer_to(name) is None
    inbox.answer(name, Answer(True, "paused", {"files": 3}))
    inbox.answer(name, Answer(False, "another owner"))
    assert CommandInbox(root, clock()).answer_to(name) == Answer(True, "paused", {"files": 3})
    assert inbox.pending() == []


def test_a_withdrawn_command_is_not_found(root: Location) -> None:
    inbox = CommandInbox(root, clock())
    name = inbox.ask(Pause(), "run-1", random.Random(7))
    inbox.withdraw(name)
    inbox.withdraw(name)
    assert inbox.pending() == []


def test_what_was_answered_an_hour_ago_is_cleared_away_and_nothing_else(root: Location) -> None:
    now, chance = CommandInbox(root, clock()), random.Random(7)
    answered, waiting = (now.ask(Pause(), "run-1", chance) for _ in range(2))
    now.answer(answered, Answer(True, "paused"))
    obstore.put(object_client(root), "commands/notes.txt", b"not ours")
    before = names(root)
    assert len(before) == 4
    CommandInbox(root, clock(hours=0.9)).pending()
    assert names(root) == before
    (left,) = CommandInbox(root, clock(hours=1.1)).pending()
    assert left.id == waiting
    assert names(root) == sorted([f"commands/{waiting}.json", "commands/notes.txt"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "a command is JSON"),
        (b"\xff\xfe", "a command is JSON"),
        (b"[" * 16_000, "a command is JSON"),
        (b'{"run": "r"}', "a command is JSON"),
        (b'["run", "command"]', "a command is JSON"),
        (b'{"run": "r", "command": {"kind": "exec"}}', "'exec' is not a known command"),
        (b'{"run": "r", "command": "pause"}', "is not a known command"),
        (b" " * 20_000 + b'{"run": "r", "command": {"kind": "pause"}}', "20,042 bytes"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_understood_is_found_with_what_is_wrong(tmp_path: Path, body: bytes, said: str) -> None:
    root = Location(str(tmp_path))
    obstore.put(object_client(root), f"commands/{NAME}.json", body)
    (asked,) = CommandInbox(root, clock()).pending()
    assert (asked.id, asked.command) == (NAME, None)
    assert said in asked.error


def test_names_that_are_no_ids_are_no_commands(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    for name in ("x.json", f"{NAME}.json.tmp", f"deeper/{NAME}.json", f"{NAME}.jsonx", f"x{NAME}.json"):
        obstore.put(object_client(root), f"commands/{name}", b'{"run": "r", "command": {"kind": "pause"}}')
    assert CommandInbox(root, clock()).pending() == []


def test_a_command_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    with pytest.raises(UsageError, match="too large"):
        CommandInbox(root, clock()).ask(RetryCommand(file="x" * 20_000), "run-1", random.Random(7))
    assert names(root) == []


@pytest.mark.parametrize("body", [b"", b"{}", b'{"done": true, "text": "x", "values": []}', b'["done"]'])
def test_an_answer_that_cannot_be_understood_is_an_error(tmp_path: Path, body: bytes) -> None:
    root = Location(str(tmp_path))
    obstore.put(object_client(root), f"commands/{NAME}.answer.json", body)
    with pytest.raises(ProtocolError, match=NAME):
        CommandInbox(root, clock()).answer_to(NAME)
