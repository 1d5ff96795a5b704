"""What actors tell the coordinator: at a barrier what they sealed, between barriers how far they are."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Literal

from actors.files import Vanished
from actors.protocol.barrier import Barrier
from actors.protocol.blocks import Block, Correction
from state.tables.delta import Delta
from state.tables.epoch_trace import Span
from state.tables.records import CatalogView, EpochCounts, LeftOutColumn, ViewVersion

CorrectionOutcome = Literal["replaced", "forgotten", "kept"]


@dataclass(frozen=True)
class CorrectedFile:
    """What becomes of the versions of an object of which the views held rows; only the ledger knows which those are.

    Args:
        outcome: `replaced` (by `version`), `forgotten`, or `kept`: `version` was to replace them and could not be read.
    """

    source: str
    path: str
    version: bytes | None
    outcome: CorrectionOutcome


@dataclass(frozen=True)
class CollectReport:
    """An actor has finished an epoch.

    Args:
        activity: how many things the actor had done, ever, when it sealed; what it does later is another epoch's.
        vanished: a fetch actor's, see `Barrier.vanished`.
        corrected: a fetch actor's, in the order in which it happened.
        left_out: a fetch actor's: columns of the epoch's files that their sources do not have.
        unfinished_since: a fetch actor's: source → the epoch in which the oldest unfinished file was listed.
        complete_mark: a list actor's: everything that was there at this mark has been handed on.
        last_progress: a fetch actor's that leaves with this barrier: how far it was in the end.
        views: the materializer's: every view's version as of this epoch.
        created: the materializer's: views that begin with this epoch.
        dropped: the materializer's: names of views that end with it.
        work_s: the materializer's: for how many seconds it had the epoch.
        work: the materializer's: what it did in them; `start_s` counts from their begin.
    """

    actor: str
    epoch: int
    delta: Delta = field(default_factory=Delta)
    counts: EpochCounts = field(default_factory=EpochCounts)
    activity: int = 0
    vanished: tuple[Vanished, ...] = ()
    corrected: tuple[CorrectedFile, ...] = ()
    left_out: tuple[LeftOutColumn, ...] = ()
    unfinished_since: Mapping[str, int] = field(default_factory=dict)
    complete_mark: int = 0
    last_progress: FetchProgress | None = None
    views: Mapping[str, ViewVersion] | None = None
    created: tuple[CatalogView, ...] = ()
    dropped: tuple[str, ...] = ()
    work_s: float = 0.0
    work: tuple[Span, ...] = ()


@dataclass(frozen=True)
class MessageProgress:
    """What became of the messages of a queue of events.  Counts run from the actor's start.

    Args:
        received: messages, each counted once.
        redelivered: deliveries of messages that had been received before, by whomever.
        poison: messages that say nothing of the source's bucket; they are in quarantine.
        deleted: messages that are done with.
        tracked: messages that are being worked on.
        oldest_sent_s: when the oldest message was sent that is being worked on, in seconds since 1970.
    """

    received: int = 0
    redelivered: int = 0
    poison: int = 0
    deleted: int = 0
    tracked: int = 0
    oldest_sent_s: float | None = None


@dataclass(frozen=True)
class ListProgress:
    """How far a list actor is.  Counts run from the actor's start.

    Args:
        sent: files handed on.
        held: new files of the current page that wait for budget or for a schema.
        unsettled: new local files that have been seen once only.
        listings: complete listings.
        listed: objects in the last complete listing that the pattern takes.
        spent: LIST requests of the last hour by the minute, see `RequestBudget`.
        period_s: seconds from the beginning of one listing to that of the next.
        stretched_by: what makes that longer than the source asks for, see `ListingPace`.
        found: new and changed files that the last complete listing has found.
        listed_at: when that ended.
        messages: of the queue of events; None if there is none.
    """

    actor: str
    source: str
    activity: int = 0
    sent: int = 0
    held: int = 0
    unsettled: int = 0
    listings: int = 0
    listed: int = 0
    requests: int = 0
    spent: tuple[int, ...] = ()
    period_s: float = 0.0
    stretched_by: str | None = None
    found: int = 0
    listed_at: datetime | None = None
    messages: MessageProgress | None = None


@dataclass(frozen=True)
class SourceProgress:
    """How far a fetch actor is with one source.  Counts run from the actor's start; bytes are bytes read.

    Args:
        changes_ignored: changes of files that are noted, and not read.
    """

    waiting: int = 0
    reading: int = 0
    done: int = 0
    quarantined: int = 0
    vanished: int = 0
    rows: int = 0
    rows_bad: int = 0
    bytes: int = 0
    requests: int = 0
    changes_ignored: int = 0

    def plus(self, other: SourceProgress) -> SourceProgress:
        """The sums."""
        return SourceProgress(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(SourceProgress))
        )


@dataclass(frozen=True)
class FetchProgress:
    """How far a fetch actor is.

    Args:
        received: files that came from the list actors since the start.
        unsealed_bytes: Arrow bytes emitted since the last barrier.
        in_flight_bytes: those emitted that Spark has not released yet.
        is_full: whether no more files may end before the next one.
        is_held_back: whether it could do more than a limit, or Spark, lets it.
        moved: how many more files have come from other fetch actors than went to them.
        ready: the last rescaling for which no file would have to be read again.
    """

    actor: str
    activity: int = 0
    received: int = 0
    unsealed_bytes: int = 0
    in_flight_bytes: int = 0
    sources: Mapping[str, SourceProgress] = field(default_factory=dict)
    is_full: bool = False
    is_held_back: bool = False
    moved: int = 0
    ready: int = 0

    @property
    def backlog(self) -> int:
        """Files that are not finished."""
        return self.backlog_without(frozenset())

    def backlog_without(self, closed: Set[str]) -> int:
        """Files that are not finished, of all other sources."""
        return sum(each.waiting + each.reading for name, each in self.sources.items() if name not in closed)

    def with_counts_of(self, other: FetchProgress) -> FetchProgress:
        """The two as one: files, rows and what they cost, all in all."""
        sources = {
            name: self.sources.get(name, SourceProgress()).plus(other.sources.get(name, SourceProgress()))
            for name in {**self.sources, **other.sources}
        }
        return replace(self, received=self.received + other.received, moved=self.moved + other.moved, sources=sources)


Progress = ListProgress | FetchProgress


@dataclass(frozen=True)
class EpochBlocks:
    """The rows of one epoch, by source, in the hands of the materializer; the corrections come behind all of them."""

    barrier: Barrier
    blocks: Mapping[str, tuple[Block, ...]]
    corrections: tuple[Correction, ...] = ()

    @property
    def epoch(self) -> int:
        return self.barrier.epoch.prev
