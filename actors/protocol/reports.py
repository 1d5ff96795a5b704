"""Reports of the actors to the coordinator: at a barrier their sealed changes, between barriers their progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from actors.files import Vanished
from actors.protocol.barrier import Barrier
from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import ListingCounts, MessageCounts, SourceProgress
from state.tables.delta import Delta
from state.tables.epoch_trace import Span
from state.tables.expectations import ViewExpectations
from state.tables.records import CatalogView, EpochCounts, UnmatchedColumn, ViewVersion

CorrectionOutcome = Literal["replaced", "forgotten", "kept"]


@dataclass(frozen=True)
class CorrectedFile:
    """The outcome for the versions of an object of which the views held rows; only the ledger knows these versions.

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
        delta: the actor's changes of the tables in this epoch.
        activity: number of actions of the actor, ever, when it sealed; later ones belong to another epoch.
        vanished: a fetch actor's, see `Barrier.vanished`.
        corrected: a fetch actor's, in the order in which it happened.
        unmatched: a fetch actor's: columns that the epoch's files and their sources do not share.
        unfinished_since: a fetch actor's: source → the epoch in which its oldest unfinished file was listed.
        event_times: a fetch actor's: source → epoch that listed files → the highest event time of their rows that came
            in this epoch, in microseconds since 1970.
        complete_mark: a list actor's: everything that was there at this mark has been handed on.
        is_refused: a list actor's: its store or queue has refused requests several times in a row.
        last_progress: a fetch actor's that leaves with this barrier: its final progress.
        views: the materializer's: name → version of every view as of this epoch.
        changed_views: the materializer's: views of the catalog that begin or change with this epoch.
        dropped: the materializer's: names of views that end with it.
        expectations: the materializer's: view → its expectations if they change with it; None if it has none any more.
        work_s: the materializer's: seconds that it had the epoch.
        work: the materializer's: its spans in these seconds; `start_s` counts from their begin.
        planned_queries: the materializer's: queries that Spark planned in these seconds.
    """

    actor: str
    epoch: int
    delta: Delta = field(default_factory=Delta)
    counts: EpochCounts = field(default_factory=EpochCounts)
    activity: int = 0
    vanished: tuple[Vanished, ...] = ()
    corrected: tuple[CorrectedFile, ...] = ()
    unmatched: tuple[UnmatchedColumn, ...] = ()
    unfinished_since: Mapping[str, int] = field(default_factory=dict)
    event_times: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    complete_mark: int = 0
    is_refused: bool = False
    last_progress: FetchProgress | None = None
    views: Mapping[str, ViewVersion] | None = None
    changed_views: tuple[CatalogView, ...] = ()
    dropped: tuple[str, ...] = ()
    expectations: Mapping[str, ViewExpectations | None] = field(default_factory=dict)
    work_s: float = 0.0
    work: tuple[Span, ...] = ()
    planned_queries: int = 0


@dataclass(frozen=True)
class MessageProgress(MessageCounts):
    """Counts of the messages of a queue of events, from the actor's start.

    Args:
        tracked: messages that are being worked on.
        oldest_sent_s: time at which the oldest tracked message was sent, in seconds since 1970.
    """

    tracked: int = 0
    oldest_sent_s: float | None = None


@dataclass(frozen=True)
class ListProgress(ListingCounts):
    """Progress of a list actor.  Counts run from the actor's start.

    Args:
        held: new files of the current page that wait for budget or for a schema.
        unsettled: new local files that have been seen once only.
        spent: LIST requests of the last hour by the minute, see `RequestBudget`.
        period_s: seconds from the beginning of one listing to that of the next.
        messages: counts of the queue of events; None if the source has no queue.
    """

    actor: str
    source: str
    activity: int = 0
    sent: int = 0
    held: int = 0
    unsettled: int = 0
    requests: int = 0
    spent: tuple[int, ...] = ()
    period_s: float = 0.0
    messages: MessageProgress | None = None


@dataclass(frozen=True)
class FetchProgress:
    """Progress of a fetch actor.

    Args:
        activity: number of actions, ever.
        received: files that came from the list actors since the start.
        unsealed_bytes: Arrow bytes emitted since the last barrier.
        in_flight_bytes: bytes emitted that Spark has not released yet.
        is_full: whether no more files may end before the next barrier.
        is_held_back: whether a limit, or Spark, keeps it from doing more.
        moved: files that came from other fetch actors, less those that went to them.
        ready: the last move of vnodes for which no file would have to be read again.
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
        """Files that are not finished, without those of closed sources."""
        return sum(each.waiting + each.reading for name, each in self.sources.items() if name not in closed)

    def with_counts_of(self, other: FetchProgress) -> FetchProgress:
        """The sums of two: files, rows, bytes and requests."""
        sources = {
            name: self.sources.get(name, SourceProgress()).plus(other.sources.get(name, SourceProgress()))
            for name in {**self.sources, **other.sources}
        }
        return replace(self, received=self.received + other.received, moved=self.moved + other.moved, sources=sources)


Progress = ListProgress | FetchProgress


@dataclass(frozen=True)
class EpochBlocks:
    """The rows of one epoch for the materializer.

    Args:
        blocks: source → its blocks.
        corrections: they come behind all blocks.
        bad_records: source → the records of the epoch that could not be read.
    """

    barrier: Barrier
    blocks: Mapping[str, tuple[Block, ...]]
    corrections: tuple[Correction, ...] = ()
    bad_records: Mapping[str, int] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        return self.barrier.epoch.prev

    def records(self, sources: Collection[str]) -> tuple[int, int]:
        """The records of some sources that came in the epoch, and the bad ones among them."""
        bad = sum(self.bad_records.get(source, 0) for source in sources)
        blocks = sum(block.rows for source in sources for block in self.blocks.get(source, ()))
        staged = sum(stored.rows for each in self.corrections if each.source in sources for stored in each.stored)
        return blocks + staged + bad, bad
