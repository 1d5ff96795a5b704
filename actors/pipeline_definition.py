"""What a run is told: the pipeline as it was declared, without its views' queries."""

from __future__ import annotations

from dataclasses import dataclass

from actors.settings import BarrierSettings, FetchSettings
from actors.source import SourceDefinition
from state.location import Location


@dataclass(frozen=True, kw_only=True)
class PipelineDefinition:
    """Everything the coordinator needs.

    Args:
        views: the names of the declared views.
        ansi: whether Spark runs in ANSI mode; kept in the catalog.
    """

    name: str
    root: Location
    sources: tuple[SourceDefinition, ...]
    views: tuple[str, ...]
    ansi: bool
    barrier: BarrierSettings
    fetch: FetchSettings
