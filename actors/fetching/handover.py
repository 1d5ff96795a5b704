"""What a fetch actor hands over with the vnodes that it loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, FileVersion, PathKey
from actors.protocol.messages import Message

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
