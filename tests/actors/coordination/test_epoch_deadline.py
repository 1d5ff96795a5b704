"""An epoch that makes no progress ends the attempt, with the names of the actors that have not reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.coordination.instructions import Commit, CoordinateInstruction, Inject
from actors.protocol.barrier import Barrier, Mutation, Pause, Stop
from actors.protocol.instructions import End, Fail, WakeAt
from actors.protocol.reports import CollectReport, FetchProgress, ListProgress
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import recover
from actors.settings import BarrierSettings
from state.clock import ManualClock
from state.errors import RunFailedError
from state.lance.lance_root import LanceRoot
from tests.actors.flow import of
from tests.actors.recovery.root_with_files import definition

LIMIT_S = 300.0
UPSTREAM = ("list-s", "dispatcher")
FETCHERS = ("fetch-0", "fetch-1")


class Watched:
    """An executor under a manual clock; nothing wakes it but `pass_time`."""

    def __init__(self, root: Path, limit_s: float = LIMIT_S) -> None:
        self.clock = ManualClock()
        made = definition(root, "s", schema=pa.schema([("x", pa.int64())]))
        made = replace(made, barrier=BarrierSettings(stalled_epoch_s=limit_s))
        plan = AttemptPlan("run")
        self.executor = CoordinateExecutor(
            definition=made,
            plan=plan,
            recovered=recover(made, plan, LanceRoot(made.root, self.clock)),
            next_epoch=lambda last: last + 1,
            now_s=self.now_s,
        )
        self.told: list[CoordinateInstruction] = self.executor.start(self.now_s)

    @property
    def now_s(self) -> float:
        return self.clock.monotonic()

    @property
    def barriers(self) -> list[Barrier]:
        return [each.barrier for each in of(Inject, self.told)]

    @property
    def failures(self) -> list[Exception]:
        return [each.error for each in of(Fail, self.told)]

    def ask(self, mutation: Mutation) -> Barrier:
        self.told += self.executor.on_request(mutation, self.now_s)
        return self.barriers[-1]

    def collect(self, barrier: Barrier, *actors: str) -> None:
        for actor in actors:
            self.told += self.executor.on_collect(CollectReport(actor, barrier.epoch.prev), self.now_s)

    def pass_time(self, seconds: float) -> None:
        """The shell wakes the executor at the last time that it has asked for."""
        until_s = self.now_s + seconds
        while of(WakeAt, self.told) and (wake_s := of(WakeAt, self.told)[-1].monotonic_s) <= until_s:
            self.clock.advance(max(0.0, wake_s - self.now_s))
            self.told = [each for each in self.told if not isinstance(each, WakeAt)]
            self.told += self.executor.on_time(self.now_s)
        self.clock.advance(until_s - self.now_s)


@pytest.fixture
def flow(tmp_path: Path) -> Watched:
    """A flow with one epoch in flight, behind the initial one."""
    made = Watched(tmp_path)
    (initial,) = made.barriers
    made.collect(initial, *UPSTREAM, *FETCHERS, "merger", "materializer")
    made.ask(Pause())
    return made


def test_an_epoch_without_progress_fails_the_attempt_and_names_the_actors_that_have_not_reported(flow: Watched) -> None:
    epoch = flow.barriers[-1]
    flow.collect(epoch, *UPSTREAM, "fetch-0")
    flow.pass_time(LIMIT_S - 1.0)
    assert flow.failures == []
    flow.pass_time(1.0)
    (error,) = flow.failures
    assert isinstance(error, RunFailedError)
    expected = f"epoch {epoch.epoch.prev} has made no progress for 300 s: fetch-1, merger have not reported it"
    assert str(error) == f"{expected}; look at their logs"
    flow.pass_time(10 * LIMIT_S)
    assert len(flow.failures) == 1


def test_the_first_name_is_the_first_of_the_flow(flow: Watched) -> None:
    flow.pass_time(LIMIT_S)
    (error,) = flow.failures
    assert ": list-s, dispatcher, fetch-0, fetch-1, merger have not" in str(error)


def test_a_report_restarts_the_time(flow: Watched) -> None:
    for actor in (*UPSTREAM, *FETCHERS):
        flow.pass_time(LIMIT_S - 1.0)
        flow.collect(flow.barriers[-1], actor)
    assert flow.failures == []
    flow.pass_time(LIMIT_S)
    (error,) = flow.failures
    assert "merger has not reported" in str(error)


def test_an_actor_that_still_works_on_the_epoch_restarts_the_time(flow: Watched) -> None:
    flow.collect(flow.barriers[-1], *UPSTREAM, "fetch-0")
    for number in range(1, 4):
        flow.pass_time(LIMIT_S - 1.0)
        flow.told += flow.executor.on_progress(FetchProgress("fetch-1", activity=number), number, flow.now_s)
    flow.pass_time(LIMIT_S - 1.0)
    assert flow.failures == []


def test_the_activity_of_an_actor_that_has_reported_is_no_progress_of_the_epoch(flow: Watched) -> None:
    flow.collect(flow.barriers[-1], *UPSTREAM, "fetch-0")
    for number in range(1, 4):
        flow.pass_time(LIMIT_S / 4)
        progress = ListProgress("list-s", "s", activity=number)
        flow.told += flow.executor.on_progress(progress, number, flow.now_s)
    flow.pass_time(LIMIT_S / 4)
    assert len(flow.failures) == 1


def test_a_report_of_progress_without_activity_is_none(flow: Watched) -> None:
    flow.pass_time(LIMIT_S / 2)
    flow.told += flow.executor.on_progress(FetchProgress("fetch-1", in_flight_bytes=7), 1, flow.now_s)
    flow.pass_time(LIMIT_S / 2)
    assert len(flow.failures) == 1


def test_spark_may_work_on_an_epoch_for_hours(flow: Watched) -> None:
    flow.collect(flow.barriers[-1], *UPSTREAM, *FETCHERS, "merger")
    flow.pass_time(100 * LIMIT_S)
    assert flow.failures == []


def test_a_stall_behind_an_epoch_that_spark_works_on_is_found(flow: Watched) -> None:
    flow.collect(flow.barriers[-1], *UPSTREAM, *FETCHERS, "merger")
    stalled = flow.ask(Pause())
    flow.collect(stalled, *UPSTREAM)
    flow.pass_time(LIMIT_S)
    (error,) = flow.failures
    assert f"epoch {stalled.epoch.prev} " in str(error)


def test_a_commit_may_take_long_and_a_quiet_run_never_fails(tmp_path: Path) -> None:
    made = Watched(tmp_path)
    made.collect(made.barriers[0], *UPSTREAM, *FETCHERS, "merger", "materializer")
    # The declaration is something to commit.
    declared = made.ask(Pause())
    made.collect(declared, *UPSTREAM, *FETCHERS, "merger", "materializer")
    assert len(of(Commit, made.told)) == 1
    made.pass_time(100 * LIMIT_S)
    assert made.failures == []


def test_the_last_epoch_of_a_run_is_timed_too(flow: Watched) -> None:
    flow.collect(flow.barriers[-1], *UPSTREAM, *FETCHERS, "merger", "materializer")
    last = flow.ask(Stop())
    flow.collect(last, *UPSTREAM)
    flow.pass_time(LIMIT_S)
    assert len(flow.failures) == 1 and not of(End, flow.told)


def test_without_a_limit_the_executor_does_not_wake_for_it(tmp_path: Path) -> None:
    made = Watched(tmp_path, limit_s=float("inf"))
    assert made.told and not any(each.monotonic_s > made.now_s + LIMIT_S for each in of(WakeAt, made.told))
