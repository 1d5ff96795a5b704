"""The coordinator of one attempt: makes epochs, injects barriers, collects reports, and commits epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from actors.coordination.admission import Admission
from actors.coordination.autoscaler import Autoscaler
from actors.coordination.barrier_scheduler import BarrierScheduler
from actors.coordination.caught_up import CaughtUp, DeclaredViews
from actors.coordination.epoch_collector import CollectedEpoch, EpochCollector
from actors.coordination.epoch_commits import EpochCommits
from actors.coordination.epoch_deadline import EpochDeadline
from actors.coordination.instructions import (
    CoordinateInstruction,
    DecideSchema,
    Inject,
    MarkListings,
    MoveTags,
    ReportCommitted,
    ReportScaling,
)
from actors.coordination.published_state import PublishedState, added
from actors.coordination.requests import Requests
from actors.coordination.rescaling import PATIENCE_S, Rescaling
from actors.coordination.schema_decisions import SchemaDecisions
from actors.coordination.watermarks import Watermarks
from actors.files import FileKey
from actors.protocol.barrier import Barrier, Mutation, Pause, Resume, Stop, Update
from actors.protocol.instructions import End, Fail, ProposeSchema, WakeAt
from actors.protocol.reports import CollectReport, Progress
from actors.protocol.run_state import RunPhase, RunState
from actors.protocol.vnode_mapping import VnodeMapping
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import RecoveredState
from actors.sources.pipeline_definition import MATERIALIZER, MERGER, PipelineDefinition, Topology
from actors.sources.source import event_times, orders
from actors.sources.source_schema import SchemaSample
from state.epoch import epoch_time_us
from state.tables.records import EpochRecord
from state.tables.stored_rows import stored_rows_name, stored_rows_path


class CoordinateExecutor:
    """The coordinator of one attempt: reports in, barriers and commits out.

    Args:
        plan: the beginning of the attempt, after those before it.
        recovered: the committed state that the attempt begins with.
        next_epoch: makes an epoch that is greater than the given one, and that no other term makes.
        now_s: time of the monotonic clock.
        patience_s: see `Rescaling`.
    """

    def __init__(
        self,
        *,
        definition: PipelineDefinition,
        plan: AttemptPlan,
        recovered: RecoveredState,
        next_epoch: Callable[[int], int],
        now_s: float,
        patience_s: float = PATIENCE_S,
    ) -> None:
        num_fetchers, fewest, most = plan.fetchers(definition.fetch)
        self._rescaling = Rescaling(num_fetchers, patience_s, orders(definition.sources))
        self._autoscaler = Autoscaler(fewest, most)
        topology = Topology(definition, self._rescaling.mapping.owners)
        head = recovered.head
        self._definition, self._next_epoch = definition, next_epoch
        self._first_epoch = next_epoch(head.epoch)
        is_hasty = plan.files_at_once is not None
        poisoned = recovered.poisoned(plan.poisoned)
        samples = {
            source.name: SchemaSample(source, recovered.num_waiting(source.name, poisoned), is_hasty=is_hasty)
            for source in definition.sources
        }
        self._schemas = SchemaDecisions(definition, recovered.catalog, samples)
        self._scheduler = BarrierScheduler(
            settings=definition.barrier,
            max_files_waiting=definition.fetch.max_files_waiting,
            committed=head.epoch,
            lists=topology.lists,
            fetchers=topology.fetchers,
        )
        self._scheduler.closed = self._schemas.closed
        if recovered.catalog.is_changed:
            self._scheduler.on_declared()
        unfinished = {each.key: each.row_offset for each in recovered.unfinished}
        self._admission = Admission(plan.files_at_once, unfinished, self._schemas.closed)
        self._dead: str | None = None
        self._refused = frozenset[str]()
        self._collector = EpochCollector(
            actors=topology.collectors, merger=MERGER, materializer=MATERIALIZER, now_s=now_s
        )
        self._deadline = EpochDeadline(definition.barrier.stalled_epoch_s)
        self._commits = EpochCommits(recovered.catalog, recovered.views, head.epoch)
        self._requests = Requests()
        self._caught_up, self._views = CaughtUp(topology.lists), DeclaredViews()
        self._watermarks = Watermarks(
            event_times(definition.sources),
            topology.lists,
            recovered.catalog.watermarks,
            self._caught_up.make_mark,
            lambda: epoch_time_us(self._next_epoch(self._scheduler.epoch)),
            now_s,
        )
        self._published = PublishedState(
            term=head.term,
            epoch=head.epoch,
            totals=added(plan.so_far, recovered.unacknowledged),
            num_unfinished=len(unfinished),
        )
        self._has_failed = False
        for each in plan.flow:
            self._ask(each)

    # -- readings --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        """Progress of the attempt; a new value with a higher version if something has happened since the last call."""
        if not self._published.is_due:
            return self._published.latest
        lists = self._scheduler.lists
        decided = {source.name for source in self._definition.sources} & self._schemas.decided.keys()
        reached = self._caught_up.reached if self._views.are_complete(decided) else None
        return self._published.read(
            sent=sum(each.sent for each in lists),
            lists=lists,
            fetchers=self._scheduler.fetchers,
            schemas=dict(self._schemas.decided),
            reached_mark=self._published.latest.reached_mark if reached is None else reached,
            closed=self._schemas.closed,
            watermarks=self._watermarks.latest,
            filled=self._schemas.filled,
            in_flight=(*self._commits.in_flight(), *self._collector.in_flight()),
            files_at_once=self._admission.files_at_once,
            suspects=self._suspects,
            requests_over=self._requests.over,
            num_fetchers=self._rescaling.num_fetchers,
            rescalings_over=self._rescaling.over,
        )

    @property
    def mapping(self) -> VnodeMapping:
        """The owners of the vnodes."""
        return self._rescaling.mapping

    @property
    def open_schemas(self) -> dict[str, pa.Schema]:
        """Source → schema, of the sources whose files may be read."""
        return self._schemas.open

    @property
    def stored_paths(self) -> dict[str, str]:
        """Materialized source → the path of its rows, relative to the root; also for a source without stored rows."""
        paths = {}
        for source in self._definition.sources:
            if source.materialize:
                stored = self._commits.views.get(stored_rows_name(source.name))
                path = stored_rows_path(source.name, self._first_epoch)
                paths[source.name] = path if stored is None else stored.path
        return paths

    @property
    def requests(self) -> int:
        """The number of mutations that were requested in this attempt."""
        return self._requests.asked

    @property
    def rescalings(self) -> int:
        """The number of rescalings that were requested in this attempt."""
        return self._rescaling.asked

    @property
    def mark(self) -> int:
        """The last mark that was made."""
        return self._caught_up.marks

    def start(self, now_s: float) -> list[CoordinateInstruction]:
        """Injects the initial barrier, and moves tags that may be older than the last commit before a crash."""
        return [MoveTags(dict(self._commits.views)), *self._continue(now_s)]

    # -- from the actors and the materializer ----------------------------------------------------------------------

    def on_progress(self, progress: Progress, number: int, now_s: float) -> list[CoordinateInstruction]:
        """An actor reports its progress; its reports are numbered from 1."""
        self._scheduler.on_progress(progress, number, now_s)
        self._deadline.on_progress(progress, self._collector.outstanding(), now_s)
        return self._continue(now_s)

    def on_collect(self, report: CollectReport, now_s: float) -> list[CoordinateInstruction]:
        """An actor, or the materializer, has finished an epoch.

        Raises:
            ProtocolError: the report is not expected.
        """
        self._scheduler.on_collect(report)
        self._collector.on_collect(report, now_s)
        self._deadline.on_report(now_s)
        return self._continue(now_s)

    def on_schema_proposed(self, proposal: ProposeSchema, now_s: float) -> list[CoordinateInstruction]:
        """One of the first files of a source shows a schema, or cannot be read."""
        if proposal.source in self._schemas.decided:
            return []
        instructions = self._schemas.propose(proposal)
        if proposal.source not in self._schemas.decided:
            return instructions
        self._scheduler.on_declared()
        self._close()
        return [*instructions, *self._continue(now_s)]

    def on_columns_proposed(self, source: str, columns: pa.Schema, now_s: float) -> list[CoordinateInstruction]:
        """A file has columns that its source lacks; the answer is the schema of the source with them."""
        if self._schemas.add_columns(source, columns):
            self._scheduler.on_declared()
        return [DecideSchema(source, self._schemas.decided[source]), *self._continue(now_s)]

    def on_views_declared(
        self, sources: frozenset[str], new_views: bool, now_s: float, *, backfilling: bool = False
    ) -> list[CoordinateInstruction]:
        """The materializer has analysed every view that the schemas of these sources allow, or backfills progress.

        Args:
            new_views: whether the materializer has something to commit that comes with no row.
            now_s: time of the monotonic clock.
            backfilling: whether a view lacks rows that were ingested before: a backfill, or a full view.
        """
        self._views.on_declared(
            sources,
            self._scheduler.epoch if new_views else None,
            backfilling=backfilling,
            in_flight=self._scheduler.last_in_flight,
        )
        if new_views:
            self._scheduler.on_declared()
        return self._continue(now_s)

    def on_committed(self, record: EpochRecord, now_s: float) -> list[CoordinateInstruction]:
        """The last `Commit` is done.

        Raises:
            ProtocolError: no commit is under way.
        """
        ended = self._commits.end(record, now_s)
        self._published.on_committed(record, ended.committed)
        if self._admission.on_committed(ended.epoch.delta):
            self._scheduler.on_declared()
        over = self._on_over(ended.epoch)
        return [ReportCommitted(record.epoch), MoveTags(ended.changed), *over, *self._continue(now_s)]

    def on_death(self, actor: str) -> None:
        """An actor is dead, and the attempt ends: only the files that it read are suspects."""
        self._dead = self._dead or actor
        self._published.change()

    # -- from the user ---------------------------------------------------------------------------------------------

    def on_request(self, mutation: Mutation, now_s: float) -> list[CoordinateInstruction]:
        """Puts a mutation on the next barrier: it is request number `self.requests`."""
        self._ask(mutation)
        return self._continue(now_s)

    def _ask(self, mutation: Mutation) -> None:
        self._scheduler.request(mutation)
        self._requests.ask()
        self._published.change(phase=_phase_after(mutation, self._published.phase))

    def on_rescale(self, fewest: int, most: int, now_s: float) -> list[CoordinateInstruction]:
        """The number of fetch actors moves into new bounds: it is rescaling number `self.rescalings`."""
        self._autoscaler = Autoscaler(fewest, most)
        wanted = min(most, max(fewest, self._rescaling.wanted))
        self._published.change(scaling="")
        return [*self._rescaling.ask(wanted), *self._continue(now_s)]

    def on_connected(self, now_s: float) -> list[CoordinateInstruction]:
        """The fetch actors of the last `Connect` are there."""
        return [*self._rescaling.on_connected(now_s), *self._continue(now_s)]

    def on_mark(self) -> list[CoordinateInstruction]:
        """Makes a mark that a user waits for, see `CaughtUp`: it is `self.mark`."""
        return [MarkListings(self._caught_up.make_mark(), at_once=True)]

    def on_time(self, now_s: float) -> list[CoordinateInstruction]:
        """The time of a `WakeAt` has come."""
        return self._continue(now_s)

    @property
    def _suspects(self) -> dict[FileKey, int]:
        admitted = self._admission.suspects
        if self._dead is None or self._rescaling.is_under_way:
            return admitted
        return {file: rows for file, rows in admitted.items() if self.mapping.owner_of(*file[:2]) == self._dead}

    # -- inside ----------------------------------------------------------------------------------------------------

    def _continue(self, now_s: float) -> list[CoordinateInstruction]:
        """Everything that is due after an event."""
        instructions = [*self._commit(now_s), *self._mark(now_s), *self._rescale(now_s), *self._inject(now_s)]
        instructions += self._wake(now_s)
        self._published.change()
        return instructions

    def _commit(self, now_s: float) -> list[CoordinateInstruction]:
        """Commits the oldest complete epoch; complete epochs without a change are over at once."""
        instructions: list[CoordinateInstruction] = []
        while not self._commits.is_under_way and (epoch := self._collector.take_complete(now_s)) is not None:
            before = self._watermarks.latest
            recorded = self._watermarks.on_epoch(epoch.barrier, epoch.reports, now_s)
            if self._watermarks.latest != before:
                # Windows close in an epoch of their own if nothing else happens.
                self._scheduler.on_declared()
            instructions += self._commits.begin(epoch, now_s, recorded)
            if not self._commits.is_under_way:
                instructions += self._on_over(epoch)
        return instructions

    def _mark(self, now_s: float) -> list[CoordinateInstruction]:
        """A mark for the watermarks that would move when it is reached."""
        mark = self._watermarks.mark(now_s)
        return [] if mark is None else [MarkListings(mark)]

    def _on_over(self, epoch: CollectedEpoch) -> list[CoordinateInstruction]:
        """An epoch was committed, or had nothing to commit."""
        self._scheduler.on_epoch_over(epoch.epoch)
        self._refused = self._caught_up.refused(epoch.reports)
        self._close()
        self._caught_up.on_epoch_over(epoch.epoch, epoch.reports, self._closed)
        self._views.on_epoch_over(epoch.epoch)
        self._requests.on_epoch_over(epoch.epoch)
        self._published.on_epoch_over(epoch)
        instructions = self._rescaling.on_epoch_over(epoch.epoch)
        if not epoch.barrier.is_stop:
            return instructions
        self._published.change(phase="stopped")
        return [*instructions, End()]

    @property
    def _closed(self) -> frozenset[str]:
        """The sources whose files wait: for the schema of another source, or for access to their store."""
        return self._schemas.closed | self._refused

    def _close(self) -> None:
        """The files of closed sources take no room, and others do not wait for them."""
        if self._scheduler.closed == self._closed:
            return
        self._scheduler.closed = self._closed
        before = self._admission.admitted
        self._admission.close(self._closed)
        if self._admission.admitted != before:
            self._scheduler.on_declared()

    def _rescale(self, now_s: float) -> list[CoordinateInstruction]:
        """Moves vnodes, and decides whether any should move."""
        if self._scheduler.stopping:
            return []
        instructions = self._rescaling.advance(now_s, self._scheduler.fetchers)
        is_held_back = self._requests.paused or self._rescaling.is_under_way
        before = self._rescaling.num_fetchers
        workload = self._scheduler.workload(before, is_held_back=is_held_back)
        decision = self._autoscaler.on_workload(now_s, workload)
        if decision is not None:
            self._published.change(scaling=f"{before} to {decision.num_fetchers}: {decision.reason}")
            instructions += [ReportScaling(before, decision), *self._rescaling.ask(decision.num_fetchers)]
        return instructions

    def _inject(self, now_s: float) -> list[CoordinateInstruction]:
        """The barriers that are due."""
        instructions: list[CoordinateInstruction] = []
        while not self._scheduler.stopping:
            if self._rescaling.due is not None and not self._scheduler.has_requests:
                # The requests before it are in force then.
                before, after = self._rescaling.mapping, self._rescaling.due
                self._scheduler.request(Update(before, after, self._requests.paused, self._requests.throttle))
            if self._scheduler.wait_s(now_s) > 0:
                break
            epoch = self._next_epoch(max(self._scheduler.epoch, self._first_epoch))
            barrier = self._scheduler.next_barrier(now_s, epoch, self._admission.admitted, self._watermarks.latest)
            assert barrier is not None, "it is time, and the run is not stopping"
            self._collector.on_barrier(barrier, now_s)
            if barrier.mutation is not None:
                self._on_mutation(barrier, barrier.mutation)
            instructions.append(Inject(barrier))
        return instructions

    def _on_mutation(self, barrier: Barrier, mutation: Mutation) -> None:
        """A barrier carries a mutation: a request of the user, or an `Update` of the vnodes."""
        if isinstance(mutation, Update):
            self._rescaling.on_barrier(barrier.epoch.prev)
            self._scheduler.add_fetchers(name for name in mutation.after.owners if name not in mutation.before.owners)
        else:
            self._published.on_queued_again(self._requests.on_barrier(barrier, mutation))

    def _wake(self, now_s: float) -> list[CoordinateInstruction]:
        """The next time at which something is due without an event; or the failure, if an epoch makes no progress."""
        outstanding = self._collector.outstanding()
        error = self._deadline.error(outstanding, now_s)
        if error is not None and not self._has_failed:
            self._has_failed = True
            return [Fail(error)]
        times_s = [self._deadline.wake_s(outstanding)]
        if not self._scheduler.stopping:
            times_s.append(now_s + self._scheduler.wait_s(now_s))
            times_s.append(now_s + self._watermarks.idle_in_s(now_s))
            times_s += [each for each in (self._rescaling.wake_s(), self._autoscaler.wake_s(now_s)) if each is not None]
        next_s = min(times_s)
        return [] if self._has_failed or next_s == float("inf") else [WakeAt(next_s)]


def _phase_after(mutation: Mutation, phase: RunPhase) -> RunPhase:
    """The phase of the run from a request on."""
    if phase == "stopped":
        return phase
    match mutation:
        case Pause():
            return "paused"
        case Resume():
            return "running"
        case Stop():
            return "stopping"
        case _:
            return phase
