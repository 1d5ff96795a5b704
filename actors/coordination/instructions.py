"""Instructions of the coordinator's executor to its shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from actors.coordination.autoscaler import ScalingDecision
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import End, Fail, Instruction, WakeAt
from actors.protocol.reports import CorrectedFile
from actors.protocol.vnode_mapping import VnodeMapping
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds, UnmatchedColumn, ViewVersion


@dataclass(frozen=True)
class Inject(Instruction):
    """Sends a barrier into the flow, at every list actor."""

    barrier: Barrier


@dataclass(frozen=True)
class Commit(Instruction):
    """Commits an epoch, one at a time; the answer is `on_committed`, or a recovery."""

    epoch: int
    delta: Delta
    views: Mapping[str, ViewVersion]
    counts: EpochCounts
    seconds: EpochSeconds
    corrected: tuple[CorrectedFile, ...] = ()
    trace: str | None = None
    published: int | None = None


@dataclass(frozen=True)
class ReportCommitted(Instruction):
    """Notifies the list actors that an epoch is committed."""

    epoch: int


@dataclass(frozen=True)
class MoveTags(Instruction):
    """Moves the tag `committed` of these views, in the background."""

    views: Mapping[str, ViewVersion]


@dataclass(frozen=True)
class DecideSchema(Instruction):
    """Sends the schema of a source to its list actor and to the fetch actors."""

    source: str
    schema: pa.Schema


@dataclass(frozen=True)
class ReportUnmatched(Instruction):
    """Reports a column that a source and its files do not share."""

    column: UnmatchedColumn


@dataclass(frozen=True)
class TryNextFile(Instruction):
    """Sends further files of a source ahead, since no earlier file has shown a schema."""

    source: str


@dataclass(frozen=True)
class MarkListings(Instruction):
    """Asks every list actor to report when everything that is in its bucket now has been handed on.

    Args:
        at_once: whether a caller waits for the mark: the next listings begin now.
    """

    mark: int
    at_once: bool = False


@dataclass(frozen=True)
class Connect(Instruction):
    """Makes fetch actors and opens their edges, before vnodes move to them; `on_connected` is the answer.

    Args:
        before, after: the owners of the vnodes.
    """

    before: VnodeMapping
    after: VnodeMapping


@dataclass(frozen=True)
class PrepareMove(Instruction):
    """Notifies the owners that vnodes are about to move, see `FetchExecutor.on_moving`.

    Args:
        number: the number of the move, from 1.
        before, after: the owners of the vnodes.
        rest: whether open files stop at the end of their piece.
    """

    number: int
    before: VnodeMapping
    after: VnodeMapping
    rest: bool


@dataclass(frozen=True)
class ReportScaling(Instruction):
    """Reports that the workload asks for another number of fetch actors than `before`."""

    before: int
    decision: ScalingDecision


@dataclass(frozen=True)
class EndFetchers(Instruction):
    """Ends fetch actors that own no vnode any more, when they have handed theirs over; their blocks are committed."""

    names: tuple[str, ...]


CoordinateInstruction: TypeAlias = (
    WakeAt
    | End
    | Fail
    | Inject
    | Commit
    | ReportCommitted
    | MoveTags
    | DecideSchema
    | ReportUnmatched
    | TryNextFile
    | MarkListings
    | Connect
    | PrepareMove
    | ReportScaling
    | EndFetchers
)
