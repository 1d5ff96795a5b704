"""The coordinator of one attempt: the same as `actors.hosting.coordinator.Coordinator`, with events in place of Ray."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.coordination.instructions import (
    Commit,
    Connect,
    DecideSchema,
    EndFetchers,
    Inject,
    MarkListings,
    MoveTags,
    PrepareMove,
    TellCommitted,
    TellLeftOut,
    TryNextFile,
)
from actors.coordination.ledger_corrections import corrected_delta
from actors.exchange.edge import Outlet
from actors.protocol.barrier import Mutation
from actors.protocol.instructions import End, Instruction, ProposeSchema, WakeAt
from actors.protocol.reports import CollectReport, Progress
from actors.recovery.recovery import RecoveredState, recover
from actors.sources.pipeline_definition import COORDINATOR
from slackwater.testing.simulation.hosting.host import Host
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from state.epoch import next_epoch
from state.errors import NotFoundError, ProtocolError, StorageError
from state.tables.records import EpochRecord, ViewVersion
from state.upkeep.housekeeping import Housekeeping, StagedUpkeep

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.attempt import SimulatedAttempt

_RETRY_TAG_S = 0.1
_UPKEEP_S = 0.5


class CoordinatorHost(Host):
    """Hosts a `CoordinateExecutor`, commits what it says, and hears of the actors' ends.

    Args:
        attempt: that it is part of.
    """

    def __init__(self, attempt: SimulatedAttempt) -> None:
        super().__init__(attempt, COORDINATOR, ())
        self._root = SimulatedRoot(self._world.disk, self._world.clock, self._world.access(self))
        self._edges: dict[str, Outlet] = {}
        self._untagged: dict[str, ViewVersion] = {}
        self._tagging = False
        self._changes: deque[Callable[[], None]] = deque()
        self._changing = self._keeping_house = False
        self.executor: CoordinateExecutor | None = None
        self.failure: Exception | None = None

    def recover(self) -> RecoveredState:
        """Takes the root over.  Errors as `actors.recovery.recovery.recover`."""
        recovered = recover(self._attempt.definition, self._attempt.plan, self._root)
        self._store = recovered.store
        retention = self._attempt.definition.retention
        self._housekeeping = Housekeeping(self._root, self._world.clock, retention, interval_s=_UPKEEP_S)
        return recovered

    def open(self, recovered: RecoveredState) -> None:
        """Knows from here on what to decide."""
        self.executor = CoordinateExecutor(
            definition=self._attempt.definition,
            plan=self._attempt.plan,
            recovered=recovered,
            next_epoch=partial(next_epoch, self._world.clock),
            now_s=self.now_s,
            patience_s=self._world.patience_s,
        )

    def start(self) -> None:
        """Lets the flow begin."""
        self._edges = {source: Outlet(COORDINATOR) for source in self._attempt.lists}
        self.do(self._running.start(self.now_s))

    @property
    def is_stopped(self) -> bool:
        """Whether the attempt is over and every tag is moved."""
        return self._running.state.phase == "stopped" and not self._untagged and not self._tagging

    # -- what the actors, the materializer and the user say -------------------------------------------------------

    def on_progress(self, progress: Progress, number: int) -> None:
        self.do(self._running.on_progress(progress, number, self.now_s))

    def collect(self, report: CollectReport) -> None:
        self.do(self._running.on_collect(report, self.now_s))

    def propose_schema(self, proposal: ProposeSchema) -> None:
        self.do(self._running.on_schema_proposed(proposal, self.now_s))

    def propose_columns(self, source: str, columns: pa.Schema) -> None:
        self.do(self._running.on_columns_proposed(source, columns, self.now_s))

    def views_declared(self, sources: frozenset[str], new_views: bool, backfilling: bool) -> None:
        self.do(self._running.on_views_declared(sources, new_views, self.now_s, backfilling=backfilling))

    def request(self, mutation: Mutation) -> None:
        self.do(self._running.on_request(mutation, self.now_s))

    def rescale(self, num_fetchers: int) -> None:
        self.do(self._running.on_rescale(num_fetchers, num_fetchers, self.now_s))

    def mark(self) -> int:
        """Makes a mark, see `CaughtUp`."""
        self.do(self._running.on_mark())
        return self._running.mark

    def fail(self, error: Exception) -> None:
        """Something of the attempt has failed, and with it all of it."""
        if self.failure is None and self.alive and (self.executor is None or self._running.state.phase != "stopped"):
            self.failure = error
            self._attempt.watch_soon()

    # -- what the executor asks for --------------------------------------------------------------------------------

    def do(self, instructions: Iterable[Instruction]) -> None:
        if self.failure is not None:
            return
        for instruction in instructions:
            if not self.alive:
                return
            self.perform(instruction)
        self._attempt.watch_soon()

    def perform(self, instruction: Instruction) -> None:
        attempt = self._attempt
        if isinstance(instruction, Inject):
            for source, host in attempt.lists.items():
                host.tell(host.receive, self._edges[source].send(instruction.barrier))
        elif isinstance(instruction, WakeAt):
            self._wake_at(instruction.monotonic_s)
        elif isinstance(instruction, Commit):
            self._change(partial(self._commit, instruction))
        elif isinstance(instruction, MoveTags):
            self._untagged |= instruction.views
            self._tag_soon()
        elif isinstance(instruction, DecideSchema):
            for fetcher in attempt.fetchers.values():
                fetcher.tell(fetcher.schema, instruction.source, instruction.schema)
            self._tell_list(instruction.source, found=True)
        elif isinstance(instruction, TryNextFile):
            self._tell_list(instruction.source, found=False)
        elif isinstance(instruction, MarkListings):
            for host in attempt.lists.values():
                host.tell(host.mark, instruction.mark)
        elif isinstance(instruction, TellCommitted):
            for host in attempt.lists.values():
                host.tell(host.committed, instruction.epoch)
        elif isinstance(instruction, Connect):
            self.soon(self._connect, instruction)
        elif isinstance(instruction, PrepareMove):
            for name in instruction.before.owners:
                vnodes = instruction.before.moves_from(name, instruction.after).keys()
                fetcher = attempt.fetchers[name]
                fetcher.tell(fetcher.on_moving, instruction.number, vnodes, instruction.rest)
        elif isinstance(instruction, EndFetchers):
            for name in instruction.names:
                attempt.fetchers[name].end_when_over()
        elif not isinstance(instruction, (End, TellLeftOut)):
            raise ProtocolError(f"the coordinator cannot perform {type(instruction).__name__}")

    def on_time(self) -> Sequence[Instruction]:
        return self._running.on_time(self.now_s)

    def _tell_list(self, source: str, *, found: bool) -> None:
        host = self._attempt.lists[source]
        host.tell(host.schema, found)

    def _connect(self, connect: Connect) -> None:
        self._attempt.add_fetchers(connect.before, connect.after)
        self.soon(self._connected)

    def _connected(self) -> None:
        self.do(self._running.on_connected(self.now_s))

    def _commit(self, commit: Commit) -> None:
        record = self._store.commit(
            epoch=commit.epoch,
            delta=corrected_delta(self._store, commit),
            views=commit.views,
            counts=commit.counts,
            seconds=commit.seconds,
            trace=commit.trace,
        )
        self.soon(self._committed, record)

    def _committed(self, record: EpochRecord) -> None:
        if self.failure is None:
            self._world.promises.on_acknowledged(record)
            self.do(self._running.on_committed(record, self.now_s))
            if self._world.keeps_house and not self._keeping_house and self._housekeeping.due(self._store):
                self._keeping_house = True
                self.soon(self._keep_house)

    # -- as `actors.hosting.owned_store.OwnedStore`: one change at a time, upkeep between two ----------------------

    def _change(self, action: Callable[[], None]) -> None:
        self._changes.append(action)
        self._next_change()

    def _next_change(self) -> None:
        if not self._changing and self._changes:
            self._changing = True
            self.soon(self._make_change)

    def _make_change(self) -> None:
        try:
            self._changes.popleft()()
        finally:
            self._changing = False
            self._next_change()

    def _keep_house(self) -> None:
        try:
            staged = self._housekeeping.stage(self._store)
        except StorageError:
            staged = None
        if staged is None:
            self._keeping_house = False
        else:
            self._change(partial(self._show_upkeep, staged))

    def _show_upkeep(self, staged: StagedUpkeep) -> None:
        self._housekeeping.commit(self._store, staged)
        self._keeping_house = False
        if staged.expired:
            self.soon(self._vacuum)

    def _vacuum(self) -> None:
        try:
            self._housekeeping.vacuum()
        except StorageError:
            pass

    def _tag_soon(self) -> None:
        if not self._tagging and self._untagged:
            self._tagging = True
            self.soon(self._tag)

    def _tag(self) -> None:
        """One view after the other; only the latest version needs a tag, and no run fails for it."""
        name = next(iter(self._untagged))
        view = self._untagged.pop(name)
        try:
            self._root.tag_committed(view)
        except NotFoundError:
            # A later epoch has another version, or dropped the view.
            pass
        except StorageError:
            self._untagged.setdefault(name, view)
            self._world.schedule.at(self.now_s + _RETRY_TAG_S, self, self.act, self._tag)
            return
        self._tagging = False
        self._tag_soon()
        self._attempt.watch_soon()

    @property
    def _running(self) -> CoordinateExecutor:
        assert self.executor is not None, "nobody speaks to a coordinator that has not recovered"
        return self.executor
