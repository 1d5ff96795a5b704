"""One attempt of a run: its actors, connected, as `actor_group` and `slackwater.running.attempt` do it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from actors.listing.listing_state import NEVER_LISTED
from actors.protocol.run_state import RunState
from actors.protocol.vnode_mapping import VnodeMapping
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import RecoveredState
from actors.sources.pipeline_definition import COORDINATOR, DISPATCHER, MERGER, PipelineDefinition, Topology
from slackwater.testing.simulation.hosting.coordinator import CoordinatorHost
from slackwater.testing.simulation.hosting.host import Host
from slackwater.testing.simulation.hosting.hosts import DispatchHost, FetchHost, ListHost, MergeHost
from slackwater.testing.simulation.hosting.materializer import SimulatedMaterializer
from slackwater.testing.simulation.world.schedule import Life
from state.errors import RunFailedError

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.process import SimulatedProcess


class SimulatedAttempt(Life):
    """From a recovery to a stop or a failure.

    Args:
        process: that it is part of.
        plan: what the attempts before this one left.
    """

    process: SimulatedProcess

    def __init__(self, process: SimulatedProcess, plan: AttemptPlan) -> None:
        super().__init__(f"{process.name}/{plan.number}", process)
        self.plan, self.world = plan, process.world
        views = {view.name: view.sources for view in process.views}
        definition = replace(self.world.definition, views=views)
        self.definition: PipelineDefinition = definition if plan.files_at_once is None else definition.cautious()
        self.coordinator = CoordinatorHost(self)
        self.lists: dict[str, ListHost] = {}
        self.fetchers: dict[str, FetchHost] = {}
        self._hosts: dict[str, Host] = {COORDINATOR: self.coordinator}
        self._watching = False
        self.is_running = False
        self.state = RunState(
            version=0, phase="starting", term=0, epoch=plan.so_far.epoch, epochs=plan.so_far.epochs,
            totals=plan.so_far.counts,
        )  # fmt: skip

    def start(self) -> None:
        """Takes the root over, recovers, makes the actors, and lets the flow begin."""
        recovered = self.coordinator.recover()
        self.coordinator.open(recovered)
        self._make_actors(recovered)
        self.coordinator.start()
        self.state = self._latest_state()
        self.materializer = SimulatedMaterializer(self, recovered)
        self._hosts[self.materializer.name] = self.materializer
        self.is_running = True
        self.materializer.look_soon()
        self.process.on_started(self)

    @property
    def schemas(self) -> frozenset[str]:
        """The sources whose schema is decided, as far as the process has heard."""
        return frozenset(self.state.schemas)

    def crash(self, name: str) -> None:
        """An actor dies, with all that it knows."""
        host = self._hosts.get(name)
        if host is None or not host.alive:
            return
        host.end()
        if name == COORDINATOR:
            self.on_failure(RunFailedError("the coordinator died: killed"))
        elif self.is_running and host is self.materializer:
            self.on_failure(RunFailedError("the Spark session has died"))
        elif not host.over:
            self.coordinator.tell(self.coordinator.fail, RunFailedError(f"the actor {name} died: killed"))
        if name == MERGER and self.is_running:
            self.materializer.look_soon()

    def watch_soon(self) -> None:
        """The process hears at some moment how far the attempt is, if it is further."""
        if not self._watching and (self.coordinator.failure is not None or self._is_news()):
            self._watching = True
            self.world.schedule.soon(self, self._watch)

    def on_failure(self, error: Exception) -> None:
        """The process hears at some moment that the attempt has failed."""
        self.world.schedule.soon(self, self.process.on_failure, self, error)

    def _watch(self) -> None:
        self._watching = False
        if not self.is_running or not self.coordinator.alive:
            return
        before, self.state = self.state, self._latest_state()
        if self.state.schemas.keys() != before.schemas.keys() or self.state.epoch != before.epoch:
            self.materializer.look_soon()
        if self.coordinator.failure is not None:
            self.process.on_failure(self, self.coordinator.failure)
        else:
            self.process.on_state(self)

    def _is_news(self) -> bool:
        """Whether anything has changed that makes a difference to the process."""
        if not self.is_running:
            return True
        latest, last = self._latest_state(), self.state
        return (
            latest.epoch != last.epoch
            or latest.reached_mark != last.reached_mark
            or latest.phase != last.phase
            or latest.phase == "stopped"
            or len(latest.schemas) != len(last.schemas)
            or latest.files_in_flight != last.files_in_flight
            or latest.suspects != last.suspects
            or latest.num_fetchers != last.num_fetchers
        )

    def _latest_state(self) -> RunState:
        assert self.coordinator.executor is not None
        return self.coordinator.executor.state

    def _make_actors(self, recovered: RecoveredState) -> None:
        assert self.coordinator.executor is not None
        mapping = self.coordinator.executor.mapping
        topology = Topology(self.definition, mapping.owners)
        open_sources = self.coordinator.executor.open_schemas
        self.lists = {
            source.name: ListHost(
                self,
                name,
                [COORDINATOR],
                source=source,
                seen=recovered.seen[source.name],
                schema_known=source.name in open_sources,
                sampled=recovered.num_waiting(source.name, self.plan.poisoned),
                must_settle=self.world.must_settle,
                not_before=recovered.catalog.not_before[source.name],
                spent=self.plan.spent.get(source.name, ()),
                listed=recovered.listed.get(source.name, NEVER_LISTED),
                queue=self.world.queues.get(source.name),
            )
            for name, source in zip(topology.lists, self.definition.sources, strict=True)
        }
        dispatcher = DispatchHost(self, DISPATCHER, list(topology.lists), mapping=mapping)
        self._dispatcher = dispatcher
        self.fetchers = {
            name: FetchHost(
                self,
                name,
                [DISPATCHER],
                num_fetchers=len(mapping.owners),
                schemas=open_sources,
                unfinished=[each for each in recovered.unfinished if mapping.owner_of(*each.path_key) == name],
                without_rows=[key for key in recovered.without_rows if mapping.owner_of(*key[:2]) == name],
                held=[path for path in recovered.held if mapping.owner_of(*path) == name],
                poisoned=self.plan.poisoned,
                stored=self.coordinator.executor.stored_paths,
            )
            for name in mapping.owners
        }
        self.merger = MergeHost(self, MERGER, list(topology.fetchers), senders=self.fetchers)
        for fetcher in self.fetchers.values():
            fetcher.connect([self.merger])
        dispatcher.connect(self.fetchers.values())
        for host in self.lists.values():
            host.connect([dispatcher])
        for each in (*self.lists.values(), dispatcher, *self.fetchers.values(), self.merger):
            self._hosts[each.name] = each

    def add_fetchers(self, before: VnodeMapping, after: VnodeMapping) -> None:
        """Makes the fetch actors that vnodes will move to, and opens all edges that this needs."""
        assert self.coordinator.executor is not None
        for name in after.owners:
            if name not in self.fetchers:
                new = self._hosts[name] = self.fetchers[name] = FetchHost(
                    self,
                    name,
                    [DISPATCHER],
                    num_fetchers=len(after.owners),
                    schemas=self.coordinator.executor.open_schemas,
                    poisoned=self.plan.poisoned,
                    stored=self.coordinator.executor.stored_paths,
                )
                new.connect([self.merger])
                self.merger.add_sender(new)
                self._dispatcher.connect([new])
            for giver in sorted(before.givers_to(name, after)):
                self.fetchers[name].meet(self.fetchers[giver])
                self.fetchers[giver].meet(self.fetchers[name])
