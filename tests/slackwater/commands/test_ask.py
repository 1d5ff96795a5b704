"""Tests of `ask`: a command goes to the owner and back, or is carried out here when the root has no owner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pytest

from actors.protocol.barrier import Pause, Resume, Stop, Throttle
from slackwater.commands import ask as commands
from slackwater.commands.ask import ask
from slackwater.commands.operations import (
    ClearQuarantineCommand,
    OperatedRun,
    RescaleCommand,
    RetryCommand,
    RootOperation,
    StopCommand,
    TagCommand,
    VacuumCommand,
)
from slackwater.running.command_loop import CommandLoop
from slackwater.running.commanded_run import CommandedRun
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.loop_thread import LoopThread
from slackwater.running.source_objects import SourceObjects
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock, SystemClock
from state.errors import (
    CommandRefusedError,
    CommandUnansweredError,
    EpochNotFoundError,
    NotFoundError,
    StoreNotFoundError,
)
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.command import Answer, Command
from state.ownership.command_inbox import CommandInbox
from state.ownership.owner import Owner, Ownership, _to_json, read_owner
from state.ownership.process_identity import ProcessIdentity
from state.store.store import StateStore
from tests.slackwater.commands.bad_files import BAD, BadFiles, progress
from tests.slackwater.running.scripted_attempt import Requested, ScriptedAttempt, at_once

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NEVER_S = 3_600.0


def asked(root: Location, command: Command, timeout_s: float = 20.0) -> str:
    answer = ask(root, command, clock=SystemClock(), random=random.Random(7), timeout_s=timeout_s)
    assert answer.done
    return answer.text


class Served(Requested):
    """A run that polls its inbox all the time, with scripted attempts."""

    def __init__(self, root: Path, run_id: str = "run-1") -> None:
        super().__init__(root)
        self.failure: Exception | None = None
        self.location = self.bad.root.location
        self.ownership = Ownership(self.location, SystemClock(), run_id=run_id, pipeline="flights", interval_s=NEVER_S)
        self.ownership.acquire(takeover=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        inbox = CommandInbox(self.location, SystemClock())
        declared, objects = DeclaredViews([], {}, self.requests), SourceObjects(self.bad.root.location, [])
        corrections = Corrections(self.bad.root, [], self.requests, objects, declared.needs)
        run = CommandedRun(self.requests, corrections, declared, lambda: self.failure)
        thread = LoopThread("commands", CommandLoop(inbox, self.ownership, run).turn, poll_s=0.01)
        try:
            yield
        finally:
            self.requests.end(for_good=True)
            thread.begin_end()
            thread.join()
            self.ownership.release()


@pytest.fixture
def run(tmp_path: Path) -> Served:
    return Served(tmp_path / "root")


def test_the_run_carries_out_what_is_asked_at_a_barrier_and_says_so(run: Served) -> None:
    attempt = run.attempt(at_once)
    with run.running():
        assert asked(run.location, Pause()) == "paused"
        assert asked(run.location, Resume()) == "resumed"
        assert asked(run.location, Throttle(bytes_per_second=5e6)) == "at most 5e+06 bytes a second"
        assert asked(run.location, Throttle()) == "not throttled"
        attempt.rescale_meets = ScriptedAttempt.moves_vnodes
        assert asked(run.location, RescaleCommand(fewest=4, most=4)) == "4 fetch actors"
        assert asked(run.location, RescaleCommand(fewest=1, most=8)).startswith("1 to 8 fetch actors")
    assert attempt.rescalings == [(4, 4), (1, 8)]
    assert attempt.asked[0] == Pause() and attempt.asked[2:] == [Throttle(bytes_per_second=5e6), Throttle()]


@dataclass(frozen=True)
class Echo(RootOperation[str], kind="test_echo"):
    """A command that only this module has."""

    text: str

    def on_run(self, run: OperatedRun) -> str:
        return f"{self.text} by a run"

    def on_root(self, store: StateStore, root: LanceRoot) -> str:
        return f"{self.text} at {root.location}"

    def answer(self, result: str) -> Answer:
        return Answer(True, result)


def test_a_new_command_is_one_class(run: Served) -> None:
    run.attempt(at_once)
    with run.running():
        assert asked(run.location, Echo("done")) == "done by a run"
    assert asked(run.location, Echo("done")) == f"done at {run.location}"


def test_while_no_attempt_runs_it_is_remembered_and_said_so(run: Served) -> None:
    with run.running():
        assert asked(run.location, Pause()) == "paused, when the run has started or recovered"
        assert run.attempt(at_once).asked == [Pause()]


def test_a_stop_is_answered_when_the_run_is_over_and_before_it_lets_go(run: Served) -> None:
    attempt = run.attempt(lambda attempt, mutation: run.requests.end(for_good=isinstance(mutation, Stop)))
    with run.running():
        assert asked(run.location, StopCommand()) == "stopped after a last epoch"
    assert attempt.asked == [Stop()]


def test_a_run_that_failed_has_not_stopped(run: Served) -> None:
    run.failure = NotFoundError("the bucket is gone")
    run.attempt(lambda attempt, mutation: run.requests.end(for_good=True))
    with run.running(), pytest.raises(CommandRefusedError, match="the bucket is gone"):
        asked(run.location, StopCommand())


def test_a_retry_by_command_answers_how_many_and_why_not(run: Served) -> None:
    run.bad.ended(BAD, progress("a"))
    run.attempt(at_once)
    with run.running():
        assert asked(run.location, RetryCommand(file="a")) == "1 file is in the queue again"
        with pytest.raises(CommandRefusedError, match="no file x is quarantined"):
            asked(run.location, RetryCommand(file="x"))
        with pytest.raises(CommandRefusedError, match="keeps the epochs that its settings name"):
            asked(run.location, VacuumCommand(keep_epochs=1))


def test_when_nothing_runs_that_is_said(tmp_path: Path) -> None:
    bad = BadFiles(Location(str(tmp_path)))
    for command, kind in ((Pause(), "pause"), (Resume(), "resume"), (StopCommand(), "stop")):
        with pytest.raises(CommandRefusedError, match=f"nothing runs at .*: there is nothing to {kind}"):
            asked(bad.root.location, command)
    assert not (tmp_path / "commands").exists(), "nobody is asked"


@pytest.mark.more_after(1)
@pytest.mark.parametrize("place", ["local", "s3"])
def test_when_nothing_runs_a_retry_and_a_tag_are_done_at_once(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root = Location(str(tmp_path / "root"))
    if place == "s3":
        server: S3Server = request.getfixturevalue("s3")
        root = Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)
    bad = BadFiles(root)
    bad.ended(BAD, progress("a"), progress("b"))
    assert asked(root, RetryCommand()) == "2 files are in the queue again; the next run reads them"
    assert (bad.paths("ledger"), bad.paths("queue")) == ([], ["a", "b"])
    assert asked(root, RetryCommand()) == "nothing to retry"
    epoch = bad.root.open().head.epoch
    assert asked(root, ClearQuarantineCommand(epoch=epoch)) == "0 bad records are cleared"
    assert asked(root, TagCommand(name="audit", epoch=epoch)) == f"epoch {epoch} is tagged audit"
    assert bad.root.open().head.tags == {"audit": epoch}
    with pytest.raises(EpochNotFoundError):
        asked(root, TagCommand(name="audit", epoch=7))
    assert asked(root, TagCommand(name="audit", epoch=None)) == "tag audit is deleted"
    assert asked(root, VacuumCommand(keep_s=0, keep_epochs=1)).endswith("bytes")
    assert len(bad.root.open().epochs()) == 1
    owner = read_owner(root)
    assert owner is not None and owner.released


def test_a_root_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        asked(Location(str(tmp_path)), RetryCommand())


def foreign(root: Location, clock: ManualClock, **changes: object) -> Owner:
    """An owner on another machine, as its last renewal left it."""
    fields: dict[str, object] = {
        "run_id": "other",
        "pipeline": "flights",
        "process": ProcessIdentity("elsewhere", 17),
        "since": MOMENT,
        "renewed_at": clock.now(),
        "phase": "running",
    }
    owner = Owner(**{**fields, **changes})  # type: ignore[arg-type]
    obstore.put(object_client(root), "owner.json", _to_json(owner))
    return owner


class OwnersClock(ManualClock):
    """A clock that runs an action of another process when time passes."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.passes()

    def passes(self) -> None:
        """The action of the other process."""


