"""The shell of an actor of the flow: order on its edges, progress reports, and its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar, assert_never

import pyarrow as pa

from actors.exchange.edge import Inlet, Outlet
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Collect, End, Fail, FlowInstruction, ProposeSchema, Send, WakeAt
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import CollectReport, Progress
from actors.shells.runtime import Actor, Event, Runtime
from actors.shells.shell import Shell
from state.errors import ProtocolError
from state.store.root import Root

_REPORTERS = 4
_Step = TypeVar("_Step")


class Receiver(Protocol):
    """The shell at the other end of an edge."""

    async def receive(self, envelope: Envelope) -> None: ...


class Coordinating(Protocol):
    """The coordinator, as the actors of the flow see it."""

    async def progress(self, progress: Progress, number: int) -> None: ...

    async def collect(self, report: CollectReport) -> None: ...

    async def propose_schema(self, proposal: ProposeSchema) -> None: ...

    async def propose_columns(self, source: str, columns: pa.Schema) -> None: ...


class ActorShell(Shell[_Step]):
    """Hosts one executor of the flow.

    Args:
        name: the actor's name; its edges out are named after it.
        edges: names of the edges in.
        runtime: the world around the actor.
        open_root: opens the root, where large deltas are staged; None for an actor without state.
    """

    reports_progress = False

    def __init__(
        self,
        *,
        name: str,
        edges: Iterable[str],
        coordinator: Actor[Coordinating],
        runtime: Runtime,
        open_root: Callable[[], Root] | None = None,
    ) -> None:
        super().__init__(name, runtime)
        self._coordinator, self._open_root = coordinator, open_root
        self._follows: dict[int, int] = {}
        self._epoch: int | None = None
        self._is_admitted = False
        self._inlet = Inlet(edges)
        self._outlets: dict[str, tuple[Actor[Receiver], Outlet]] = {}
        self._over = runtime.event()
        self._leaving = 0
        self._has_ended = False
        self._report_every_s = runtime.report_every_s
        self._report_due = False
        self._reported: Progress | None = None
        self._reports = 0

    # -- calls of other actors ------------------------------------------------------------------------------------

    async def connect(self, receivers: Mapping[str, Actor[Receiver]]) -> None:
        """Opens edges out, by the names that the executor has for them."""
        self._outlets |= {name: (receiver, self.outlet()) for name, receiver in receivers.items()}

    async def receive(self, envelope: Envelope) -> None:
        """Takes one message; earlier messages of its edge are taken first."""
        if self._failure is not None:
            return
        with self.guard():
            for message in self._inlet.receive(envelope):
                if isinstance(message, Barrier):
                    self._on_barrier(message)
                self.do(self.on_message(envelope.edge, message))
            if gaps := self._inlet.gaps():
                self._runtime.later(self._runtime.lost_after_s, partial(self._check_gaps, gaps))

    async def join(self) -> None:
        """Returns when the actor's work is over; raises its failure."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    # -- the executor, as a subclass hosts it ---------------------------------------------------------------------

    def outlet(self) -> Outlet:
        """A new edge out of this actor.  A shell whose data is limited by credit returns the edge of its executor."""
        return Outlet(self.name)

    def on_message(self, edge: str, message: Message) -> Iterable[_Step]:
        """The executor's answer to a message."""
        raise NotImplementedError

    def progress(self) -> Progress | None:
        """The executor's progress, of a shell that reports it."""
        return None

    # -- instructions ---------------------------------------------------------------------------------------------

    def perform_flow(self, instruction: FlowInstruction) -> None:
        match instruction:
            case Send():
                self.send(instruction.message, instruction.to)
            case Collect():
                self._collect(instruction.report)
                self._enter(self._follows.pop(instruction.report.epoch, None))
            case WakeAt():
                self.wake_at(instruction.monotonic_s)
            case End():
                self.end()
            case Fail():
                raise instruction.error
            case _:
                assert_never(instruction)

    def send(self, message: Message, to: Iterable[str] | None = None) -> None:
        """Sends on some edges out, or on all."""
        for receiver, outlet in [self._outlets[name] for name in (self._outlets if to is None else to)]:
            self._runtime.notify(receiver, Receiver.receive, outlet.send(message))

    def end(self) -> None:
        """A `Stop` has passed, or nothing is left to do: the actor is over when everything on its way has left."""
        self._has_ended = True
        if not self._leaving:
            self._report()
            self._over.set()

    def beside_leaving(self, work: Callable[..., Coroutine[Any, Any, object]], *arguments: Any) -> Event:
        """Runs a coroutine that sends a message at its end; the actor does not end before the coroutine."""
        self._leaving += 1
        return self.beside(self._leave, work, arguments)

    def fail(self, error: Exception) -> None:
        """Ends the actor with an error, which its `join` raises."""
        if self._failure is None and not self._over.is_set():
            self._log.error("actor failed", error=str(error))
            self._failure = error
            self._over.set()
            self._runtime.on_failure(error)

    def after_instructions(self) -> None:
        if self.reports_progress and not self._report_due and not self._over.is_set():
            self._report_due = True
            self._runtime.later(self._report_every_s, self._on_report_due)

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _leave(self, work: Callable[..., Coroutine[Any, Any, object]], arguments: tuple[Any, ...]) -> None:
        await work(*arguments)
        self._leaving -= 1
        if self._has_ended and not self._leaving:
            self.end()

    def _on_barrier(self, barrier: Barrier) -> None:
        """The next epoch begins when the actor has collected the one before: other inputs may be behind."""
        self._follows[barrier.epoch.prev] = barrier.epoch.curr
        self._is_admitted = barrier.admitted is not None
        if self._epoch is None:
            self._enter(barrier.epoch.prev)

    def _enter(self, epoch: int | None) -> None:
        if epoch is not None:
            self._epoch = epoch
            self._log = self._log.bind(epoch=epoch)

    def _collect(self, report: CollectReport) -> None:
        # A commit with corrections changes the ledger, and an admission follows the queue: both need the delta itself.
        is_large = report.delta.nbytes > self._runtime.staged_from_bytes
        is_needed = bool(report.corrected) or self._is_admitted
        if self._open_root is not None and is_large and not is_needed:
            self.beside_leaving(self._stage, self._open_root, report)
        else:
            self._runtime.notify(self._coordinator, Coordinating.collect, report)

    async def _stage(self, open_root: Callable[[], Root], report: CollectReport) -> None:
        """A large delta goes to the store itself; the report only names it."""
        staged = await self._runtime.in_thread(lambda: open_root().stage(report.delta, report.epoch))
        self._runtime.notify(self._coordinator, Coordinating.collect, replace(report, delta=staged))

    def _on_report_due(self) -> None:
        with self.guard():
            self._report()

    def _report(self) -> None:
        self._report_due = False
        progress = self.progress()
        if progress is not None and progress != self._reported:
            self._reported = progress
            self._reports += 1
            self._runtime.notify(self._coordinator, Coordinating.progress, progress, self._reports)

    def _check_gaps(self, before: dict[str, int]) -> None:
        lasting = before.items() & self._inlet.gaps().items()
        if lasting:
            edge, sequence = sorted(lasting)[0]
            self.fail(ProtocolError(f"{self.name}: message {sequence} of edge {edge} did not come"))


def times_slower(num_actors: int) -> float:
    """Factor between two reports of one of many actors: all together report as often as a few."""
    return max(1.0, num_actors / _REPORTERS)
