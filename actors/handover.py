"""What a fetch actor hands over with the vnodes that it loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.file_progress import FileProgress
from actors.messages import FileKey, PathKey


@dataclass(frozen=True)
class Handover:
    """Everything that one fetch actor knows of vnodes that another one owns from a barrier on.

    Args:
        giver: the name of the one before.
        epoch: that begins with the barrier.
        files: those that are not finished, in the order in which they are read; each goes on at its row.
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