def test_an_owner_that_is_silent_for_20_s_is_asked_no_longer(tmp_path: Path) -> None:
    clock = OwnersClock(MOMENT)
    bad = BadFiles(Location(str(tmp_path / "root")), clock)
    bad.ended(BAD, progress("a"))
    foreign(bad.root.location, clock)
    answer = ask(bad.root.location, RetryCommand(), clock=clock, random=random.Random(7))
    assert answer.values == {"files": 1}
    assert 20 <= clock.monotonic() < 60
    assert CommandInbox(bad.root.location, clock).pending() == [], "the command is withdrawn before"


def test_an_owner_that_lives_and_does_not_answer_is_waited_for_so_long(tmp_path: Path) -> None:
    clock = OwnersClock(MOMENT)
    root = Location(str(tmp_path / "root"))
    foreign(root, clock)
    clock.passes = lambda: foreign(root, clock)  # type: ignore[method-assign,assignment]
    with pytest.raises(CommandUnansweredError, match=r"pid 17 on elsewhere \(running\).*`pause` is withdrawn"):
        ask(root, Pause(), clock=clock, random=random.Random(7), timeout_s=45.0)
    assert 45 <= clock.monotonic() < 46
    assert CommandInbox(root, clock).pending() == []


def test_an_owner_that_dies_without_an_answer_leaves_the_command_to_who_asks(tmp_path: Path) -> None:
    clock = OwnersClock(MOMENT)
    bad = BadFiles(Location(str(tmp_path / "root")), clock)
    bad.ended(BAD, progress("a"))
    mine = ProcessIdentity.current()
    foreign(bad.root.location, clock, process=mine)
    clock.passes = lambda: foreign(bad.root.location, clock, process=mine, released=True)  # type: ignore[method-assign,assignment]
    assert ask(bad.root.location, RetryCommand(), clock=clock, random=random.Random(7)).values == {"files": 1}
    assert clock.monotonic() < 2
    assert bad.paths("queue") == ["a"]


