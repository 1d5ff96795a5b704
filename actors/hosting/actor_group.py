"""The actors of one attempt: made together, watched together, ended together.

Handles belong to one attempt, so that nothing of an old one can write into a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.exchange.edge import Outlet
from actors.files import FileKey
from actors.hosting.exchange_actors import DispatcherActor, MergerActor
from actors.hosting.fetch_actor import FetchActor
from actors.hosting.list_actor import ListActor
from actors.listing.listing_state import NEVER_LISTED
from actors.protocol.barrier import Barrier
from actors.protocol.vnode_mapping import VnodeMapping
from actors.recovery.recovery import RecoveredState
from actors.sources.discovery import Notifications
from actors.sources.pipeline_definition import COORDINATOR, DISPATCHER, MERGER, PipelineDefinition, Topology
from actors.sources.placement import PlacementSettings

_ONCE = {"max_restarts": 0, "max_concurrency": 1000}


class ActorGroup:
    """List, dispatch, fetch and merge actors, connected.

    Args:
        coordinator: handle of the coordinator, which the actors report to.
        definition: the pipeline.
        mapping: which fetch actors there are at first, and who owns which vnodes.
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
        mapping: VnodeMapping,
        recovered: RecoveredState,
        open_sources: Mapping[str, pa.Schema],
        poisoned: Mapping[FileKey, str],
        spent: Mapping[str, tuple[int, ...]],
        stored: Mapping[str, str],
    ) -> None:
        topology = Topology(definition, mapping.owners)
        control = control_options(definition.placement, near=ray.get_runtime_context().get_node_id())
        self._told_by_events = [
            source.name for source in definition.sources if isinstance(source.discovery, Notifications)
        ]
        self._schemas, self._columns = dict(open_sources), dict[str, Sequence[str]]()
        self._make_fetcher = partial(
            _create,
            FetchActor,
            fetch_options(definition.placement),
            edges=[DISPATCHER],
            coordinator=coordinator,
            root=definition.root,
            settings=definition.fetch,
            sources=definition.sources,
            poisoned=poisoned,
            stored=stored,
        )
        self._lists = {
            source.name: _create(
                ListActor,
                control,
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
                listed=recovered.listed.get(source.name, NEVER_LISTED),
            )
            for name, source in zip(topology.lists, definition.sources, strict=True)
        }
        self._dispatcher = _create(
            DispatcherActor,
            control,
            name=DISPATCHER,
            edges=list(topology.lists),
            coordinator=coordinator,
            mapping=mapping,
        )
        self._fetchers = {
            name: self._make_fetcher(
                name=name,
                num_fetchers=len(mapping.owners),
                schemas=open_sources,
                unfinished=[each for each in recovered.unfinished if mapping.owner_of(*each.path_key) == name],
                without_rows=[key for key in recovered.without_rows if mapping.owner_of(*key[:2]) == name],
                held=[path for path in recovered.held if mapping.owner_of(*path) == name],
            )
            for name in mapping.owners
        }
        self.merger = _create(
            MergerActor,
            control,
            name=MERGER,
            edges=list(topology.fetchers),
            coordinator=coordinator,
            senders=self._fetchers,
        )
        self._list_names = tuple(topology.lists)
        self._barrier_edges = {source: Outlet(COORDINATOR) for source in self._lists}

    @property
    def handles(self) -> dict[str, Any]:
        """Name → actor."""
        lists = dict(zip(self._list_names, self._lists.values(), strict=True))
        return {**lists, DISPATCHER: self._dispatcher, **self._fetchers, MERGER: self.merger}

    async def connect(self) -> None:
        """Opens all edges, from the end of the flow to its beginning; returns when every actor is up."""
        await asyncio.gather(
            self.merger.connect.remote({}),
            *(fetcher.connect.remote({MERGER: self.merger}) for fetcher in self._fetchers.values()),
            self._dispatcher.connect.remote(self._fetchers),
            *(lister.connect.remote({DISPATCHER: self._dispatcher}) for lister in self._lists.values()),
        )

    def make_fetchers(self, mapping: VnodeMapping) -> dict[str, Any]:
        """Makes those that a mapping names and that are not there; `connect_fetchers` waits for them."""
        new = {
            name: self._make_fetcher(
                name=name,
                num_fetchers=len(mapping.owners),
                schemas=self._schemas,
                unfinished=(),
                without_rows=(),
                held=(),
            )
            for name in mapping.owners
            if name not in self._fetchers
        }
        self._fetchers |= new
        for fetcher in new.values():
            fetcher.read_columns.options(num_returns=0).remote(self._columns)
        return new

    async def connect_fetchers(self, new: Mapping[str, Any], before: VnodeMapping, after: VnodeMapping) -> None:
        """Opens the edges of new fetch actors, and those over which vnodes are handed over."""
        peers: dict[str, set[str]] = {}
        for taker in after.owners:
            for giver in before.givers_to(taker, after):
                peers.setdefault(taker, set()).add(giver)
                peers.setdefault(giver, set()).add(taker)
        await asyncio.gather(
            self.merger.add_senders.remote(new),
            *(fetcher.connect.remote({MERGER: self.merger}) for fetcher in new.values()),
            self._dispatcher.connect.remote(new),
            *(
                self._fetchers[name].meet.remote({each: self._fetchers[each] for each in met})
                for name, met in peers.items()
            ),
        )

    def prepare_move(self, number: int, before: VnodeMapping, after: VnodeMapping, *, rest: bool) -> None:
        """Tells the owners of vnodes which of them are about to move."""
        for name in before.owners:
            vnodes = before.moves_from(name, after).keys()
            self._fetchers[name].on_moving.options(num_returns=0).remote(number, frozenset(vnodes), rest)

    def end_fetcher(self, name: str) -> None:
        """Ends a fetch actor that has handed over everything, and whose blocks nobody needs."""
        ray.kill(self._fetchers.pop(name))

    def inject(self, barrier: Barrier) -> None:
        """Sends a barrier into the flow, at every list actor."""
        for source, lister in self._lists.items():
            lister.receive.options(num_returns=0).remote(self._barrier_edges[source].send(barrier))

    def decide_schema(self, source: str, schema: pa.Schema) -> None:
        """Tells everybody whom it concerns what a source looks like."""
        self._schemas[source] = schema
        for fetcher in self._fetchers.values():
            fetcher.schema.options(num_returns=0).remote(source, schema)
        self._lists[source].schema.options(num_returns=0).remote(True)

    def read_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Tells the fetch actors which columns of each source are of use."""
        self._columns |= columns
        for fetcher in self._fetchers.values():
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


def control_options(placement: PlacementSettings, near: str) -> dict[str, Any]:
    """How an actor that computes little is placed: on a node if that has what it asks for, else on another one."""
    return {
        **_ONCE,
        **placement.control.options(),
        "scheduling_strategy": NodeAffinitySchedulingStrategy(near, soft=True),
    }


def fetch_options(placement: PlacementSettings) -> dict[str, Any]:
    """How a fetch actor is placed: each on the node that has the fewest."""
    return {**_ONCE, **placement.fetch.options(), "scheduling_strategy": "SPREAD"}


def _create(shell: type, options: Mapping[str, Any], **arguments: Any) -> Any:
    return ray.remote(shell).options(**options).remote(**arguments)
