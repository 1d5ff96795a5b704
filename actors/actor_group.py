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
from actors.list_actor import ListActor
from actors.merger_actor import MergerActor
from actors.messages import Barrier, PathKey
from actors.pipeline_definition import PipelineDefinition
from actors.recovery import RecoveredState
from actors.source import Notifications
from actors.topology import COORDINATOR, DISPATCHER, MERGER, Topology
from actors.vnode_mapping import VnodeMapping


class ActorGroup:
    """List, dispatch, fetch and merge actors, connected.

    Args:
        coordinator: handle of the coordinator, which the actors report to.
        definition: the pipeline.
        recovered: where the attempt begins; every actor gets its share of it.
        open_sources: source → schema, of those that may be read.
        poisoned: see `FetchExecutor`.
        spent: source → LIST requests of the last hour, see `RequestBudget`.
        stored: see `FetchActor`.
    """

    def __init__(
        self,
        *,
        coordinator: Any,
        definition: PipelineDefinition,
        recovered: RecoveredState,
        open_sources: Mapping[str, pa.Schema],
        poisoned: Mapping[PathKey, str],
        spent: Mapping[str, tuple[int, ...]],
        stored: Mapping[str, str],
    ) -> None:
        topology = Topology(definition)
        mapping = VnodeMapping(definition.fetch.num_fetchers)
        self._names = topology.actors
        self._told_by_events = [
            source.name for source in definition.sources if isinstance(source.discovery, Notifications)
        ]
        self._lists = {
            source.name: _create(
                ListActor,
                name=name,
                edges=[COORDINATOR],
                coordinator=coordinator,
                root=definition.root,
                source=source,
                seen=recovered.seen[source.name],
                schema_known=source.name in open_sources,
                sampled=recovered.num_waiting(source.name, poisoned),
                spent=spent.get(source.name, ()),
                not_before=recovered.catalog.not_before[source.name],
                listed=recovered.listed.get(source.name),
            )
            for name, source in zip(topology.lists, definition.sources, strict=True)
        }
        self._dispatcher = _create(
            DispatcherActor, name=DISPATCHER, edges=list(topology.lists), coordinator=coordinator, mapping=mapping
        )
        self._fetchers = [
            _create(
                FetchActor,
                name=name,
                edges=[DISPATCHER],
                coordinator=coordinator,
                root=definition.root,
                settings=definition.fetch,
                sources=definition.sources,
                schemas=open_sources,
                unfinished=[each for each in recovered.unfinished if mapping.owner_of(each.file.path) == index],
                without_rows=[key for key in recovered.without_rows if mapping.owner_of(key[1]) == index],
                held=[path for path in recovered.held if mapping.owner_of(path[1]) == index],
                poisoned=poisoned,
                stored=stored,
            )
            for index, name in enumerate(topology.fetchers)
        ]
        self.merger = _create(
            MergerActor,
            name=MERGER,
            edges=list(topology.fetchers),
            coordinator=coordinator,
            senders=dict(zip(topology.fetchers, self._fetchers, strict=True)),
        )
        self._barrier_edges = {source: Outlet(COORDINATOR) for source in self._lists}

    @property
    def handles(self) -> dict[str, Any]:
        """Name → actor."""
        handles = [*self._lists.values(), self._dispatcher, *self._fetchers, self.merger]
        return dict(zip(self._names, handles, strict=True))

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

    def read_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Tells the fetch actors which columns of each source are of use."""
        for fetcher in self._fetchers:
            fetcher.read_columns.options(num_returns=0).remote(columns)

    def mark(self, mark: int) -> None:
        """Asks every list actor for word of when it has handed on what is there now."""
        for lister in self._lists.values():
            lister.mark.options(num_returns=0).remote(mark)

    def committed(self, epoch: int) -> None:
        """Tells the list actors whose files are told by events that an epoch is committed."""
        for source in self._told_by_events:
            self._lists[source].committed.options(num_returns=0).remote(epoch)

    def try_next_file(self, source: str) -> None:
        """None of the files that were to show a source's schema could be read: the next ones go ahead."""
        self._lists[source].schema.options(num_returns=0).remote(False)

    def kill(self) -> None:
        """Ends every actor at once."""
        for handle in self.handles.values():
            ray.kill(handle)


def _create(shell: type, **arguments: Any) -> Any:
    return ray.remote(shell).options(num_cpus=0, max_restarts=0, max_concurrency=1000).remote(**arguments)
