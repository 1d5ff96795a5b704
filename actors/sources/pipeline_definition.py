"""The definition of a pipeline, and the names of its actors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from actors.settings import BarrierSettings, FetchSettings
from actors.sources.placement import PlacementSettings
from actors.sources.source import SourceDefinition
from state.location import Location
from state.upkeep.retention import RetentionSettings

COORDINATOR, DISPATCHER, MERGER = "coordinator", "dispatcher", "merger"
MATERIALIZER = "materializer"
DEFAULT_JOIN_MEMORY_BYTES = 512 << 20
DEFAULT_BACKFILL_WEIGHT = 0.25
_FETCHERS_OF_SHARED_PROCESS = 8
_CAUTION = 8


@dataclass(frozen=True, kw_only=True)
class PipelineDefinition:
    """A declared pipeline, as the coordinator gets it.

    Args:
        views: view → the names of the sources that it may read.
        ansi: True if Spark runs in ANSI mode; the catalog keeps it.
        join_memory_bytes: the rows of joins that the run may keep in memory.
        backfill_weight: the share of the time that backfills take at most while epochs have rows.
    """

    name: str
    root: Location
    sources: tuple[SourceDefinition, ...]
    views: Mapping[str, frozenset[str]]
    ansi: bool
    barrier: BarrierSettings
    fetch: FetchSettings
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    join_memory_bytes: int = DEFAULT_JOIN_MEMORY_BYTES
    backfill_weight: float = DEFAULT_BACKFILL_WEIGHT

    @property
    def shares_process(self) -> bool:
        """True if the dispatcher and the merger live in the process of the coordinator: their messages fit into it."""
        return self.fetch.fetcher_bounds[1] <= _FETCHERS_OF_SHARED_PROCESS

    def cautious(self) -> PipelineDefinition:
        """The definition with an eighth of bytes and files at once, for an attempt after an epoch that killed."""
        return replace(
            self,
            join_memory_bytes=self.join_memory_bytes // _CAUTION,
            barrier=replace(self.barrier, max_epoch_bytes=max(1, self.barrier.max_epoch_bytes // _CAUTION)),
            fetch=replace(
                self.fetch,
                max_bytes_in_flight=max(1, self.fetch.max_bytes_in_flight // _CAUTION),
                max_files_waiting=max(1, self.fetch.max_files_waiting // _CAUTION),
            ),
        )

    def closed_sources(self, decided: Set[str]) -> frozenset[str]:
        """Sources with a schema that must wait for the schema of another source.

        A view over several sources begins with the first row of any of them, and its analysis needs all schemas.

        Args:
            decided: the sources whose schema is decided.
        """
        undecided = {source.name for source in self.sources} - decided
        return frozenset(name for read in self.views.values() if read & undecided for name in read - undecided)


class Topology:
    """The names of all actors of a pipeline.  The edges out of an actor have its name.

    Args:
        fetchers: the names of the fetch actors at the start.

    Attributes:
        lists: list actor → its source.
        names: source → the name actors that keep its names; none if its list actor keeps them.
        fetchers: the fetch actors at the start.
    """

    def __init__(self, definition: PipelineDefinition, fetchers: Sequence[str]) -> None:
        self.lists = {f"list-{source.name}": source.name for source in definition.sources}
        self.names = {source.name: name_actors(source) for source in definition.sources}
        self.fetchers = tuple(fetchers)

    @property
    def actors(self) -> tuple[str, ...]:
        """The actors that a barrier passes, in its order."""
        names = (name for each in self.names.values() for name in each)
        return (*self.lists, *names, DISPATCHER, *self.fetchers, MERGER)

    @property
    def collectors(self) -> tuple[str, ...]:
        """The actors that collect epochs, and the materializer."""
        return (*self.actors, MATERIALIZER)


def name_actors(source: SourceDefinition) -> tuple[str, ...]:
    """Names of the name actors of a source; none if its list actor keeps its names."""
    count = source.discovery.name_actors
    return tuple(f"names-{source.name}-{number}" for number in range(count)) if count > 1 else ()
