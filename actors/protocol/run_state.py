"""What the coordinator tells the process that runs the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa

from actors.files import FileKey
from actors.protocol.reports import FetchProgress, ListProgress, SourceProgress
from state.tables.records import CatalogView, EpochCounts, EpochSeconds, ViewVersion

RunPhase = Literal["starting", "running", "paused", "stopping", "stopped"]
EpochPhase = Literal["align", "spark", "collect", "commit"]

_RECENT_EPOCHS = 32
_RECENT_TRACES = 16


@dataclass(frozen=True)
class Recovered:
    """Where an attempt begins.

    Args:
        merger: the actor that the materializer takes its epochs from.
        views: view → its version, restored under the new term.
        ingested: the sources of which rows were ingested before.
        finished: source → what the ledger and the queue say of it; `waiting`, `reading` and `requests` are 0.
    """

    term: int
    epoch: int
    merger: Any
    views: Mapping[str, ViewVersion]
    catalog_views: Mapping[str, CatalogView]
    schemas: Mapping[str, pa.Schema]
    ingested: frozenset[str]
    finished: Mapping[str, SourceProgress]


@dataclass(frozen=True)
class Unfinished:
    """The oldest unfinished file of a source: the epoch that listed it, and how many were committed since."""

    listed_epoch: int
    epochs: int


@dataclass(frozen=True)
class EpochInFlight:
    """An epoch between its barrier and its commit.

    Args:
        phase: `align` until every fetch actor has passed the barrier, `spark` until every view is written, `collect`
            until every actor has reported, then `commit`.
    """

    epoch: int
    phase: EpochPhase


@dataclass(frozen=True)
class CommittedEpoch:
    """An epoch that this attempt has committed.

    Args:
        commit_s: how long the commit itself took, in seconds.
        freshness_s: source → how old its youngest file was by then that the epoch finished: seconds from the time that
            the object store has for the file to the commit, so that both clocks count.  Sources of which the epoch
            finished no file, or more than fit into a report, are missing.
    """

    epoch: int
    committed_at: datetime
    counts: EpochCounts
    seconds: EpochSeconds
    commit_s: float = 0.0
    freshness_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunState:
    """How far a run is.  `version` grows with every change; `totals` are those of the epochs that this run committed.

    Args:
        reached_mark: the highest `CaughtUp` that is reached, 0 before the first.
        closed: sources whose files wait for the schema of another source.
        phase: `running`, `paused`, `stopping` or `stopped`.
        epoch: the last committed one.
        in_flight: the epochs whose barrier was injected, the oldest first.
        recent: the last epochs that this attempt committed, the oldest first.
        traces: where the time of the very last of them went: epoch → `EpochTrace` as JSON.
        files_in_flight: files that are listed and not finished in a committed epoch.
        unfinished: source → its oldest unfinished file, as of the last epoch that is over.
        files_at_once, suspects: how many paths may be read at a time when few may, and which versions, see `Admission`.
        requests_over: how many requests are: the epoch that a mutation ends is over, and that which a `Retry` begins.
        num_fetchers: how many fetch actors own vnodes, from the last barrier on.
        scaling: why there are so many, if that was decided by the workload.
        rescalings_over: how many rescalings are: the epoch of the barrier that moves vnodes is over.
        failure: what ended the attempt.
    """

    version: int
    phase: RunPhase
    term: int
    epoch: int
    epochs: int = 0
    totals: EpochCounts = field(default_factory=EpochCounts)
    lists: tuple[ListProgress, ...] = ()
    fetchers: tuple[FetchProgress, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    reached_mark: int = 0
    closed: frozenset[str] = frozenset()
    in_flight: tuple[EpochInFlight, ...] = ()
    recent: tuple[CommittedEpoch, ...] = ()
    traces: Mapping[int, str] = field(default_factory=dict)
    files_in_flight: int = 0
    unfinished: Mapping[str, Unfinished] = field(default_factory=dict)
    files_at_once: int | None = None
    suspects: frozenset[FileKey] = frozenset()
    requests_over: int = 0
    num_fetchers: int = 0
    scaling: str = ""
    rescalings_over: int = 0
    failure: Exception | None = None

    def since(self, epoch: int) -> RunState:
        """The same for somebody who knows the epochs up to this one: they would be most of what is sent."""
        recent = tuple(each for each in self.recent if each.epoch > epoch)
        traces = {each: trace for each, trace in self.traces.items() if each > epoch}
        return replace(self, recent=recent, traces=traces)

    def after(self, before: RunState) -> RunState:
        """The same with the epochs that an earlier state of the attempt had."""
        recent = (*before.recent, *self.recent)[-_RECENT_EPOCHS:]
        traces = dict([*before.traces.items(), *self.traces.items()][-_RECENT_TRACES:])
        return replace(self, recent=recent, traces=traces)
