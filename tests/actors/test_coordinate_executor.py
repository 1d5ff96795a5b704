"""When a request is over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.attempt_plan import AttemptPlan
from actors.coordinate_executor import CoordinateExecutor
from actors.instructions import Commit, Inject, Instruction
from actors.messages import Barrier, Mutation, Pause, Resume, RetriedFile, Retry, Throttle
from actors.recovery import recover
from actors.reports import CollectReport
from state.clock import SystemClock
from state.delta import DeltaBuilder
from state.lance_root import LanceRoot
from state.records import EpochCounts, EpochRecord, EpochSeconds
from tests.actors.flow import AT, file, of
from tests.actors.test_recovery import definition


class Coordination:
    """An executor, and everybody who answers it."""

    def __init__(self, root: Path) -> None:
        made = definition(root, "s", schema=pa.schema([("x", pa.int64())]))
        plan = AttemptPlan("run")
        recovered = recover(made, plan, LanceRoot(made.root, SystemClock()))
        self.executor = CoordinateExecutor(
            definition=made, plan=plan, recovered=recovered, next_epoch=lambda last: last + 1, now_s=0.0
        )
        self.barriers = [each.barrier for each in of(Inject, self.executor.start(0.0))]

    def ask(self, mutation: Mutation) -> Barrier | None:
        return self._injected(self.executor.on_request(mutation, 0.0))

    def everybody_collects(self, barrier: Barrier, *, with_a_change: bool = False) -> list[Instruction]:
        delta = DeltaBuilder()
        if with_a_change:
            delta.put("list_state", b"s", 0, source="s")
        instructions: list[Instruction] = []
        for actor in ("list-s", "dispatcher", "fetch-0", "fetch-1", "merger", "materializer"):
            report = CollectReport(actor, barrier.epoch.prev, delta.build())
            instructions += self.executor.on_collect(report, 0.0)
        self._injected(instructions)
        return instructions

    def commits(self, commit: Commit) -> None:
        record = EpochRecord(commit.epoch, 1, AT, 1, EpochCounts(), EpochSeconds(), {})
        self._injected(self.executor.on_committed(record, 0.0))

    def _injected(self, instructions: list[Instruction]) -> Barrier | None:
        found = [each.barrier for each in of(Inject, instructions)]
        self.barriers += found
        return found[-1] if found else None

    @property
    def over(self) -> int:
        return self.executor.state.requests_over

    def ends(self, barrier: Barrier) -> None:
        """The epoch is over, with a commit if there is something to commit."""
        for commit in of(Commit, self.everybody_collects(barrier)):
            self.commits(commit)


@pytest.fixture
def flow(tmp_path: Path) -> Coordination:
    """A flow that has committed what was declared."""
    made = Coordination(tmp_path)
    made.ends(made.barriers[0])
    first = made.ask(Resume())
    assert first is not None
    made.ends(first)
    assert (made.executor.requests, made.over) == (1, 1)
    return made


def test_a_request_is_over_when_the_epoch_that_it_ends_is(flow: Coordination) -> None:
    barrier = flow.ask(Pause())
    assert barrier is not None and barrier.mutation == Pause()
    assert (flow.executor.requests, flow.over, flow.executor.state.phase) == (2, 1, "paused")
    assert of(Commit, flow.everybody_collects(barrier)) == []
    assert flow.over == 2


def test_a_request_whose_epoch_has_something_to_commit_is_over_when_that_is_committed(flow: Coordination) -> None:
    barrier = flow.ask(Throttle(files_per_second=1.0))
    assert barrier is not None and flow.executor.state.phase == "running"
    (commit,) = of(Commit, flow.everybody_collects(barrier, with_a_change=True))
    assert flow.over == 1
    flow.commits(commit)
    assert flow.over == 2


def test_a_retry_is_over_when_the_epoch_that_it_begins_is(flow: Coordination) -> None:
    retried = RetriedFile(file("bad"), 0, 1, None, 0, 1, 1)
    barrier = flow.ask(Retry((retried, retried)))
    assert barrier is not None
    assert flow.executor.state.files_in_flight == 2, "they can be to blame for a failure again"
    flow.ends(barrier)
    assert flow.over == 1, "the files come behind the barrier"
    following = flow.ask(Pause())
    assert following is not None and following.epoch.prev == barrier.epoch.curr
    (commit,) = of(Commit, flow.everybody_collects(following, with_a_change=True))
    assert flow.over == 1
    flow.commits(commit)
    assert flow.over == 3
