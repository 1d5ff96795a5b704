"""Instructions of the list executor to its shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from actors.names.name_shards import SendToNames
from actors.notifications.instructions import EventInstruction
from actors.objects.listing_page import SkippedName
from actors.protocol.instructions import FlowInstruction, Instruction


@dataclass(frozen=True)
class ReadPage(Instruction):
    """Reads the next pages of the listing; `on_page` or `on_listing_end` is the answer.

    Args:
        first: whether a new listing begins.
        most: number of pages to ask for side by side; 0 after the last page, to learn of the end of the listing.
    """

    first: bool
    most: int


@dataclass(frozen=True)
class FindDeleted(Instruction):
    """Looks missing names up in the ledger; `on_deleted` is the answer.

    Args:
        source: the name of the source.
        missing: path fingerprint → version fingerprint, as in `seen`.
    """

    source: str
    missing: Mapping[bytes, bytes]


@dataclass(frozen=True)
class WarnOf(Instruction):
    """Warns of a name that listings skip."""

    name: SkippedName


@dataclass(frozen=True)
class ReportRemovals(Instruction):
    """Tells that removals pause, or go on.

    Args:
        paused: number of files whose removal is paused; 0 when removals go on.
        known: number of files of the source.
    """

    paused: int
    known: int


@dataclass(frozen=True)
class ReportPause(Instruction):
    """Reports that the source pauses, or continues.

    Args:
        reason: the reason, with the next step; None when the source continues.
    """

    reason: str | None


ListInstruction: TypeAlias = (
    FlowInstruction | EventInstruction | SendToNames | ReadPage | FindDeleted | WarnOf | ReportRemovals | ReportPause
)
