"""Who takes part in an attempt, by name."""

from __future__ import annotations

from actors.pipeline_definition import PipelineDefinition

COORDINATOR, DISPATCHER, MERGER = "coordinator", "dispatcher", "merger"
MATERIALIZER = "materializer"


class Topology:
    """The names of all actors of a pipeline; an actor's edges out are named after it.

    Args:
        definition: the pipeline.
    """

    def __init__(self, definition: PipelineDefinition) -> None:
        self.lists = {f"list-{source.name}": source.name for source in definition.sources}
        self.fetchers = tuple(f"fetch-{index}" for index in range(definition.fetch.num_fetchers))

    @property
    def actors(self) -> tuple[str, ...]:
        """Everybody whom a barrier passes, in its order."""
        return (*self.lists, DISPATCHER, *self.fetchers, MERGER)

    @property
    def collectors(self) -> tuple[str, ...]:
        """Everybody who collects epochs."""
        return (*self.actors, MATERIALIZER)
