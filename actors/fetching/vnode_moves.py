"""Vnodes on their way to another fetch actor."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, FileVersion, PathKey
from actors.protocol.messages import Message
from state.errors import ProtocolError

_FILE = tuple(FileVersion.__dataclass_fields__)


@dataclass(frozen=True)
class Handover(Message):
    """Everything that one fetch actor knows of vnodes that another one owns from a barrier on.

    Args:
        giver: the name of the one before.
        epoch: that begins with the barrier.
        files: those that are not finished; each goes on at its row.
        successors: later versions of some of them.
        without_rows, held: see `FileQueue`.
        samples: source → how many files were sent ahead to show its schema.
    """

    giver: str
    epoch: int
    files: tuple[FileProgress, ...] = ()
    successors: tuple[FileProgress, ...] = ()
    without_rows: frozenset[FileKey] = frozenset()
    held: frozenset[PathKey] = frozenset()
    samples: Mapping[str, int] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """For the way: of files that nobody has read, which can be very many, their columns are enough."""
        unread = [each for each in self.files if each.is_unread]
        columns = [[getattr(each.file, name) for each in unread] for name in _FILE]
        return self.__dict__ | {
            "files": tuple(each for each in self.files if not each.is_unread),
            "unread": (columns, [each.listed_epoch for each in unread]),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        columns, listed = state.pop("unread")
        files = map(FileVersion, *columns)
        unread = (FileProgress(file, epoch, stored=True) for file, epoch in zip(files, listed, strict=True))
        self.__dict__.update(state | {"files": (*state["files"], *unread)})


class VnodeArrivals:
    """The handovers to one fetch actor, which may come before or behind the barrier that announces them."""

    def __init__(self) -> None:
        self._epoch = 0
        self._missing: Set[str] = frozenset()
        self._here: dict[tuple[int, str], Handover] = {}
        self._waiting: deque[Message] = deque()

    @property
    def is_waiting(self) -> bool:
        """Whether messages have to wait."""
        return bool(self._missing)

    def expect(self, epoch: int, givers: Set[str]) -> None:
        """Vnodes come from these with the barrier that begins an epoch."""
        self._epoch, self._missing = epoch, givers

    def add(self, handover: Handover) -> None:
        """Something has come."""
        key = handover.epoch, handover.giver
        if key in self._here:
            raise ProtocolError(f"{handover.giver} has handed its vnodes of epoch {handover.epoch} over twice")
        self._here[key] = handover

    def take(self) -> list[Handover]:
        """What was expected, once, when all of it is there; nothing before."""
        keys = [(self._epoch, giver) for giver in sorted(self._missing)]
        if not all(key in self._here for key in keys):
            return []
        self._missing = frozenset()
        return [self._here.pop(key) for key in keys]

    def hold(self, message: Message) -> None:
        """A message comes behind the barrier, and may be about what has not come."""
        self._waiting.append(message)

    def next_held(self) -> Message | None:
        """The next message that waits no more."""
        return None if self._missing or not self._waiting else self._waiting.popleft()
