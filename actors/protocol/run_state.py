"""The state of a run, as the coordinator reports it to the process that runs the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa

from actors.files import FileKey
from actors.protocol.counters import SourceProgress
from actors.protocol.reports import FetchProgress, ListProgress
from state.tables.expectations import ViewExpectations
from state.tables.records import CatalogView, EpochCounts, EpochSeconds, ViewVersion

RunPhase = Literal["starting", "running", "paused", "stopping", "stopped"]
EpochPhase = Literal["align", "spark", "collect", "commit"]

_RECENT_EPOCHS = 32
_RECENT_TRACES = 16


@dataclass(frozen=True)
class Recovered:
    """The recovered state that the process needs to begin an attempt.

    Args:
        term: the head's term, won by this attempt.
        merger: handle of the actor that gives the materializer its epochs.
        views: name → version, restored under the new term.
        ingested: the sources of which rows were ingested before.
        finished: source → its counts in the ledger and the queue; `waiting`, `reading` and `requests` are 0.
        expectations: view → its expectations as of the last epoch.
    """

    term: int
    epoch: int
    merger: Any
    views: Mapping[str, ViewVersion]
    catalog_views: Mapping[str, CatalogView]
    schemas: Mapping[str, pa.Schema]
    ingested: frozenset[str]
    finished: Mapping[str, SourceProgress]
    expectations: Mapping[str, ViewExpectations] = field(default_factory=dict)


@dataclass(frozen=True)
class Unfinished:
    """The oldest unfinished file of a source: the epoch that listed it, and the number of epochs committed since."""

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
        commit_s: duration of the commit itself, in seconds.
        freshness_s: source → age of the youngest file that the epoch finished: seconds from the object store's time of
            the file to the commit, so that both clocks count.  Sources of which the epoch finished no file, or more
            than fit into a report, are missing.
    """

    epoch: int
    committed_at: datetime
    counts: EpochCounts
    seconds: EpochSeconds
    commit_s: float = 0.0
    freshness_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunState:
    """The state of a run.

    Args:
        version: grows with every change.
        totals: counts of the epochs that this run committed.
        reached_mark: the highest mark that is reached, see `CaughtUp`; 0 before the first.
        closed: sources whose files wait for the schema of another source.
        phase: `starting`, `running`, `paused`, `stopping` or `stopped`.
        in_flight: the epochs whose barrier was injected, the oldest first.
        recent: the last epochs that this attempt committed, the oldest first.
        traces: epoch → its `EpochTrace` as JSON, of the last ones among them.
        files_in_flight: files that are listed and not finished in a committed epoch.
        unfinished: source → its oldest unfinished file, as of the last epoch that is over.
        files_at_once: number of paths that may be read at a time after an epoch that killed, see `Admission`.
        suspects: versions one of which may have ended the attempt → the committed rows of each.
        requests_over: number of requests that are over: the epoch that a mutation ends, or that a `Retry` begins, is.
        num_fetchers: number of fetch actors that own vnodes, from the last barrier on.
        scaling: reason of that number, if the workload decided it.
        rescalings_over: number of rescalings that are over: the epoch of the barrier that moves vnodes is.
        watermarks: source → its watermark, in microseconds since 1970; a source without one is missing.
        filled: source → its columns that a file lacked, and that are null in the rows of the file.
        failure: the error that ended the attempt.
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
    suspects: Mapping[FileKey, int] = field(default_factory=dict)
    requests_over: int = 0
    num_fetchers: int = 0
    scaling: str = ""
    rescalings_over: int = 0
    watermarks: Mapping[str, int] = field(default_factory=dict)
    filled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failure: Exception | None = None

    def since(self, epoch: int) -> RunState:
        """The state without the epochs up to `epoch`, which the reader has: they are most of the message."""
        recent = tuple(each for each in self.recent if each.epoch > epoch)
        traces = {each: trace for each, trace in self.traces.items() if each > epoch}
        return replace(self, recent=recent, traces=traces)

    def after(self, before: RunState) -> RunState:
        """The state with the epochs of an earlier state of the attempt."""
        recent = (*before.recent, *self.recent)[-_RECENT_EPOCHS:]
        traces = dict([*before.traces.items(), *self.traces.items()][-_RECENT_TRACES:])
        return replace(self, recent=recent, traces=traces)
