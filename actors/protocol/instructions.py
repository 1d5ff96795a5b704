"""What an executor asks of its shell.  Executors decide; shells do, in the order of the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from actors.coordination.autoscaler import ScalingDecision
from actors.fetching.handover import Handover
from actors.fetching.read_buffer import Piece
from actors.notifications.message_tracker import QueueMessage
from actors.protocol.messages import Barrier, FileVersion, Message
from actors.protocol.reports import CollectReport, CorrectedFile, EpochBlocks
from actors.protocol.vnode_mapping import VnodeMapping
from actors.rows import Offset
from state.errors import SchemaError
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds, LeftOutColumn, ViewVersion


@dataclass(frozen=True)
class Send:
    """Sends a message to some receivers, by name, or to all (`to` is None)."""

    message: Message
    to: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Collect:
    """Reports to the coordinator that this actor has sealed an epoch."""

    report: CollectReport


@dataclass(frozen=True)
class HandOver:
    """Sends what belongs to vnodes to the fetch actor that owns them from now on."""

    to: str
    handover: Handover


@dataclass(frozen=True)
class End:
    """The actor's work is over: a `Stop` has passed, or it owns no vnode any more."""


@dataclass(frozen=True)
class ReadPage:
    """Reads the next pages of the listing, or the first of a new one.

    Args:
        most: so many side by side; none if the last one is known to be there.
    """

    first: bool
    most: int


@dataclass(frozen=True)
class FindGone:
    """Looks for files of the ledger by what `seen` knows of them.

    Args:
        absent: path fingerprint → version fingerprint.
    """

    source: str
    absent: Mapping[bytes, bytes]


@dataclass(frozen=True)
class Receive:
    """Receives messages of the queue of events; `on_messages` is the answer.

    Args:
        mark: the last one that was made before, see `ListExecutor.on_mark`.
        wait_s: how long to wait for the first one.
        is_extra: whether it is beside those that wait for long; then the queue's depth is asked for, too.
    """

    mark: int
    wait_s: float
    is_extra: bool = False


@dataclass(frozen=True)
class LookAt:
    """Looks at what there is in the bucket now at these paths; `on_looked` is the answer."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class DeleteMessages:
    """Takes messages out of the queue: what they say is committed."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ExtendMessages:
    """Keeps messages from being received by others for another while."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class ReleaseMessages:
    """Lets messages be received by whoever comes next, at once."""

    messages: tuple[QueueMessage, ...]


@dataclass(frozen=True)
class WakeAt:
    """Calls the executor again at a time of the monotonic clock."""

    monotonic_s: float


@dataclass(frozen=True)
class ReadPiece:
    """Reads on in a file, from an offset if it is not open yet."""

    file: FileVersion
    offset: Offset


@dataclass(frozen=True)
class InferSchema:
    """Opens a file and infers its schema; the file stays open for reading."""

    file: FileVersion


@dataclass(frozen=True)
class ProposeSchema:
    """Tells the coordinator what a file of a source without schema looks like.

    Attributes:
        schema: None if the file is empty or cannot be read; an error if it has a column that no source can have.
        sample: how many files of the source were sent ahead so far, as far as is known.
    """

    source: str
    path: str
    schema: pa.Schema | SchemaError | None
    sample: int = 0


@dataclass(frozen=True)
class ProposeColumns:
    """Tells the coordinator what columns a file has that its source lacks; the answer is a `DecideSchema`."""

    source: str
    columns: pa.Schema


@dataclass(frozen=True)
class StagePiece:
    """Stores rows of a file that replaces, which are shown when all of them are there; `on_staged` is the answer."""

    piece: Piece
    epoch: int


@dataclass(frozen=True)
class CloseFile:
    """Drops an open file: it is read from another place, or no more."""

    file: FileVersion


@dataclass(frozen=True)
class CloseFiles:
    """Drops every open file."""


@dataclass(frozen=True)
class EmitBlock:
    """Puts rows of one source into the object store as one block of an epoch and sends its reference on.

    Attributes:
        pieces: what the rows are of; each has some.
    """

    source: str
    pieces: tuple[Piece, ...]
    nbytes: int
    epoch: int

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def tables(self) -> tuple[pa.Table, ...]:
        return tuple(piece.table for piece in self.pieces if piece.table is not None)


@dataclass(frozen=True)
class Fail:
    """The run cannot go on."""

    error: Exception


@dataclass(frozen=True)
class Deliver:
    """Hands the blocks of one epoch to the materializer."""

    epoch: EpochBlocks


@dataclass(frozen=True)
class Inject:
    """Sends a barrier into the flow, at every list actor."""

    barrier: Barrier


@dataclass(frozen=True)
class Commit:
    """Commits an epoch.  Only one is asked for at a time; what it became is told by `on_committed`, or recovery."""

    epoch: int
    delta: Delta
    views: Mapping[str, ViewVersion]
    counts: EpochCounts
    seconds: EpochSeconds
    corrected: tuple[CorrectedFile, ...] = ()
    trace: str | None = None


@dataclass(frozen=True)
class TellCommitted:
    """Tells the list actors that an epoch is committed."""

    epoch: int


@dataclass(frozen=True)
class MoveTags:
    """Moves the tag `committed` of these views, when there is time."""

    views: Mapping[str, ViewVersion]


@dataclass(frozen=True)
class DecideSchema:
    """Tells everybody whom it concerns what a source looks like."""

    source: str
    schema: pa.Schema


@dataclass(frozen=True)
class TellLeftOut:
    """Says that a source's files have a column that the source does not."""

    column: LeftOutColumn


@dataclass(frozen=True)
class TryNextFile:
    """None of the files that were to show a source's schema could be read: the next ones go ahead."""

    source: str


@dataclass(frozen=True)
class MarkListings:
    """Asks every list actor for word of when it has handed on what is there now."""

    mark: int


@dataclass(frozen=True)
class Connect:
    """Makes fetch actors and opens their edges, before vnodes move to them; `on_connected` is the answer.

    Args:
        before, after: who owns which vnodes, and who will.
    """

    before: VnodeMapping
    after: VnodeMapping


@dataclass(frozen=True)
class PrepareMove:
    """Tells the owners that vnodes are about to move, see `FetchExecutor.on_moving`."""

    number: int
    before: VnodeMapping
    after: VnodeMapping
    rest: bool


@dataclass(frozen=True)
class TellScaling:
    """Says that there are to be more fetch actors, or fewer, by the workload."""

    before: int
    decision: ScalingDecision


@dataclass(frozen=True)
class EndFetchers:
    """Ends fetch actors whose vnodes have others, when they have handed them over; nobody needs their blocks."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Grant:
    """Gives credit back to the sender of an edge."""

    edge: str
    nbytes: int


Instruction = (
    Send
    | Collect
    | HandOver
    | End
    | ReadPage
    | FindGone
    | Receive
    | LookAt
    | DeleteMessages
    | ExtendMessages
    | ReleaseMessages
    | WakeAt
    | ReadPiece
    | InferSchema
    | ProposeSchema
    | ProposeColumns
    | StagePiece
    | CloseFile
    | CloseFiles
    | EmitBlock
    | Fail
    | Deliver
    | Grant
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


def pass_on(barrier: Barrier, report: CollectReport, to: tuple[str, ...] | None = None) -> list[Instruction]:
    """Seal, report, pass on: what every executor does with a barrier, in this order."""
    return [Collect(report), Send(barrier, to)]
