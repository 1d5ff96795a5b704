"""The names of one source in the hands of several name actors, as its list step sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from actors.names.name_mapping import NameMapping
from actors.names.name_messages import (
    BeginListing,
    ForgetName,
    NameAnswer,
    NameChange,
    NameMessage,
    PutName,
    SetDeleted,
    SetDeletedByRun,
    SetMissing,
    SetUnread,
    TakeBack,
)
from actors.names.questions import Question, Rows
from actors.names.seen_index import SeenIndex
from actors.protocol.instructions import Instruction
from actors.protocol.messages import Message
from state.errors import ProtocolError


@dataclass(frozen=True)
class SendToNames(Instruction):
    """Sends a message to one name actor."""

    to: str
    message: Message


class NameShards:
    """Changes go out with the next question, or with `send_changes`; one question at a time is asked."""

    def __init__(self, owners: Sequence[str]) -> None:
        self._mapping = NameMapping(owners)
        self._changes: dict[str, list[NameChange]] = {owner: [] for owner in owners}
        self._question: Question[Any] | None = None
        # Owner → its rows of the question, and the answers that have come.
        self._asked: dict[str, Rows] = {}
        self._answers: dict[str, Any] = {}

    @property
    def owners(self) -> tuple[str, ...]:
        return self._mapping.owners

    # -- changes, as `SeenIndex` has them ---------------------------------------------------------------------------

    def begin_listing(self) -> None:
        """See `SeenIndex.begin_listing`."""
        for changes in self._changes.values():
            changes.append(BeginListing())

    def put(self, key: bytes, version: bytes) -> None:
        """See `SeenIndex.put`."""
        self._change(key, PutName(key, version))

    def forget(self, key: bytes, version: bytes) -> None:
        """See `SeenIndex.forget`."""
        self._change(key, ForgetName(key, version))

    def take_back(self, key: bytes) -> None:
        """See `SeenIndex.take_back`."""
        self._change(key, TakeBack(key))

    def set_missing(self, keys: Sequence[bytes]) -> None:
        """See `SeenIndex.set_missing`."""
        for owner, rows in self._mapping.shares(keys).items() if keys else ():
            self._changes[owner].append(SetMissing([keys[row] for row in rows]))

    def set_deleted(self, keys: Sequence[bytes]) -> None:
        """See `SeenIndex.set_deleted`."""
        for owner, rows in self._mapping.shares(keys).items():
            self._changes[owner].append(SetDeleted([keys[row] for row in rows]))

    def set_unread(self, keys: Sequence[bytes]) -> None:
        """See `SeenIndex.set_unread`."""
        for owner, rows in self._mapping.shares(keys).items():
            self._changes[owner].append(SetUnread([keys[row] for row in rows]))

    def set_deleted_by_run(self, keys: Sequence[bytes], versions: Sequence[bytes], deliveries: Sequence[bytes]) -> None:
        """See `SeenIndex.set_deleted_by_run`."""
        for owner, rows in self._mapping.shares(keys).items() if keys else ():
            parts = [[column[row] for row in rows] for column in (keys, versions, deliveries)]
            self._changes[owner].append(SetDeletedByRun(*parts))

    # -- questions --------------------------------------------------------------------------------------------------

    def ask(self, question: Question[Any]) -> list[SendToNames]:
        """Asks each shard its part of a question; no other question may be open."""
        if self._question is not None:
            raise ProtocolError(f"{type(question).__name__} was asked before {type(self._question).__name__} was over")
        self._question, self._answers = question, {}
        about = question.about
        if about is None:
            self._asked = dict.fromkeys(self.owners, np.empty(0, np.int64))
        else:
            self._asked = self._mapping.shares(about)
        return [
            SendToNames(owner, NameMessage(self._take_changes(owner), question.part(rows, len(self.owners))))
            for owner, rows in self._asked.items()
        ]

    def on_answer(self, owner: str, answer: NameAnswer) -> None:
        """A shard has answered its part.

        Raises:
            ProtocolError: nothing was asked of it.
        """
        if owner not in self._asked or owner in self._answers:
            raise ProtocolError(f"{owner} has answered a question that it was not asked")
        self._answers[owner] = answer.answer

    @property
    def is_answered(self) -> bool:
        """Whether every shard that was asked has answered."""
        return len(self._answers) == len(self._asked)

    def take_answer(self) -> Any:
        """The answer to the question, once all parts are answered."""
        question, self._question = self._question, None
        if question is None or not self.is_answered:
            raise ProtocolError("names: an answer was taken before all of its parts had come")
        asked, self._asked = self._asked, {}
        answers, self._answers = self._answers, {}
        return question.joined([(rows, answers[owner]) for owner, rows in asked.items()])

    def send_changes(self) -> list[SendToNames]:
        """Sends the changes that no question has taken along."""
        return [
            SendToNames(owner, NameMessage(self._take_changes(owner)))
            for owner, changes in self._changes.items()
            if changes
        ]

    # -- inside -----------------------------------------------------------------------------------------------------

    def _change(self, key: bytes, change: NameChange) -> None:
        self._changes[self._mapping.owner_of(key)].append(change)

    def _take_changes(self, owner: str) -> tuple[NameChange, ...]:
        changes, self._changes[owner] = self._changes[owner], []
        return tuple(changes)


Names: TypeAlias = SeenIndex | NameShards
"""The names of one source: in this process, or in shards."""
