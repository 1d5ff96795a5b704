"""Instructions of the list executor to its shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from actors.notifications.instructions import EventInstruction
from actors.protocol.instructions import FlowInstruction, Instruction


@dataclass(frozen=True)
class ReadPage(Instruction):
    """Reads the next pages of the listing, or the first of a new one.

    Args:
        most: so many side by side; none if the last one is known to be there.
    """

    first: bool
    most: int


@dataclass(frozen=True)
class FindGone(Instruction):
    """Looks for files of the ledger by what `seen` knows of them.

    Args:
        absent: path fingerprint → version fingerprint.
    """

    source: str
    absent: Mapping[bytes, bytes]


ListInstruction: TypeAlias = FlowInstruction | EventInstruction | ReadPage | FindGone
