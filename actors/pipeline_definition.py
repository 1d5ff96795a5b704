"""What a run is told: the pipeline as it was declared, without its views' queries."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from actors.settings import BarrierSettings, FetchSettings
from actors.source import SourceDefinition
from state.location import Location


@dataclass(frozen=True, kw_only=True)
class PipelineDefinition:
    """Everything the coordinator needs.

    Args:
        views: name of each declared view → the sources that it may read.
        ansi: whether Spark runs in ANSI mode; kept in the catalog.
    """

    name: str
    root: Location
    sources: tuple[SourceDefinition, ...]
    views: Mapping[str, frozenset[str]]
    ansi: bool
    barrier: BarrierSettings
    fetch: FetchSettings

    def closed_sources(self, decided: Set[str]) -> frozenset[str]:
        """Sources that have a schema and must wait for another one's.

        A view over several sources begins with the first row of any of them, and can be analysed only when all of
        their schemas are decided.
        """
        undecided = {source.name for source in self.sources} - decided
        return frozenset(name for read in self.views.values() if read & undecided for name in read - undecided)
