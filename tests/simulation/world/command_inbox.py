"""The inbox of a root in memory: commands of users, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from state.ownership.command import Answer, Command
from state.ownership.command_inbox import PendingCommand
from tests.simulation.world.simulated_root import Access

if TYPE_CHECKING:
    from tests.simulation.promises.promises import Promises


@dataclass
class _Asked:
    pending: PendingCommand
    answer: Answer | None = None
    on_answer: Callable[[], None] = lambda: None


class SimulatedInbox:
    """The files in `commands/` of a root.

    Args:
        promises: checks each answer.
    """

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._asked: dict[str, _Asked] = {}

    def ask(self, command: Command, run: str) -> str:
        """Writes a command to a run.  Returns its id."""
        name = f"{len(self._asked):013d}-0000000000000000"
        self._asked[name] = _Asked(PendingCommand(name, run, command))
        self._promises.on_asked(name, command)
        return name

    def answer_to(self, name: str) -> Answer | None:
        """The answer to a command; None before there is one."""
        return self._asked[name].answer

    def notify(self, name: str, on_answer: Callable[[], None]) -> None:
        """Tells when a command is answered."""
        self._asked[name].on_answer = on_answer

    @property
    def unanswered(self) -> list[PendingCommand]:
        """The commands without an answer, oldest first."""
        return [each.pending for each in self._asked.values() if each.answer is None]

    def answer(self, name: str, answer: Answer, run: str, *, has_stopped: bool) -> None:
        """Writes the answer of a run; a second one changes nothing."""
        asked = self._asked[name]
        if asked.answer is None:
            asked.answer = answer
            self._promises.on_answered(name, answer, is_of_its_run=run == asked.pending.run, has_stopped=has_stopped)
            asked.on_answer()


class InboxOfRun:
    """The inbox by the way of one run; see `state.ownership.command_inbox.CommandInbox`.

    Args:
        inbox: the files.
        access: the way; a bad moment of the root is one of the inbox, too.
        has_stopped: whether the run has stopped gracefully.
    """

    def __init__(self, inbox: SimulatedInbox, access: Access, has_stopped: Callable[[], bool]) -> None:
        self._inbox, self._access, self._has_stopped = inbox, access, has_stopped

    def pending(self) -> list[PendingCommand]:
        self._access.read()
        return self._inbox.unanswered

    def answer(self, name: str, answer: Answer) -> None:
        self._access.read()
        self._inbox.answer(name, answer, self._access.life.name, has_stopped=self._has_stopped())
        self._access.after("answer")