def test_the_answer_of_an_owner_that_lets_go_at_once_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(MOMENT)
    root = Location(str(tmp_path / "root"))
    foreign(root, clock)
    inbox = CommandInbox(root, clock)

    def stops_just_before(location: Location) -> Owner | None:
        for each in inbox.pending():
            inbox.answer(each.id, Answer(True, "stopped"))
            foreign(root, clock, released=True)
        return read_owner(location)

    monkeypatch.setattr(commands, "read_owner", stops_just_before)
    assert ask(root, StopCommand(), clock=clock, random=random.Random(7)).text == "stopped"


def test_an_owner_that_takes_the_root_over_is_asked_in_turn(tmp_path: Path) -> None:
    clock = OwnersClock(MOMENT)
    root = Location(str(tmp_path / "root"))
    foreign(root, clock)
    inbox = CommandInbox(root, clock)
    runs: list[str] = []

    def takes_over() -> None:
        runs.extend(each.run for each in inbox.pending())
        foreign(root, clock, run_id="another")

    clock.passes = takes_over  # type: ignore[method-assign]
    with pytest.raises(CommandUnansweredError):
        ask(root, StopCommand(), clock=clock, random=random.Random(7), timeout_s=10.0)
    assert runs[0] == "other" and set(runs[1:]) == {"another"}


def test_a_living_owner_is_not_passed_over_unless_that_is_asked(run: Served) -> None:
    run.bad.ended(BAD, progress("a"))
    with pytest.raises(CommandUnansweredError):
        asked(run.location, RetryCommand(), timeout_s=0.0)
    answer = ask(run.location, RetryCommand(), clock=SystemClock(), random=random.Random(7), takeover=True)
    assert answer.values == {"files": 1}
    run.ownership.renew()
    assert run.ownership.lost
    run.ownership.release()
