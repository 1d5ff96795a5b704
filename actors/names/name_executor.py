"""The step of one name actor: keeps the names of its vnodes, and answers the list step of their source."""

from __future__ import annotations

from actors.names.name_messages import NameAnswer, NameMessage
from actors.names.seen_index import SeenIndex
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Collect, End, FlowInstruction, Send
from actors.protocol.messages import Message
from actors.protocol.reports import CollectReport
from state.errors import ProtocolError


class NameExecutor:
    """One shard of the names of a source.  It has no state to seal: the list step writes the table `seen`.

    Args:
        actor: this actor's name in reports.
        index: the names of its vnodes that were handed on before.
    """

    def __init__(self, *, actor: str, index: SeenIndex) -> None:
        self._actor, self._index = actor, index

    def on_message(self, message: Message) -> list[FlowInstruction]:
        """Makes the changes of a message and answers its question; the barriers end here."""
        match message:
            case Barrier():
                collect = Collect(CollectReport(self._actor, message.epoch.prev))
                return [collect, End()] if message.is_stop else [collect]
            case NameMessage():
                for change in message.changes:
                    change.apply(self._index)
                if message.question is None:
                    return []
                return [Send(NameAnswer(message.question.answer(self._index)))]
            case _:
                raise ProtocolError(f"{self._actor}: {type(message).__name__} does not pass here")
