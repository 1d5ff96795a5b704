"""Files of a source that the run has deleted or moved after their commit, as the root records them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class RunDeletion:
    """A deleted version of an object.

    Args:
        path: relative to its source.
        version: the version that was read.
        last_modified: the time of the object.
    """

    path: str
    version: bytes
    last_modified: datetime


class Deletions(Protocol):
    """The record of the deletions of one source."""

    def news(self) -> Sequence[RunDeletion]:
        """The deletions that were recorded since the last call; the first call returns all.  Blocks.

        Raises:
            StorageError: the root cannot be read.
        """
        ...
