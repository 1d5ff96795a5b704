"""An attempt whose answers the test scripts, and the requests of a run that uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from actors.protocol.barrier import FlowCommand, Mutation
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan
from slackwater.running.attempt import Attempt
from slackwater.running.requests import RunRequests
from state.location import Location
from tests.slackwater.commands.bad_files import BadFiles

Meet = Callable[["ScriptedAttempt", Mutation], None]


class ScriptedAttempt:
    """An attempt as the requests see it; `meet` is called with each mutation."""

    def __init__(self, run: Requested, meet: Meet, flow: tuple[FlowCommand, ...] = ()) -> None:
        self.run, self.meet = run, meet
        self.plan = AttemptPlan("run", flow=flow)
        self.state = RunState(version=0, phase="running", term=1, epoch=1)
        self.asked: list[Mutation] = []
        self.rescalings: list[tuple[int, int]] = []
        self.was_rescaled = threading.Event()
        self.rescale_meets: Callable[[ScriptedAttempt], None] = lambda attempt: None

    def request(self, mutation: Mutation) -> int:
        self.asked.append(mutation)
        self.meet(self, mutation)
        return len(self.asked)

    def rescale(self, fewest: int, most: int) -> int:
        self.rescalings.append((fewest, most))
        self.was_rescaled.set()
        self.rescale_meets(self)
        return len(self.rescalings)

    def moves_vnodes(self) -> None:
        """Ends every rescaling."""
        with self.run.news:
            self.state = replace(self.state, rescalings_over=len(self.rescalings))
            self.run.news.notify_all()

    def carries_out(self) -> None:
        """Ends every request."""
        with self.run.news:
            self.state = replace(self.state, requests_over=len(self.asked))
            self.run.news.notify_all()


class Requested:
    """The requests of a run over a root with bad files."""

    def __init__(self, root: Path) -> None:
        self.bad = BadFiles(Location(str(root)))
        self.news = threading.Condition()
        self.requests = RunRequests(self.bad.root, ["s"], self.news)

    def attempt(self, meet: Meet, flow: tuple[FlowCommand, ...] = ()) -> ScriptedAttempt:
        attempt = ScriptedAttempt(self, meet, flow)
        self.requests.begin(cast(Attempt, attempt))
        return attempt


def at_once(attempt: ScriptedAttempt, _: Mutation) -> None:
    attempt.carries_out()


def later(_: ScriptedAttempt, __: Mutation) -> None:
    pass
