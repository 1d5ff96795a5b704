"""The actors of one attempt: made together, watched together, ended together.

Handles belong to one attempt, so that nothing of an old one can write into a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import ray

from actors.dispatcher_actor import DispatcherActor
from actors.edge import Outlet
from actors.fetch_actor import FetchActor
from actors.file_progress import FileKey, FileProgress
from actors.list_actor import ListActor
from actors.merger_actor import MergerActor
from actors.messages import Barrier
from actors.pipeline_definition import PipelineDefinition
from actors.seen_index import SeenIndex
from actors.vnode_mapping import VnodeMapping

_COORDINATOR, DISPATCHER, MERGER = "coordinator", "dispatcher", "merger"
MATERIALIZER = "materializer"


class ActorGroup:
    """List, dispatch, fetch and merge actors, connected.

    Args:
        coordinator: handle of the coordinator, which the actors report to.
        definition: the pipeline.
        seen: source → what was handed on before the last commit.
        schemas: source → schema, as far as they are decided.
        unfinished, without_rows: see `FileQueue`; each goes to the owner of its vnode.
    """

    def __init__(
        self,
        *,
        coordinator: Any,
        definition: PipelineDefinition,
        seen: Mapping[str, SeenIndex],
        schemas: Mapping[str, pa.Schema],
        unfinished: Sequence[FileProgress],
        without_rows: Sequence[FileKey],
    ) -> None:
        mapping = VnodeMapping(definition.fetch.num_fetchers)
        self.fetch_names = [f"fetch-{index}" for index in range(definition.fetch.num_fetchers)]
        self.list_names = [f"list-{source.name}" for source in definition.sources]
        self._lists = {
            source.name: _create(
                ListActor,
                name=f"list-{source.name}",
                edges=[_COORDINATOR],
                coordinator=coordinator,
                source=source,
                seen=seen[source.name],
                schema_known=source.name in schemas,
            )
            for source in definition.sources
        }
        self._dispatcher = _create(
            DispatcherActor, name=DISPATCHER, edges=self.list_names, coordinator=coordinator, mapping=mapping
        )
        self._fetchers = [
            _create(
                FetchActor,
                name=name,
                edges=[DISPATCHER],
                coordinator=coordinator,
                settings=definition.fetch,
                sources=definition.sources,
                schemas=schemas,
                unfinished=[each for each in unfinished if mapping.owner_of(each.file.path) == index],
                without_rows=[key for key in without_rows if mapping.owner_of(key[1]) == index],
            )
            for index, name in enumerate(self.fetch_names)
        ]
        self.merger = _create(
            MergerActor,
            name=MERGER,
            edges=self.fetch_names,
            coordinator=coordinator,
            senders=dict(zip(self.fetch_names, self._fetchers, strict=True)),
        )
        self._barrier_edges = {source: Outlet(_COORDINATOR) for source in self._lists}

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody who collects epochs, the materializer excepted."""
        return (*self.list_names, DISPATCHER, *self.fetch_names, MERGER)

    @property
    def handles(self) -> dict[str, Any]:
        """Name → actor."""
        handles = [*self._lists.values(), self._dispatcher, *self._fetchers, self.merger]
        return dict(zip(self.names, handles, strict=True))

    async def connect(self) -> None:
        """Opens all edges, from the end of the flow to its beginning; returns when every actor is up."""
        await asyncio.gather(
            self.merger.connect.remote([]),
            *(fetcher.connect.remote([self.merger]) for fetcher in self._fetchers),
            self._dispatcher.connect.remote(self._fetchers),
            *(lister.connect.remote([self._dispatcher]) for lister in self._lists.values()),
        )

    def inject(self, barrier: Barrier) -> None:
        """Sends a barrier into the flow, at every list actor."""
        for source, lister in self._lists.items():
            lister.receive.options(num_returns=0).remote(self._barrier_edges[source].send(barrier))

    def decide_schema(self, source: str, schema: pa.Schema) -> None:
        """Tells everybody whom it concerns what a source looks like."""
        for fetcher in self._fetchers:
            fetcher.schema.options(num_returns=0).remote(source, schema)
        self._lists[source].schema.options(num_returns=0).remote(True)

    def mark(self, mark: int) -> None:
        """Asks every list actor for word of when it has handed on what is there now."""
        for lister in self._lists.values():
            lister.mark.options(num_returns=0).remote(mark)

    def try_next_file(self, source: str) -> None:
        """The file that was to show a source's schema could not be read: the next one goes ahead."""
        self._lists[source].schema.options(num_returns=0).remote(False)

    def kill(self) -> None:
        """Ends every actor at once."""
        for handle in self.handles.values():
            ray.kill(handle)


def _create(shell: type, **arguments: Any) -> Any:
    return ray.remote(shell).options(num_cpus=0, max_restarts=0, max_concurrency=1000).remote(**arguments)
