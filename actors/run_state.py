"""What the coordinator tells the process that runs the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from actors.messages import PathKey
from actors.reports import FetchProgress, ListProgress, SourceProgress
from state.records import CatalogView, EpochCounts, ViewVersion


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
class RunState:
    """How far a run is.  `version` grows with every change; `totals` are those of the epochs that this run committed.

    Args:
        reached_mark: the highest `Watermark` that is reached, 0 before the first.
        closed: sources whose files wait for the schema of another source.
        phase: `running`, `paused`, `stopping` or `stopped`.
        epoch: the last committed one.
        files_in_flight: files that are listed and not finished in a committed epoch.
        unfinished: source → its oldest unfinished file, as of the last epoch that is over.
        files_at_once, suspects: how many paths may be read at a time, and which, when few may; see `Admission`.
        requests_over: how many requests are: the epoch that a mutation ends is over, and that which a `Retry` begins.
        num_fetchers: how many fetch actors own vnodes, from the last barrier on.
        scaling: why there are so many, if that was decided by the workload.
        rescalings_over: how many rescalings are: the epoch of the barrier that moves vnodes is over.
        failure: what ended the attempt.
    """

    version: int
    phase: str
    term: int
    epoch: int
    epochs: int = 0
    totals: EpochCounts = field(default_factory=EpochCounts)
    lists: tuple[ListProgress, ...] = ()
    fetchers: tuple[FetchProgress, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    reached_mark: int = 0
    closed: frozenset[str] = frozenset()
    files_in_flight: int = 0
    unfinished: Mapping[str, Unfinished] = field(default_factory=dict)
    files_at_once: int | None = None
    suspects: frozenset[PathKey] = frozenset()
    requests_over: int = 0
    num_fetchers: int = 0
    scaling: str = ""
    rescalings_over: int = 0
    failure: Exception | None = None
