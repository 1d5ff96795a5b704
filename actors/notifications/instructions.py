"""Instructions of the event watch to its shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from actors.notifications.message_tracker import QueueMessage
from actors.protocol.instructions import Instruction


@dataclass(frozen=True)
class Receive(Instruction):
    """Receives messages of the queue of events; `on_messages` is the answer.

    Args:
        mark: the last mark, see `ListExecutor.on_mark`.
        wait_s: seconds to wait for the first message.
        is_extra: whether it also asks for the depth of the queue; it is not one of the long-waiting requests then.
    """

    mark: int
    wait_s: float
    is_extra: bool = False


@dataclass(frozen=True)
class LookAt(Instruction):
    """Looks at the objects at these paths in the bucket; `on_looked` is the answer."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class DeleteMessages(Instruction):
    """Deletes messages from the queue: all that they name is committed."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ExtendMessages(Instruction):
    """Keeps messages invisible to other readers for another period."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ReleaseMessages(Instruction):
    """Makes messages visible at once, for the next reader."""

    messages: tuple[QueueMessage, ...]


EventInstruction: TypeAlias = Receive | LookAt | DeleteMessages | ExtendMessages | ReleaseMessages
