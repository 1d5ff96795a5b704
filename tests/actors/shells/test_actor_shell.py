from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import structlog

from actors.exchange.barrier_aligner import BarrierAligner
from actors.exchange.edge import Outlet
from actors.files import FileKey
from actors.hosting.ray_runtime import RayRuntime
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Collect, FlowInstruction
from actors.protocol.messages import Message
from actors.protocol.reports import CollectReport
from actors.shells.actor_shell import ActorShell, Coordinating, times_slower
from actors.shells.runtime import Actor
from state.clock import ManualClock
from state.tables.delta import DeltaBuilder
from tests.actors.flow import barrier, files
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot


class Failing(ActorShell[FlowInstruction]):
    """Fails at its first message."""

    def __init__(self) -> None:
        super().__init__(name="failing", edges=["a"], coordinator=Unheard(), runtime=RayRuntime("failing"))
        self.taken = 0

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        self.taken += 1
        raise ValueError("the disk is full")


def test_an_actor_that_failed_takes_no_further_message_and_says_why() -> None:
    async def story() -> int:
        shell, outlet = Failing(), Outlet("a")
        await shell.receive(outlet.send(files("x")))
        await shell.receive(outlet.send(files("y")))
        with pytest.raises(ValueError, match="the disk is full"):
            await shell.join()
        return shell.taken

    assert asyncio.run(story()) == 1


@pytest.mark.parametrize("fails", [False, True], ids=["all leaves", "something fails"])
def test_an_actor_that_has_stopped_is_over_when_all_it_sends_has_left(fails: bool) -> None:
    async def story() -> list[str]:
        shell = ActorShell[FlowInstruction](
            name="leaving", edges=[], coordinator=Unheard(), runtime=RayRuntime("leaving")
        )
        left: list[str] = []
        may_leave = asyncio.Event()

        async def leave(name: str) -> None:
            await may_leave.wait()
            if fails:
                raise ValueError("the disk is full")
            left.append(name)

        for name in ("a", "b"):
            shell.beside_leaving(leave, name)
        shell.end()
        joined = asyncio.ensure_future(shell.join())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not joined.done(), "two are on their way"
        may_leave.set()
        if fails:
            with pytest.raises(ValueError, match="the disk is full"):
                await joined
        else:
            await joined
        return left

    assert asyncio.run(story()) == ([] if fails else ["a", "b"])


class Collecting(ActorShell[FlowInstruction]):
    """Collects an epoch when its barrier has come on both edges, and says so."""

    def __init__(self) -> None:
        super().__init__(name="collecting", edges=["a", "b"], coordinator=Unheard(), runtime=RayRuntime("collecting"))
        self._aligner = BarrierAligner(["a", "b"])

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        self._log.warning("taken", edge=edge)
        taken = self._aligner.on_message(edge, message)
        return [Collect(CollectReport("collecting", each.epoch.prev)) for each in taken if isinstance(each, Barrier)]

    def perform(self, instruction: FlowInstruction) -> None:
        self.perform_flow(instruction)


class Unheard(Actor[Coordinating]):
    """A coordinator that no call reaches."""

    collect = property(lambda self: self)

    async def remote(self, *_: object) -> None:
        pass


class Staging(ActorShell[FlowInstruction]):
    """Collects every epoch with one changed row, which is large for its runtime."""

    def __init__(self, coordinator: Hearing) -> None:
        runtime = RayRuntime("staging")
        runtime.staged_from_bytes = 0
        root = MemoryRoot(MemoryDisk(), ManualClock())
        super().__init__(name="staging", edges=["a"], coordinator=coordinator, runtime=runtime, open_root=lambda: root)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        assert isinstance(message, Barrier)
        changes = DeltaBuilder()
        changes.put("queue", b"key", 0, source="s", path="a")
        return [Collect(CollectReport("staging", message.epoch.prev, changes.build()))]

    def perform(self, instruction: FlowInstruction) -> None:
        self.perform_flow(instruction)


class Hearing(Unheard):
    """A coordinator that keeps the reports."""

    def __init__(self) -> None:
        self.reports: list[CollectReport] = []

    async def remote(self, *arguments: object) -> None:
        self.reports += [each for each in arguments if isinstance(each, CollectReport)]


@pytest.mark.parametrize("admitted", [None, frozenset[FileKey]()], ids=["every file", "few files"])
def test_a_large_delta_is_staged_unless_the_admission_of_files_follows_it(admitted: frozenset[FileKey] | None) -> None:
    async def story() -> CollectReport:
        coordinator, outlet = Hearing(), Outlet("a")
        shell = Staging(coordinator)
        await shell.receive(outlet.send(replace(barrier(1), admitted=admitted)))
        while not coordinator.reports:
            await asyncio.sleep(0)
        return coordinator.reports[0]

    delta = asyncio.run(story()).delta
    assert bool(delta.staged) == (admitted is None)
    assert ("queue" in delta.changes) == (admitted is not None)


def test_a_line_of_an_actor_has_the_epoch_that_is_open_for_it() -> None:
    async def story() -> None:
        shell, a, b = Collecting(), Outlet("a"), Outlet("b")
        for outlet, number in [(a, 1), (a, 2), (b, 1), (b, 2), (a, 3)]:
            await shell.receive(outlet.send(barrier(number)))

    with structlog.testing.capture_logs() as logs:
        asyncio.run(story())
    epochs = [(line["edge"], line.get("actor"), line.get("epoch")) for line in logs]
    assert epochs == [
        ("a", "collecting", 1),
        ("a", "collecting", 1),
        ("b", "collecting", 1),
        ("b", "collecting", 2),
        ("a", "collecting", 3),
    ], "an input that is ahead does not end the epoch"


def test_many_actors_report_no_more_often_than_a_few() -> None:
    assert times_slower(1) == times_slower(4) == 1.0
    assert 256 / times_slower(256) == 4
