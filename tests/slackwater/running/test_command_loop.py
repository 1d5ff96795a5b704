"""Tests of the command loop, turn by turn: only the owner carries a command out, and only once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import obstore
import pytest

from actors.protocol.barrier import Pause
from slackwater.commands.operations import StopCommand
from slackwater.extensions.run_views import NeedsChangedError, RunViews
from slackwater.running.command_loop import CommandLoop
from slackwater.running.commanded_run import CommandedRun
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.loop_thread import Turn
from slackwater.running.source_objects import SourceObjects
from state.clock import SystemClock
from state.errors import StorageUnavailableError
from state.objects.object_client import object_client
from state.ownership.command import Answer, Command
from state.ownership.command_inbox import CommandInbox, PendingCommand
from state.ownership.owner import Ownership
from tests.slackwater.running.scripted_attempt import Requested, ScriptedAttempt, at_once

NEVER_S = 3_600.0


class Commanded(Requested):
    """The loop of the run `run-1`, which owns its root."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.location = self.bad.root.location
        self.ownership = self.owner("run-1")
        self.inbox = CommandInbox(self.location, SystemClock())
        run = CommandedRun(
            self.requests,
            Corrections(self.bad.root, [], self.requests, SourceObjects(self.bad.root.location, []), RunViews([], [])),
            DeclaredViews([], {}, self.requests),
            lambda: None,
        )
        self.loop = CommandLoop(self.inbox, self.ownership, run)

    def owner(self, run_id: str) -> Ownership:
        ownership = Ownership(self.location, SystemClock(), run_id=run_id, pipeline="flights", interval_s=NEVER_S)
        ownership.acquire(takeover=True)
        return ownership

    def ask(self, command: Command, run_id: str = "run-1") -> str:
        return self.inbox.ask(command, run_id, random.Random(1))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Commanded]:
    run = Commanded(tmp_path / "root")
    yield run
    run.ownership.release()


def test_a_command_is_carried_out_and_answered_in_one_turn(run: Commanded) -> None:
    attempt, name = run.attempt(at_once), run.ask(Pause())
    assert [run.loop.turn(), run.loop.turn()] == [Turn.WAITS, Turn.WAITS]
    assert (attempt.asked, run.inbox.answer_to(name)) == ([Pause()], Answer(True, "paused"))


def test_a_command_that_is_not_known_is_refused_and_never_done(run: Commanded) -> None:
    attempt, name = run.attempt(at_once), "1700000000000-00000000000000aa"
    body = b'{"run": "run-1", "command": {"kind": "__import__", "name": "os"}}'
    obstore.put(object_client(run.location), f"commands/{name}.json", body)
    run.loop.turn()
    answer = run.inbox.answer_to(name)
    assert answer is not None and not answer.done and "'__import__' is not a known command" in answer.text
    assert attempt.asked == []


def test_a_command_for_an_earlier_run_is_refused(run: Commanded) -> None:
    attempt, name = run.attempt(at_once), run.ask(StopCommand(), "run-0")
    run.loop.turn()
    answer = run.inbox.answer_to(name)
    assert answer is not None and not answer.done and "run-0" in answer.text
    assert attempt.asked == []


def test_an_owner_that_was_replaced_does_and_answers_nothing(run: Commanded) -> None:
    attempt, name = run.attempt(at_once), run.ask(Pause())
    second = run.owner("run-2")
    run.loop.turn()
    assert run.ownership.lost
    assert (attempt.asked, run.inbox.answer_to(name)) == ([], None)
    second.release()


def test_an_owner_that_is_replaced_while_it_does_something_does_not_answer(run: Commanded) -> None:
    others: list[Ownership] = []

    def is_replaced(attempt: ScriptedAttempt, mutation: object) -> None:
        others.append(run.owner("run-2"))
        run.requests.end()

    attempt, name = run.attempt(is_replaced), run.ask(Pause())
    run.loop.turn()
    assert (attempt.asked, run.inbox.answer_to(name)) == ([Pause()], None)
    others[0].release()


def test_a_command_is_not_done_again_because_its_answer_could_not_be_written(
    run: Commanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, failures = CommandInbox.answer, [StorageUnavailableError("slow"), StorageUnavailableError("slow")]

    def fails_at_first(inbox: CommandInbox, name: str, text: Answer) -> None:
        if failures:
            raise failures.pop()
        answer(inbox, name, text)

    monkeypatch.setattr(CommandInbox, "answer", fails_at_first)
    attempt, name = run.attempt(at_once), run.ask(Pause())
    for _ in range(2):
        run.loop.turn()
        assert run.inbox.answer_to(name) is None
    run.loop.turn()
    assert (attempt.asked, run.inbox.answer_to(name)) == ([Pause()], Answer(True, "paused"))


@pytest.mark.parametrize("error", [StorageUnavailableError("slow"), KeyError("a bug")], ids=["slow", "bug"])
def test_an_inbox_that_cannot_be_polled_is_polled_again(
    error: Exception, run: Commanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending, failures = CommandInbox.pending, [error]

    def fails_at_first(inbox: CommandInbox) -> list[PendingCommand]:
        if failures:
            raise failures.pop()
        return pending(inbox)

    monkeypatch.setattr(CommandInbox, "pending", fails_at_first)
    attempt = run.attempt(at_once)
    run.ask(Pause())
    run.loop.turn()
    assert attempt.asked == []
    run.loop.turn()
    assert attempt.asked == [Pause()]


def test_no_file_is_deleted_while_a_branch_is_noted(run: Commanded) -> None:
    declared, noted = DeclaredViews([], {}, run.requests), list[str]()

    class Client:
        def change(self, action: Any) -> None:
            with pytest.raises(NeedsChangedError), declared.needs.acting(declared.needs.needs):
                raise AssertionError("a file is deleted")
            noted.append(action.keywords["name"])

    class Attempts:
        rescale = retry = allow_removals = None

        def running_attempt(self) -> Any:
            return SimpleNamespace(client=Client())

    corrections = Corrections(run.bad.root, [], run.requests, SourceObjects(run.location, []), declared.needs)
    CommandedRun(Attempts(), corrections, declared, lambda: None).put_tag("branch/b", 1)  # type: ignore[arg-type]
    assert noted == ["branch/b"]
