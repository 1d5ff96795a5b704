"""What the coordinator tells the process that runs the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from actors.reports import FetchProgress, ListProgress
from state.records import CatalogView, EpochCounts, ViewVersion


@dataclass(frozen=True)
class Recovered:
    """Where an attempt begins.

    Args:
        merger: the actor that the materializer takes its epochs from.
        views: view → its version, restored under the new term.
        ingested: the sources of which rows were ingested before.
    """

    term: int
    epoch: int
    merger: Any
    views: Mapping[str, ViewVersion]
    catalog_views: Mapping[str, CatalogView]
    schemas: Mapping[str, pa.Schema]
    ingested: frozenset[str]


@dataclass(frozen=True)
class RunState:
    """How far a run is.  `version` grows with every change; `totals` are those of the epochs that this run committed.

    Args:
        reached_mark: the highest `Watermark` that is reached, 0 before the first.
        closed: sources whose files wait for the schema of another source.
        phase: `running`, `paused`, `stopping`, `stopped` or `failed`.
        epoch: the last committed one.
        failure: what ended the run, in phase `failed`.
    """

    version: int
    phase: str
    epoch: int
    epochs: int = 0
    totals: EpochCounts = field(default_factory=EpochCounts)
    lists: tuple[ListProgress, ...] = ()
    fetchers: tuple[FetchProgress, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    reached_mark: int = 0
    closed: frozenset[str] = frozenset()
    failure: Exception | None = None
