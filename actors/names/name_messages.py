"""Messages between a list actor and the name actors of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.names.questions import Question
from actors.names.seen_index import SeenIndex
from actors.protocol.messages import Message


@dataclass(frozen=True)
class BeginListing:
    """See `SeenIndex.begin_listing`."""

    def apply(self, index: SeenIndex) -> None:
        index.begin_listing()


@dataclass(frozen=True)
class PutName:
    """See `SeenIndex.put`."""

    key: bytes
    version: bytes

    def apply(self, index: SeenIndex) -> None:
        index.put(self.key, self.version)


@dataclass(frozen=True)
class ForgetName:
    """See `SeenIndex.forget`."""

    key: bytes
    version: bytes

    def apply(self, index: SeenIndex) -> None:
        index.forget(self.key, self.version)


@dataclass(frozen=True)
class TakeBack:
    """See `SeenIndex.take_back`."""

    key: bytes

    def apply(self, index: SeenIndex) -> None:
        index.take_back(self.key)


@dataclass(frozen=True)
class SetMissing:
    """See `SeenIndex.set_missing`."""

    keys: Sequence[bytes]

    def apply(self, index: SeenIndex) -> None:
        index.set_missing(self.keys)


@dataclass(frozen=True)
class SetDeleted:
    """See `SeenIndex.set_deleted`."""

    keys: Sequence[bytes]

    def apply(self, index: SeenIndex) -> None:
        index.set_deleted(self.keys)


@dataclass(frozen=True)
class SetUnread:
    """See `SeenIndex.set_unread`."""

    keys: Sequence[bytes]

    def apply(self, index: SeenIndex) -> None:
        index.set_unread(self.keys)


@dataclass(frozen=True)
class SetDeletedByRun:
    """See `SeenIndex.set_deleted_by_run`."""

    keys: Sequence[bytes]
    versions: Sequence[bytes]
    deliveries: Sequence[bytes]

    def apply(self, index: SeenIndex) -> None:
        index.set_deleted_by_run(self.keys, self.versions, self.deliveries)


NameChange: TypeAlias = (
    BeginListing | PutName | ForgetName | TakeBack | SetMissing | SetDeleted | SetUnread | SetDeletedByRun
)


@dataclass(frozen=True)
class NameMessage(Message):
    """Changes of the names of one shard, and then a question.

    Args:
        changes: in their order.
        question: its answer is a `NameAnswer`; None for no question.
    """

    changes: tuple[NameChange, ...] = ()
    question: Question[Any] | None = None


@dataclass(frozen=True)
class NameAnswer(Message):
    """The answer of a shard to the question of the last `NameMessage` that had one."""

    answer: Any
