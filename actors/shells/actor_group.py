"""The actors of one attempt: made together, connected, and notified of the coordinator's decisions.

References belong to one attempt, so that nothing of an old attempt can write into a new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.version_set import VersionSet
from actors.files import FileKey
from actors.listing.listing_state import NEVER_LISTED
from actors.names.name_mapping import NameMapping
from actors.names.seen_piece import SeenPiece
from actors.protocol.barrier import Barrier
from actors.protocol.vnode_mapping import VnodeMapping
from actors.recovery.recovery import RecoveredState
from actors.recovery.seen_names import SeenNames
from actors.shells.actor_shell import Receiver
from actors.shells.exchange_shells import DispatcherShell, MergerShell, Sender
from actors.shells.fetch_shell import FetchShell, FetchStart
from actors.shells.list_shell import ListShell, ListStart
from actors.shells.name_shell import NameShell
from actors.shells.runtime import Actor, Runtime
from actors.sources.discovery import Notifications
from actors.sources.pipeline_definition import COORDINATOR, DISPATCHER, MERGER, PipelineDefinition, Topology
from actors.sources.source import orders


class ActorFactory(Protocol):
    """Makes and ends the actors of one attempt, which all report to one coordinator."""

    def make_list(self, name: str, edges: Sequence[str], start: ListStart) -> Actor[ListShell]: ...

    def make_names(self, name: str, edges: Sequence[str]) -> Actor[NameShell]: ...

    def make_dispatcher(self, name: str, edges: Sequence[str], mapping: VnodeMapping) -> Actor[DispatcherShell]: ...

    def make_fetcher(self, name: str, edges: Sequence[str], start: FetchStart) -> Actor[FetchShell]: ...

    def make_merger(
        self, name: str, edges: Sequence[str], senders: Mapping[str, Actor[Sender]]
    ) -> Actor[MergerShell]: ...

    def end(self, actor: Actor[FetchShell]) -> None: ...


class ActorGroup:
    """List, name, dispatch, fetch and merge actors, connected.

    Args:
        runtime: the world around the coordinator, which calls them.
        actors: makes them.
        mapping: the fetch actors at first, and their vnodes.
        recovered: the state where the attempt begins; every actor gets its share of it.
        open_sources: source → schema, of the sources that may be read.
        poisoned: see `FetchExecutor`.
        spent: source → LIST requests of the last hour, see `RequestBudget`.
        stored: see `FetchStart`.
    """

    def __init__(
        self,
        *,
        runtime: Runtime,
        actors: ActorFactory,
        definition: PipelineDefinition,
        mapping: VnodeMapping,
        recovered: RecoveredState,
        open_sources: Mapping[str, pa.Schema],
        poisoned: Mapping[FileKey, str],
        spent: Mapping[str, tuple[int, ...]],
        stored: Mapping[str, str],
    ) -> None:
        self._runtime, self._actors, self._definition = runtime, actors, definition
        self._poisoned, self._stored = poisoned, stored
        self._schemas, self._columns = dict(open_sources), dict[str, Sequence[str]]()
        self._notified_of_commits = [
            source.name
            for source in definition.sources
            if isinstance(source.discovery, Notifications) or source.table == "frame"
        ]
        topology = Topology(definition, mapping.owners)
        self._lists = {
            source.name: actors.make_list(
                name,
                [COORDINATOR],
                ListStart(
                    source=source,
                    schema_known=source.name in open_sources,
                    sampled=recovered.num_waiting(source.name, poisoned),
                    spent=spent.get(source.name, ()),
                    not_before=recovered.catalog.not_before[source.name],
                    listed=recovered.listed.get(source.name, NEVER_LISTED),
                    name_actors=topology.names[source.name],
                ),
            )
            for name, source in zip(topology.lists, definition.sources, strict=True)
        }
        self._names = {
            source: {name: actors.make_names(name, [lister]) for name in topology.names[source]}
            for lister, source in topology.lists.items()
        }
        self._dispatcher = actors.make_dispatcher(DISPATCHER, list(topology.lists), mapping)
        self._fetchers = {name: self._make_fetcher(name, mapping, recovered) for name in mapping.owners}
        self.merger = actors.make_merger(MERGER, list(topology.fetchers), self._fetchers)
        self._list_names = tuple(topology.lists)
        self._barrier_edges = {source: Outlet(COORDINATOR) for source in self._lists}

    @property
    def actors(self) -> dict[str, Actor[Any]]:
        """Name → actor."""
        lists = dict(zip(self._list_names, self._lists.values(), strict=True))
        names = {name: actor for each in self._names.values() for name, actor in each.items()}
        return {**lists, **names, DISPATCHER: self._dispatcher, **self._fetchers, MERGER: self.merger}

    async def connect(self, seen: SeenNames) -> None:
        """Opens all edges, from the end of the flow to its beginning; returns when every actor is up.

        Args:
            seen: the names that were handed on, which the list actors, or the name actors, get before.
        """
        await self._hand_names(seen)
        # Every call is made before the first answer is awaited: the actors start at the same time.
        call = self._runtime.call
        calls = [
            call(self.merger, MergerShell.connect, {}),
            *(call(fetcher, FetchShell.connect, {MERGER: self.merger}) for fetcher in self._fetchers.values()),
            call(self._dispatcher, DispatcherShell.connect, self._fetchers),
            *(
                call(actor, NameShell.connect, {lister: self._lists[source]})
                for lister, source in zip(self._list_names, self._lists, strict=True)
                for actor in self._names[source].values()
            ),
            *(call(self._lists[source], ListShell.meet, names) for source, names in self._names.items() if names),
            *(call(lister, ListShell.connect, {DISPATCHER: self._dispatcher}) for lister in self._lists.values()),
        ]
        for each in calls:
            await each

    def make_fetchers(self, mapping: VnodeMapping) -> dict[str, Actor[FetchShell]]:
        """Makes the fetch actors of a mapping that do not exist yet; `connect_fetchers` waits for them."""
        new = {name: self._make_fetcher(name, mapping) for name in mapping.owners if name not in self._fetchers}
        self._fetchers |= new
        for fetcher in new.values():
            self._runtime.notify(fetcher, FetchShell.read_columns, self._columns)
        return new

    async def connect_fetchers(
        self, new: Mapping[str, Actor[FetchShell]], before: VnodeMapping, after: VnodeMapping
    ) -> None:
        """Opens the edges of new fetch actors, and the edges over which vnodes are handed over."""
        call = self._runtime.call
        peers: dict[str, set[str]] = {}
        for taker in after.owners:
            for giver in before.givers_to(taker, after):
                peers.setdefault(taker, set()).add(giver)
                peers.setdefault(giver, set()).add(taker)
        calls = [
            call(self.merger, MergerShell.add_senders, new),
            *(call(fetcher, FetchShell.connect, {MERGER: self.merger}) for fetcher in new.values()),
            call(self._dispatcher, DispatcherShell.connect, new),
            *(
                call(self._fetchers[name], FetchShell.meet, {each: self._fetchers[each] for each in sorted(met)})
                for name, met in peers.items()
            ),
        ]
        for each in calls:
            await each

    def prepare_move(self, number: int, before: VnodeMapping, after: VnodeMapping, *, rest: bool) -> None:
        """Notifies the owners of vnodes that are about to move."""
        for name in before.owners:
            vnodes = before.moves_from(name, after).keys()
            self._runtime.notify(self._fetchers[name], FetchShell.on_moving, number, frozenset(vnodes), rest)

    def end_fetcher(self, name: str) -> None:
        """Ends a fetch actor that has handed over everything, and whose blocks have been read."""
        self._actors.end(self._fetchers.pop(name))

    def inject(self, barrier: Barrier) -> None:
        """Sends a barrier into the flow, at every list actor."""
        for source, lister in self._lists.items():
            self._runtime.notify(lister, Receiver.receive, self._barrier_edges[source].send(barrier))

    def decide_schema(self, source: str, schema: pa.Schema) -> None:
        """Sends a source's schema to its list actor and to the fetch actors."""
        self._schemas[source] = schema
        for fetcher in self._fetchers.values():
            self._runtime.notify(fetcher, FetchShell.schema, source, schema)
        self._runtime.notify(self._lists[source], ListShell.schema, True)

    def read_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Sends the used columns of each source to the fetch actors."""
        self._columns |= columns
        for fetcher in self._fetchers.values():
            self._runtime.notify(fetcher, FetchShell.read_columns, columns)

    def mark(self, mark: int, *, at_once: bool) -> None:
        """Requests a report of every list actor when it has handed on all files that exist now.

        Args:
            at_once: see `MarkListings`.
        """
        for lister in self._lists.values():
            self._runtime.notify(lister, ListShell.mark, mark, at_once)

    def committed(self, epoch: int) -> None:
        """Notifies the list actors to which it matters that an epoch is committed."""
        for source in self._notified_of_commits:
            self._runtime.notify(self._lists[source], ListShell.committed, epoch)

    def try_next_file(self, source: str) -> None:
        """Sends the next files of a source ahead, since no file of the sample has shown a schema."""
        self._runtime.notify(self._lists[source], ListShell.schema, False)

    async def _hand_names(self, seen: SeenNames) -> None:
        """Gives each actor the names that it keeps: a piece is read while the one before is taken."""
        pieces, taken = seen.pieces(), list[Awaitable[None]]()
        while (piece := await self._runtime.in_thread(partial(next, pieces, None))) is not None:
            for each in taken:
                await each
            taken = self._hand_piece(piece)
        for each in taken:
            await each

    def _hand_piece(self, piece: SeenPiece) -> list[Awaitable[None]]:
        """Gives a piece to the list actor of its source, or to the name actors that own its vnodes."""
        call, names = self._runtime.call, self._names[piece.source]
        if not names:
            return [call(self._lists[piece.source], ListShell.take_seen, piece)]
        parts = NameMapping([*names]).split(piece)
        return [call(names[owner], NameShell.take_seen, part) for owner, part in parts.items()]

    def _make_fetcher(
        self, name: str, mapping: VnodeMapping, recovered: RecoveredState | None = None
    ) -> Actor[FetchShell]:
        start = FetchStart(
            settings=self._definition.fetch,
            num_fetchers=len(mapping.owners),
            sources=self._definition.sources,
            schemas=dict(self._schemas),
            poisoned=self._poisoned,
            stored=self._stored,
            without_rows=VersionSet(orders(self._definition.sources)),
        )
        if recovered is not None:
            start = replace(
                start,
                unfinished=[each for each in recovered.unfinished if mapping.owner_of(*each.path_key) == name],
                without_rows=recovered.without_rows.of(mapping.vnodes_of(name)),
                held=[path for path in recovered.held if mapping.owner_of(*path) == name],
            )
        return self._actors.make_fetcher(name, [DISPATCHER], start)
