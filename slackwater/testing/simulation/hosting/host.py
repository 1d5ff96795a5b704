"""What the hosts of the executors share: the same as `actors.hosting.shell.ActorShell`, with events in place of Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from actors.exchange.edge import Inlet, Outlet
from actors.protocol.instructions import Collect, End, Fail, Instruction, Send, WakeAt
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import Progress
from slackwater.testing.simulation.promises.promises import PromiseBroken
from slackwater.testing.simulation.world.interruptions import Killed
from slackwater.testing.simulation.world.schedule import Life
from state.errors import ProtocolError, SlackwaterError

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.attempt import SimulatedAttempt


_REPORTS_LATE = 0.25


class Host(Life):
    """Hosts one executor.

    Args:
        attempt: that it is part of.
        name: the actor's name; its edges out are named after it.
        edges: names of the edges in.
    """

    reports_progress = False

    def __init__(self, attempt: SimulatedAttempt, name: str, edges: Iterable[str]) -> None:
        super().__init__(name, attempt)
        self._attempt, self._world = attempt, attempt.world
        self._inlet = Inlet(edges)
        self._outlets: dict[str, tuple[Host, Outlet]] = {}
        self._wake_s: float | None = None
        self._report_due = False
        self._reported: Progress | None = None
        self._reports = 0
        self._leaving, self._has_stopped, self._ends_when_over = 0, False, False
        self.over = False

    def connect(self, receivers: Iterable[Host]) -> None:
        """Opens edges out, by the names that the executor has for them."""
        self._outlets |= {receiver.name: (receiver, self.outlet()) for receiver in receivers}

    def outlet(self) -> Outlet:
        """A new edge out of this actor."""
        return Outlet(self.name)

    def receive(self, envelope: Envelope) -> None:
        """Takes one message; whatever comes before it on its edge is taken first."""
        for message in self._inlet.receive(envelope):
            self.do(self.on_message(envelope.edge, message))

    def on_message(self, edge: str, message: Message) -> Sequence[Instruction]:
        """The executor's answer to a message."""
        raise NotImplementedError

    def on_time(self) -> Sequence[Instruction]:
        """The executor's answer to a `WakeAt` that came due."""
        return []

    def progress(self) -> Progress | None:
        """How far the executor is, for those that report it."""
        return None

    def perform(self, instruction: Instruction) -> None:
        """Instructions of this actor's own kind."""
        raise ProtocolError(f"{self.name} cannot perform {type(instruction).__name__}")

    def do(self, instructions: Iterable[Instruction]) -> None:
        """Performs instructions in their order; between any two of them the actor may die."""
        for instruction in instructions:
            if not self.alive:
                return
            if isinstance(instruction, Send):
                self.send(instruction.message, instruction.to)
            elif isinstance(instruction, Collect):
                self._attempt.coordinator.tell(self._attempt.coordinator.collect, instruction.report)
                self._world.interruptions.planned(f"{self.name} collects")
            elif isinstance(instruction, WakeAt):
                self._wake_at(instruction.monotonic_s)
            elif isinstance(instruction, End):
                self._has_stopped = True
                self._end_if_all_left()
            elif isinstance(instruction, Fail):
                raise instruction.error
            else:
                self.perform(instruction)
        if self.reports_progress and not self._report_due and not self.over:
            self._report_due = True
            self.soon(self._report)

    def send(self, message: Message, to: Iterable[str] | None = None) -> None:
        """Sends on some edges out, or on all."""
        for receiver, outlet in [self._outlets[name] for name in (self._outlets if to is None else to)]:
            receiver.tell(receiver.receive, outlet.send(message))

    @property
    def now_s(self) -> float:
        return self._world.clock.monotonic()

    def soon(self, action: Callable[..., None], *arguments: Any) -> None:
        """This actor does something at some moment."""
        self._world.schedule.soon(self, self.act, action, *arguments)

    def soon_leaving(self, action: Callable[..., None], *arguments: Any) -> None:
        """The same for what ends with sending something: the actor is not over before."""
        self._leaving += 1
        self.soon(self._leave, action, *arguments)

    tell = soon
    """Somebody else's call comes at some moment; calls do not keep their order."""

    def tell_now(self, action: Callable[..., None], *arguments: Any) -> None:
        """Somebody else's call comes at once."""
        if self.alive:
            self.act(action, *arguments)

    def act(self, action: Callable[..., None], *arguments: Any) -> None:
        """Does it now; what it raises ends the actor, and what shows a bug ends the simulation."""
        try:
            action(*arguments)
        except Killed:
            pass
        except ProtocolError as error:
            if self.alive:
                raise PromiseBroken("no bug", f"{self.name}: {error}") from error
        except SlackwaterError as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Ends the actor with an error, of which the coordinator hears."""
        if self.alive and not self.over:
            self.end()
            self._attempt.coordinator.tell(self._attempt.coordinator.fail, error)

    def end_when_over(self) -> None:
        """Nobody needs this actor any more when its work is over."""
        self._ends_when_over = True
        if self.over:
            self.end()

    def _leave(self, action: Callable[..., None], *arguments: Any) -> None:
        action(*arguments)
        self._leaving -= 1
        self._end_if_all_left()

    def _end_if_all_left(self) -> None:
        if self._has_stopped and not self._leaving:
            self._report()
            self.over = True
            if self._ends_when_over:
                self.end()

    def _wake_at(self, monotonic_s: float) -> None:
        if self._wake_s != monotonic_s:
            self._wake_s = monotonic_s
            self._world.schedule.at(monotonic_s, self, self.act, self._wake, monotonic_s)

    def _wake(self, monotonic_s: float) -> None:
        if self._wake_s == monotonic_s:
            self._wake_s = None
            self.do(self.on_time())

    def _report(self) -> None:
        self._report_due = False
        progress = self.progress()
        if progress is not None and progress != self._reported:
            self._reported = progress
            self._reports += 1
            coordinator = self._attempt.coordinator
            how = coordinator.tell if self._world.random.random() < _REPORTS_LATE else coordinator.tell_now
            how(coordinator.on_progress, progress, self._reports)
