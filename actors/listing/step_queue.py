"""Queue of the steps of a list executor: each step is over before the next begins, however long its names take."""

from __future__ import annotations

from collections import deque
from typing import Any

from actors.listing.instructions import ListInstruction
from actors.names.name_messages import NameAnswer
from actors.names.name_shards import Names, NameShards
from actors.names.questions import Asking
from state.errors import ProtocolError

_Step = Asking[list[ListInstruction]]


class StepQueue:
    """Runs steps, which ask questions about names, one after the other.

    With an index in this process each step is over at once.  With shards a step waits for their answers, and all later
    ones for it, also barriers: nothing happens between a question and its answer.

    Args:
        names: the names of the source.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._waiting: deque[_Step] = deque()
        self._asking: _Step | None = None

    def run(self, step: _Step) -> list[ListInstruction]:
        """Runs a step, or puts it behind the one that waits for an answer."""
        self._waiting.append(step)
        return self._run_waiting() if self._asking is None else []

    def on_answer(self, owner: str, answer: NameAnswer) -> list[ListInstruction]:
        """A name actor has answered; with the last answer the step goes on.

        Raises:
            ProtocolError: nothing was asked of it.
        """
        if not isinstance(self._names, NameShards):
            raise ProtocolError(f"{owner} has answered, and no shard has the names")
        self._names.on_answer(owner, answer)
        step = self._asking
        if step is None or not self._names.is_answered:
            return []
        self._asking = None
        return [*self._go_on(step, self._names.take_answer()), *self._run_waiting()]

    def _run_waiting(self) -> list[ListInstruction]:
        instructions: list[ListInstruction] = []
        while self._waiting and self._asking is None:
            instructions += self._go_on(self._waiting.popleft(), None)
        return instructions

    def _go_on(self, step: _Step, answer: Any) -> list[ListInstruction]:
        """Runs a step to its end, or to its next question to shards."""
        names, instructions = self._names, list[ListInstruction]()
        while True:
            try:
                question = step.send(answer)
            except StopIteration as end:
                instructions += end.value
                return [*instructions, *names.send_changes()] if isinstance(names, NameShards) else instructions
            if not isinstance(names, NameShards):
                answer = question.answer(names)
                continue
            instructions += names.ask(question)
            if not names.is_answered:
                self._asking = step
                return instructions
            answer = names.take_answer()
