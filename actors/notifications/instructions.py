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
        mark: the last one that was made before, see `ListExecutor.on_mark`.
        wait_s: how long to wait for the first one.
        is_extra: whether it is beside those that wait for long; then the queue's depth is asked for, too.
    """

    mark: int
    wait_s: float
    is_extra: bool = False


@dataclass(frozen=True)
class LookAt(Instruction):
    """Looks at what there is in the bucket now at these paths; `on_looked` is the answer."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class DeleteMessages(Instruction):
    """Takes messages out of the queue: what they say is committed."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ExtendMessages(Instruction):
    """Keeps messages from being received by others for another while."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ReleaseMessages(Instruction):
    """Lets messages be received by whoever comes next, at once."""

    messages: tuple[QueueMessage, ...]


EventInstruction: TypeAlias = Receive | LookAt | DeleteMessages | ExtendMessages | ReleaseMessages
