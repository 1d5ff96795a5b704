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
from state.tables.records import EpochCounts, EpochSeconds, LeftOutColumn, ViewVersion


@dataclass(frozen=True)
class Inject(Instruction):
    """Sends a barrier into the flow, at every list actor."""

    barrier: Barrier


@dataclass(frozen=True)
class Commit(Instruction):
    """Commits an epoch.  Only one is asked for at a time; what it became is told by `on_committed`, or recovery."""

    epoch: int
    delta: Delta
    views: Mapping[str, ViewVersion]
    counts: EpochCounts
    seconds: EpochSeconds
    corrected: tuple[CorrectedFile, ...] = ()
    trace: str | None = None


@dataclass(frozen=True)
class TellCommitted(Instruction):
    """Tells the list actors that an epoch is committed."""

    epoch: int


@dataclass(frozen=True)
class MoveTags(Instruction):
    """Moves the tag `committed` of these views, when there is time."""

    views: Mapping[str, ViewVersion]


@dataclass(frozen=True)
class DecideSchema(Instruction):
    """Tells everybody whom it concerns what a source looks like."""

    source: str
    schema: pa.Schema


@dataclass(frozen=True)
class TellLeftOut(Instruction):
    """Says that a source's files have a column that the source does not."""

    column: LeftOutColumn


@dataclass(frozen=True)
class TryNextFile(Instruction):
    """None of the files that were to show a source's schema could be read: the next ones go ahead."""

    source: str


@dataclass(frozen=True)
class MarkListings(Instruction):
    """Asks every list actor for word of when it has handed on what is there now."""

    mark: int


@dataclass(frozen=True)
class Connect(Instruction):
    """Makes fetch actors and opens their edges, before vnodes move to them; `on_connected` is the answer.

    Args:
        before, after: who owns which vnodes, and who will.
    """

    before: VnodeMapping
    after: VnodeMapping


@dataclass(frozen=True)
class PrepareMove(Instruction):
    """Tells the owners that vnodes are about to move, see `FetchExecutor.on_moving`."""

    number: int
    before: VnodeMapping
    after: VnodeMapping
    rest: bool


@dataclass(frozen=True)
class TellScaling(Instruction):
    """Says that there are to be more fetch actors, or fewer, by the workload."""

    before: int
    decision: ScalingDecision


@dataclass(frozen=True)
class EndFetchers(Instruction):
    """Ends fetch actors whose vnodes have others, when they have handed them over; nobody needs their blocks."""

    names: tuple[str, ...]


CoordinateInstruction: TypeAlias = (
    WakeAt
    | End
    | Fail
    | Inject
    | Commit
    | TellCommitted
    | MoveTags
    | DecideSchema
    | TellLeftOut
    | TryNextFile
    | MarkListings
    | Connect
    | PrepareMove
    | TellScaling
    | EndFetchers
)
