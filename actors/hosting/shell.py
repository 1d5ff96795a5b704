"""What the shells of the executors share: order on the edges, instructions, progress, and the way out of a failure.

An executor decides and a shell does.  Everything of one actor runs on its one event loop, so a handler is never
interrupted; what takes long runs in a thread and comes back as an event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, assert_never

import structlog

from actors.exchange.edge import Inlet, Outlet
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Collect, End, Fail, FlowInstruction, Send, WakeAt
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import CollectReport, Progress
from actors.telemetry.logging import configure_default
from state.clock import Clock, SystemClock
from state.errors import ProtocolError
from state.location import Location

_REPORT_EVERY_S = 0.01
_REPORTERS = 4
_GAP_LIMIT_S = 60.0
_STAGED_FROM_BYTES = 4 << 20
_Step = TypeVar("_Step")


class ActorShell(Generic[_Step]):
    """Hosts one executor on Ray; `_Step` are the instructions of its step.

    Args:
        name: the actor's name; its edges out are named after it.
        edges: names of the edges in.
        coordinator: handle of the coordinator.
        root: where large deltas are staged; None for an actor without state.
    """

    def __init__(self, *, name: str, edges: Iterable[str], coordinator: Any, root: Location | None = None) -> None:
        self._name, self._coordinator, self._root = name, coordinator, root
        configure_default()
        self._log = structlog.get_logger().bind(actor=name)
        self._follows: dict[int, int] = {}
        self._epoch: int | None = None
        self._clock: Clock = SystemClock()
        self._inlet = Inlet(edges)
        self._outlets: dict[str, tuple[Any, Outlet]] = {}
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self._wake: asyncio.TimerHandle | None = None
        self._report_every_s = _REPORT_EVERY_S
        self._report_due = False
        self._reported: Progress | None = None
        self._reports = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def connect(self, receivers: Mapping[str, Any]) -> None:
        """Opens edges out, by the names that the executor has for them."""
        self._outlets |= {name: (receiver, self.outlet()) for name, receiver in receivers.items()}

    async def receive(self, envelope: Envelope) -> None:
        """Takes one message; whatever comes before it on its edge is taken first."""
        if self._failure is not None:
            return
        with self._guard():
            for message in self._inlet.receive(envelope):
                if isinstance(message, Barrier):
                    self._on_barrier(message)
                self.do(self.on_message(envelope.edge, message))
            if self._inlet.gaps():
                asyncio.get_running_loop().call_later(_GAP_LIMIT_S, self._check_gaps, self._inlet.gaps())

    async def join(self) -> None:
        """Returns when the actor's work is over; raises what it failed with."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    def outlet(self) -> Outlet:
        """A new edge out of this actor.  Shells whose data is limited by credit return the one of their executor."""
        return Outlet(self._name)

    def on_message(self, edge: str, message: Message) -> Sequence[_Step]:
        """The executor's answer to a message."""
        raise NotImplementedError

    def on_time(self) -> Sequence[_Step]:
        """The executor's answer to a `WakeAt` that came due."""
        return []

    def progress(self) -> Progress | None:
        """How far the executor is, for those that report it."""
        return None

    def perform(self, instruction: _Step) -> None:
        """Performs an instruction of this actor's step: its own ones, and the others by `perform_flow`."""
        raise NotImplementedError

    def do(self, instructions: Iterable[_Step]) -> None:
        """Performs instructions in their order."""
        if self._failure is not None:
            return
        for instruction in instructions:
            self.perform(instruction)
        self._report_soon()

    def perform_flow(self, instruction: FlowInstruction) -> None:
        """Performs an instruction of any actor of the flow."""
        match instruction:
            case Send():
                self.send(instruction.message, instruction.to)
            case Collect():
                self._collect(instruction.report)
                self._enter(self._follows.pop(instruction.report.epoch, None))
            case WakeAt():
                self._wake_at(instruction.monotonic_s)
            case End():
                self.end()
            case Fail():
                raise instruction.error
            case _:
                assert_never(instruction)

    def end(self) -> None:
        """A `Stop` has passed, or nothing is left to do: the actor is over when whatever is on its way has left."""
        if self._leaving:
            self.run_guarded(self._end_when_all_left())
        else:
            self._report()
            self._over.set()

    async def _end_when_all_left(self) -> None:
        await asyncio.gather(*self._leaving)
        self.end()

    def _on_barrier(self, barrier: Barrier) -> None:
        """The epoch behind it begins when the actor has collected that before it: other inputs may be still there."""
        self._follows[barrier.epoch.prev] = barrier.epoch.curr
        if self._epoch is None:
            self._enter(barrier.epoch.prev)

    def _enter(self, epoch: int | None) -> None:
        if epoch is not None:
            self._epoch = epoch
            self._log = self._log.bind(epoch=epoch)

    def _collect(self, report: CollectReport) -> None:
        # What is staged cannot be changed by the commit, as a correction of the ledger is.
        if self._root is not None and not report.corrected and report.delta.nbytes > _STAGED_FROM_BYTES:
            self.run_leaving(self._stage(self._root, report))
        else:
            self._coordinator.collect.options(num_returns=0).remote(report)

    async def _stage(self, root: Location, report: CollectReport) -> None:
        """A large delta goes to the store itself; what is reported only names it."""
        # Lance takes half a second to load, and hardly a delta is large.
        from state.lance.lance_root import LanceRoot

        staged = await asyncio.to_thread(LanceRoot(root, self._clock).stage, report.delta, report.epoch)
        self._coordinator.collect.options(num_returns=0).remote(replace(report, delta=staged))

    def send(self, message: Message, to: Iterable[str] | None = None) -> None:
        """Sends on some edges out, or on all."""
        for receiver, outlet in [self._outlets[name] for name in (self._outlets if to is None else to)]:
            receiver.receive.options(num_returns=0).remote(outlet.send(message))

    def now_s(self) -> float:
        return self._clock.monotonic()

    def run_guarded(self, work: Any) -> asyncio.Task[None]:
        """Runs a coroutine beside the handlers; what it raises ends the actor."""

        async def guarded() -> None:
            with self._guard():
                await work

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run_leaving(self, work: Any) -> None:
        """The same for one that ends with sending something: the actor is not over before."""
        task = self.run_guarded(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _guard(self) -> _Guard:
        return _Guard(self)

    def fail(self, error: Exception) -> None:
        """Ends the actor with an error, which its `join` raises."""
        if self._failure is None and not self._over.is_set():
            self._log.error("actor failed", error=str(error))
            self._failure = error
            self._over.set()

    def _wake_at(self, monotonic_s: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        delay_s = max(0.0, monotonic_s - self.now_s())
        self._wake = asyncio.get_running_loop().call_later(delay_s, self._on_wake)

    def _on_wake(self) -> None:
        self._wake = None
        with self._guard():
            self.do(self.on_time())

    def _report_soon(self) -> None:
        if not self._report_due and not self._over.is_set():
            self._report_due = True
            asyncio.get_running_loop().call_later(self._report_every_s, self._report)

    def _report(self) -> None:
        self._report_due = False
        progress = self.progress()
        if progress is not None and progress != self._reported:
            self._reported = progress
            self._reports += 1
            self._coordinator.progress.options(num_returns=0).remote(progress, self._reports)

    def _check_gaps(self, before: dict[str, int]) -> None:
        lasting = before.items() & self._inlet.gaps().items()
        if lasting:
            edge, sequence = sorted(lasting)[0]
            self.fail(ProtocolError(f"{self._name}: message {sequence} of edge {edge} did not come"))


def report_every_s(num_actors: int) -> float:
    """How often each of so many actors may report: all together as often as a few, or the coordinator hears no more."""
    return _REPORT_EVERY_S * max(1.0, num_actors / _REPORTERS)


class _Guard:
    """The edge of a shell: an error ends the actor instead of being swallowed by the event loop."""

    def __init__(self, shell: ActorShell[Any]) -> None:
        self._shell = shell

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._shell.fail(error)
            return True
        return False
