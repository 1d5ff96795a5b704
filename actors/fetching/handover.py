"""Handovers: the files of vnodes on their way from one fetch actor to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from actors.fetching.file_progress import FileProgress
from actors.fetching.version_set import VersionSet
from actors.files import FileBatch, PathKey
from actors.protocol.messages import Message
from state.errors import ProtocolError


@dataclass(frozen=True)
class Handover(Message):
    """State of vnodes that another fetch actor owns from a barrier on.

    Args:
        giver: name of the owner before.
        epoch: the epoch that begins with the barrier.
        files: unfinished files; each continues at its row.
        successors, without_rows, changed, held: see `FileVersions`.
        samples: source → number of files that were sent ahead to infer its schema.
    """

    giver: str
    epoch: int
    files: tuple[FileProgress, ...] = ()
    successors: tuple[FileProgress, ...] = ()
    without_rows: VersionSet = field(default_factory=VersionSet)
    changed: VersionSet = field(default_factory=VersionSet)
    held: frozenset[PathKey] = frozenset()
    samples: Mapping[str, int] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Unread files, which can be very many, travel as columns."""
        unread = [each for each in self.files if each.is_unread]
        return self.__dict__ | {
            "files": tuple(each for each in self.files if not each.is_unread),
            "unread": (FileBatch(each.file for each in unread), [each.listed_epoch for each in unread]),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        files, listed = state.pop("unread")
        unread = (FileProgress(file, epoch, stored=True) for file, epoch in zip(files, listed, strict=True))
        self.__dict__.update(state | {"files": (*state["files"], *unread)})


class VnodeArrivals:
    """Handovers to one fetch actor, and the messages behind the barrier that wait for them.

    A handover may arrive before or after the barrier that announces it.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._missing: Set[str] = frozenset()
        self._here: dict[tuple[int, str], Handover] = {}
        self._waiting: deque[Message] = deque()

    @property
    def is_waiting(self) -> bool:
        """True while an expected handover is missing: messages have to wait."""
        return bool(self._missing)

    def expect(self, epoch: int, givers: Set[str]) -> None:
        """Expects one handover from each giver, with the barrier that begins an epoch."""
        self._epoch, self._missing = epoch, givers

    def add(self, handover: Handover) -> None:
        """Adds a handover.

        Raises:
            ProtocolError: its giver has sent one for this epoch already.
        """
        key = handover.epoch, handover.giver
        if key in self._here:
            raise ProtocolError(f"{handover.giver} has handed its vnodes of epoch {handover.epoch} over twice")
        self._here[key] = handover

    def take(self) -> list[Handover]:
        """The expected handovers, once, when all of them are here; before that an empty list."""
        keys = [(self._epoch, giver) for giver in sorted(self._missing)]
        if not all(key in self._here for key in keys):
            return []
        self._missing = frozenset()
        return [self._here.pop(key) for key in keys]

    def hold(self, message: Message) -> None:
        """Keeps a message from behind the barrier, which may be about a file that has not arrived."""
        self._waiting.append(message)

    def next_held(self) -> Message | None:
        """The next message that waits no longer; None if all wait."""
        return None if self._missing or not self._waiting else self._waiting.popleft()
