"""Makes the actors of one simulated attempt: the shells of production, with simulated collaborators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.protocol.vnode_mapping import VnodeMapping
from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.exchange_shells import DispatcherShell, MergerShell, Sender
from actors.shells.fetch_shell import FetchShell, FetchStart
from actors.shells.list_shell import ListShell, ListStart
from actors.shells.name_shell import NameShell
from actors.shells.runtime import Actor
from actors.sources.pipeline_definition import COORDINATOR
from tests.simulation.hosting.listing import SimulatedEvents, SimulatedPages
from tests.simulation.hosting.reading import SimulatedBlocks, SimulatedFiles
from tests.simulation.hosting.simulated_runtime import SimulatedActor
from tests.simulation.world.handled_record import RecordedDeletions
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.hosting.attempt import SimulatedAttempt

_UPKEEP_S = 0.5


class SimulatedActors:
    """Makes and ends actors.  See `ActorFactory`.

    `by_name` has every actor that was made, those that have ended too.

    Args:
        attempt: the attempt that they are part of.
    """

    def __init__(self, attempt: SimulatedAttempt) -> None:
        self._attempt, self._world = attempt, attempt.world
        self.by_name: dict[str, Life] = {}
        self.coordinator: SimulatedActor[CoordinatorShell] = self._actor(COORDINATOR)
        self.coordinator.shell = CoordinatorShell(
            runtime=self.coordinator.runtime,
            definition=attempt.definition,
            plan=attempt.plan,
            root=self._root(self.coordinator),
            make_actors=lambda: self,
            pinned=lambda: self._world.pins.read(attempt.process.name),
            upkeep_interval_s=_UPKEEP_S,
            patience_s=self._world.patience_s,
        )

    def make_list(self, name: str, edges: Sequence[str], start: ListStart) -> Actor[ListShell]:
        actor: SimulatedActor[ListShell] = self._actor(name)
        source, root = start.source.name, self._root(actor)
        queue = self._world.queues.get(source)
        actor.shell = ListShell(
            name=name,
            edges=edges,
            coordinator=self.coordinator,
            runtime=actor.runtime,
            open_root=lambda: root,
            start=start,
            pages=SimulatedPages(self._world.bucket, source),
            events=None if queue is None else SimulatedEvents(source, queue, self._world, actor.runtime),
            must_settle=self._world.must_settle,
            deletions=None
            if self._world.after is None
            else RecordedDeletions(self._world.handled, root.access, source),
        )
        return actor

    def _deletions(self, source: str, root: SimulatedRoot) -> RecordedDeletions | None:
        world = self._world
        return None if world.after is None else RecordedDeletions(world.handled, root.access, source)

    def make_names(self, name: str, edges: Sequence[str]) -> Actor[NameShell]:
        actor: SimulatedActor[NameShell] = self._actor(name)
        actor.shell = NameShell(name=name, edges=edges, coordinator=self.coordinator, runtime=actor.runtime)
        return actor

    def make_dispatcher(self, name: str, edges: Sequence[str], mapping: VnodeMapping) -> Actor[DispatcherShell]:
        actor: SimulatedActor[DispatcherShell] = self._actor(name)
        actor.shell = DispatcherShell(
            name=name, edges=edges, coordinator=self.coordinator, runtime=actor.runtime, mapping=mapping
        )
        return actor

    def make_fetcher(self, name: str, edges: Sequence[str], start: FetchStart) -> Actor[FetchShell]:
        actor: SimulatedActor[FetchShell] = self._actor(name)
        root, kill = self._root(actor), partial(self._attempt.crash, name)
        actor.shell = FetchShell(
            name=name,
            edges=edges,
            coordinator=self.coordinator,
            runtime=actor.runtime,
            open_root=lambda: root,
            start=start,
            files={
                source.name: SimulatedFiles(source, start.schemas.get(source.name), self._world, kill)
                for source in start.sources
            },
            blocks=SimulatedBlocks(name, root, start.stored),
        )
        return actor

    def make_merger(self, name: str, edges: Sequence[str], senders: Mapping[str, Actor[Sender]]) -> Actor[MergerShell]:
        actor: SimulatedActor[MergerShell] = self._actor(name)
        actor.shell = MergerShell(
            name=name, edges=edges, coordinator=self.coordinator, runtime=actor.runtime, senders=senders
        )
        return actor

    def end(self, actor: Actor[FetchShell]) -> None:
        assert isinstance(actor, SimulatedActor)
        actor.end()

    def _actor(self, name: str) -> SimulatedActor[Any]:
        actor: SimulatedActor[Any] = SimulatedActor(name, self._attempt, self._world)
        self.by_name[name] = actor
        return actor

    def _root(self, life: Life) -> SimulatedRoot:
        return self._world.root(life)
