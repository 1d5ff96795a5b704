"""Who takes part in an attempt, by name."""

from __future__ import annotations

from collections.abc import Sequence

from actors.sources.pipeline_definition import PipelineDefinition

COORDINATOR, DISPATCHER, MERGER = "coordinator", "dispatcher", "merger"
MATERIALIZER = "materializer"


class Topology:
    """The names of all actors of a pipeline; an actor's edges out are named after it.

    Args:
        definition: the pipeline.
        fetchers: the fetch actors at the start.
    """

    def __init__(self, definition: PipelineDefinition, fetchers: Sequence[str]) -> None:
        self.lists = {f"list-{source.name}": source.name for source in definition.sources}
        self.fetchers = tuple(fetchers)

    @property
    def actors(self) -> tuple[str, ...]:
        """Everybody whom a barrier passes, in its order."""
        return (*self.lists, DISPATCHER, *self.fetchers, MERGER)

    @property
    def collectors(self) -> tuple[str, ...]:
        """Everybody who collects epochs."""
        return (*self.actors, MATERIALIZER)
