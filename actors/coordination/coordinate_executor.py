"""Makes epochs, injects barriers, collects, and commits one epoch after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from actors.coordination.admission import Admission
from actors.coordination.autoscaler import Autoscaler
from actors.coordination.barrier_scheduler import BarrierScheduler
from actors.coordination.caught_up import CaughtUp
from actors.coordination.epoch_collector import CollectedEpoch, EpochCollector
from actors.coordination.epoch_times import youngest_files
from actors.coordination.instructions import (
    Commit,
    DecideSchema,
    Inject,
    MarkListings,
    MoveTags,
    TellCommitted,
    TellLeftOut,
    TellScaling,
    TryNextFile,
)
from actors.coordination.instructions import CoordinateInstruction as Instruction
from actors.coordination.rescaling import PATIENCE_S, Rescaling
from actors.protocol.barrier import (
    Barrier,
    BarrierKind,
    Forget,
    Mutation,
    Pause,
    Reread,
    Resume,
    Retry,
    Stop,
    Throttle,
    Update,
)
from actors.protocol.instructions import End, ProposeSchema, WakeAt
from actors.protocol.reports import CollectReport, Progress
from actors.protocol.run_state import CommittedEpoch, EpochInFlight, RunState, Unfinished
from actors.protocol.vnode_mapping import VnodeMapping
from actors.recovery.attempt_plan import AttemptPlan, RunTotals
from actors.recovery.recovery import RecoveredState
from actors.sources.pipeline_definition import MATERIALIZER, MERGER, PipelineDefinition, Topology
from actors.sources.source import orders
from actors.sources.source_schema import SchemaSample, addable_columns
from state.tables.delta import Delta
from state.tables.epoch_trace import EpochTrace
from state.tables.records import EpochCounts, EpochRecord, ViewVersion
from state.tables.stored_rows import stored_rows_name, stored_rows_path

_PHASES: Mapping[type, str] = {Pause: "paused", Resume: "running", Stop: "stopping"}


class CoordinateExecutor:
    """The coordinator of one attempt: reports in, barriers and commits out.

    Args:
        definition: the pipeline.
        plan: what the attempts before this one left.
        recovered: where the attempt begins.
        next_epoch: makes an epoch that is greater than the given one.
        now_s: of the monotonic clock.
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
        self._catalog = recovered.catalog
        self._views: dict[str, ViewVersion] = dict(recovered.views)
        self._closed = definition.closed_sources(self._catalog.schemas.keys())
        self._watermark = CaughtUp(topology.lists)
        self._scheduler = BarrierScheduler(
            settings=definition.barrier,
            max_files_waiting=definition.fetch.max_files_waiting,
            committed=head.epoch,
            lists=topology.lists,
            fetchers=topology.fetchers,
        )
        self._collector = EpochCollector(
            actors=topology.collectors, merger=MERGER, materializer=MATERIALIZER, now_s=now_s
        )
        self._admission = Admission(plan.files_at_once, [each.key for each in recovered.unfinished], self._closed)
        self._scheduler.closed = self._closed
        # An epoch of a term that committed nothing must not come again: datasets are named after epochs.
        self._first_epoch = (head.epoch or next_epoch(0)) + (head.term << 16)
        if self._catalog.is_changed:
            self._scheduler.on_declared()
        self._samples = {
            source.name: SchemaSample(
                source, recovered.num_waiting(source.name, plan.poisoned), is_hasty=plan.files_at_once is not None
            )
            for source in definition.sources
        }
        self._committing: CollectedEpoch | None = None
        self._committing_since_s = now_s
        self._commit_before: tuple[int, float] | None = None
        self._unfinished = len(recovered.unfinished)
        self._committed_files = 0
        self._committed_epochs: list[int] = []
        self._unfinished_since: dict[str, int] = {}
        self._declared_sources: frozenset[str] | None = None
        self._views_due = 0
        self._catching_up = False
        self._last_over = 0
        self._requests = self._requests_injected = 0
        self._requests_of: dict[int, int] = {}
        self._marks = 1
        self._paused, self._throttle = False, Throttle()
        totals = _added(plan.so_far, recovered.unacknowledged)
        self._state = RunState(
            version=0, phase="running", term=head.term, epoch=head.epoch, epochs=totals.epochs, totals=totals.counts
        )
        self._is_news = True

    @property
    def state(self) -> RunState:
        """How far the attempt is; a new value with a higher version when something has happened since the last call."""
        if self._is_news:
            sources = (source.name for source in self._definition.sources)
            declared = frozenset(name for name in sources if name in self._catalog.schemas)
            every_view_is_there = (
                self._declared_sources == declared and self._last_over >= self._views_due and not self._catching_up
            )
            sent = sum(each.sent for each in self._scheduler.lists)
            self._is_news = False
            self._state = replace(
                self._state,
                version=self._state.version + 1,
                lists=self._scheduler.lists,
                fetchers=self._scheduler.fetchers,
                schemas=dict(self._catalog.schemas),
                reached_mark=self._watermark.reached if every_view_is_there else self._state.reached_mark,
                closed=self._closed,
                in_flight=self._in_flight(),
                files_in_flight=self._unfinished + sent - self._committed_files,
                files_at_once=self._admission.files_at_once,
                unfinished=self._oldest_unfinished(),
                suspects=self._admission.suspects,
                num_fetchers=self._rescaling.num_fetchers,
                rescalings_over=self._rescaling.over,
            )
        return self._state

    @property
    def mapping(self) -> VnodeMapping:
        """Who owns which vnodes."""
        return self._rescaling.mapping

    @property
    def open_schemas(self) -> dict[str, pa.Schema]:
        """Source → schema, of the sources whose files may be read."""
        return {name: each for name, each in self._catalog.schemas.items() if name not in self._closed}

    @property
    def stored_paths(self) -> dict[str, str]:
        """Materialized source → where its rows are, relative to the root, or will be if it has none yet."""
        paths = {}
        for source in self._definition.sources:
            if source.materialize:
                stored = self._views.get(stored_rows_name(source.name))
                path = stored_rows_path(source.name, self._first_epoch)
                paths[source.name] = path if stored is None else stored.path
        return paths

    def start(self, now_s: float) -> list[Instruction]:
        """Injects the initial barrier, and moves tags that may be older than the last commit before a crash."""
        return [MoveTags(dict(self._views)), *self._go_on(now_s)]

    # -- what the actors and the materializer say ---------------------------------------------------------------

    def on_progress(self, progress: Progress, number: int, now_s: float) -> list[Instruction]:
        """An actor is further; its reports are numbered."""
        self._scheduler.on_progress(progress, number)
        return self._go_on(now_s)

    def on_collect(self, report: CollectReport, now_s: float) -> list[Instruction]:
        """An actor, or the materializer, has finished an epoch.

        Raises:
            ProtocolError: nobody expects this report.
        """
        self._scheduler.on_collect(report)
        self._collector.on_collect(report, now_s)
        return self._go_on(now_s)

    def on_schema_proposed(self, proposal: ProposeSchema, now_s: float) -> list[Instruction]:
        """One of the first files of a source shows a schema, or cannot be read.

        Raises:
            SchemaError: a column of the first files cannot be used.
        """
        source = proposal.source
        if source in self._catalog.schemas:
            return []
        sample = self._samples[source]
        sample.add(proposal.path, proposal.schema, proposal.sample)
        if not sample.is_complete:
            return []
        if not sample.shows_something:
            return [TryNextFile(source)]
        self._catalog.set_schema(source, sample.schema())
        self._scheduler.on_declared()
        before, self._closed = self._closed, self._definition.closed_sources(self._catalog.schemas.keys())
        self._scheduler.closed = self._closed
        self._admission.close(self._closed)
        opened = sorted((before | {source}) - self._closed)
        return [*(DecideSchema(each, self._catalog.schemas[each]) for each in opened), *self._go_on(now_s)]

    def on_columns_proposed(self, source: str, columns: pa.Schema, now_s: float) -> list[Instruction]:
        """A file has columns that its source lacks: they are added at its end, unless somebody was faster."""
        kept = self._catalog.schemas[source]
        new = addable_columns(kept, columns)
        if new.names:
            self._catalog.set_schema(source, pa.schema([*kept, *new]))
            self._scheduler.on_declared()
        return [DecideSchema(source, self._catalog.schemas[source]), *self._go_on(now_s)]

    def on_views_declared(
        self, sources: frozenset[str], new_views: bool, now_s: float, *, backfilling: bool = False
    ) -> list[Instruction]:
        """The materializer has analysed every view that the schemas of these sources allow, or views are further.

        Args:
            sources: those.
            new_views: whether it has something to commit that comes with no row.
            now_s: of the monotonic clock.
            backfilling: whether a view still lacks rows that were ingested before it was declared.
        """
        self._declared_sources, self._catching_up = sources, backfilling
        if new_views:
            self._views_due = self._scheduler.epoch
            self._scheduler.on_declared()
        return self._go_on(now_s)

    def on_committed(self, record: EpochRecord, now_s: float) -> list[Instruction]:
        """What the last `Commit` asked for is done."""
        assert self._committing is not None
        epoch, self._committing = self._committing, None
        totals = _added(RunTotals(0, self._state.epochs, self._state.totals), [record])
        self._committed_files += record.counts.files
        self._committed_epochs.append(record.epoch)
        committed = self._committed(record, epoch, now_s)
        self._commit_before = (committed.epoch, committed.commit_s)
        news = replace(self._state, recent=(committed,), traces={record.epoch: record.trace or ""}).after(self._state)
        self._publish(
            epoch=record.epoch, epochs=totals.epochs, totals=totals.counts, recent=news.recent, traces=news.traces
        )
        changed = {name: view for name, view in epoch.views.items() if self._views.get(name) != view}
        self._views = epoch.views_after(self._views)
        if self._admission.on_committed(epoch.delta):
            self._scheduler.on_declared()
        return [TellCommitted(record.epoch), MoveTags(changed), *self._on_over(epoch), *self._go_on(now_s)]

    # -- what the user says --------------------------------------------------------------------------------------

    def on_request(self, mutation: Mutation, now_s: float) -> list[Instruction]:
        """Puts a mutation on the next barrier: it is request number `self.requests`."""
        self._scheduler.request(mutation)
        self._requests += 1
        if self._state.phase != "stopped":
            self._publish(phase=_PHASES.get(type(mutation), self._state.phase))
        return self._go_on(now_s)

    def on_rescale(self, fewest: int, most: int, now_s: float) -> list[Instruction]:
        """There are to be so many fetch actors: it is rescaling number `self.rescalings`."""
        self._autoscaler = Autoscaler(fewest, most)
        wanted = min(most, max(fewest, self._rescaling.wanted))
        self._publish(scaling="")
        return [*self._rescaling.ask(wanted), *self._go_on(now_s)]

    def on_connected(self, now_s: float) -> list[Instruction]:
        """What `Connect` asked for is there."""
        return [*self._rescaling.on_connected(now_s), *self._go_on(now_s)]

    @property
    def rescalings(self) -> int:
        """How many rescalings were asked for."""
        return self._rescaling.asked

    @property
    def requests(self) -> int:
        """How many mutations were asked for."""
        return self._requests

    def on_mark(self) -> list[Instruction]:
        """Makes a mark, see `CaughtUp`: it is `self.mark`."""
        self._marks += 1
        return [MarkListings(self._marks)]

    @property
    def mark(self) -> int:
        """The last mark that was made."""
        return self._marks

    def on_time(self, now_s: float) -> list[Instruction]:
        """A time that a `WakeAt` named has come."""
        return self._go_on(now_s)

    # -- inside --------------------------------------------------------------------------------------------------

    def _go_on(self, now_s: float) -> list[Instruction]:
        instructions = [*self._commit_next(now_s), *self._rescale(now_s), *self._inject(now_s)]
        self._publish()
        return instructions

    def _rescale(self, now_s: float) -> list[Instruction]:
        """Moves vnodes, and decides whether any should move."""
        if self._scheduler.stopping:
            return []
        instructions = self._rescaling.go_on(now_s, self._scheduler.fetchers)
        is_held_back = self._paused or self._rescaling.is_under_way
        before = self._rescaling.num_fetchers
        workload = self._scheduler.workload(before, is_held_back=is_held_back)
        decision = self._autoscaler.on_workload(now_s, workload)
        if decision is not None:
            self._publish(scaling=f"{before} to {decision.num_fetchers}: {decision.reason}")
            instructions += [TellScaling(before, decision), *self._rescaling.ask(decision.num_fetchers)]
        return instructions

    def _wake(self, now_s: float, wait_s: float) -> list[Instruction]:
        times_s = (now_s + wait_s, self._rescaling.wake_s(), self._autoscaler.wake_s(now_s))
        next_s = min(each for each in times_s if each is not None)
        return [] if next_s == float("inf") else [WakeAt(next_s)]

    def _commit_next(self, now_s: float) -> list[Instruction]:
        """Commits the oldest epoch that everybody has collected; those without a change are over at once."""
        instructions: list[Instruction] = []
        while self._committing is None and (epoch := self._collector.take_complete(now_s)) is not None:
            if epoch.barrier.kind is not BarrierKind.INITIAL:
                left_out = [each for report in epoch.reports.values() for each in report.left_out]
                instructions += map(TellLeftOut, self._catalog.leave_out(left_out))
                catalog = self._catalog.take_delta(epoch.created, epoch.dropped)
                epoch = replace(epoch, delta=Delta.merge([epoch.delta, catalog]))
                views = epoch.views_after(self._views)
                if not epoch.delta.is_empty or views != self._views:
                    self._committing, self._committing_since_s = epoch, now_s
                    corrected = tuple(each for report in epoch.reports.values() for each in report.corrected)
                    trace = EpochTrace.of(epoch.times.spans(), self._commit_before).to_json()
                    commit = Commit(epoch.epoch, epoch.delta, views, epoch.counts, epoch.seconds, corrected, trace)
                    return [*instructions, commit]
            instructions += self._on_over(epoch)
        return instructions

    def _committed(self, record: EpochRecord, epoch: CollectedEpoch, now_s: float) -> CommittedEpoch:
        ages = {
            source: (record.committed_at - time).total_seconds() for source, time in youngest_files(epoch.delta).items()
        }
        return CommittedEpoch(
            epoch=record.epoch,
            committed_at=record.committed_at,
            counts=record.counts,
            seconds=record.seconds,
            commit_s=now_s - self._committing_since_s,
            freshness_s={source: max(0.0, age_s) for source, age_s in ages.items()},
        )

    def _in_flight(self) -> tuple[EpochInFlight, ...]:
        committing = [] if self._committing is None else [EpochInFlight(self._committing.epoch, "commit")]
        return (*committing, *self._collector.in_flight())

    def _on_over(self, epoch: CollectedEpoch) -> list[Instruction]:
        self._scheduler.on_epoch_over(epoch.epoch)
        self._watermark.on_epoch_over(epoch.epoch, epoch.reports, self._closed)
        self._last_over = epoch.epoch
        self._note_unfinished(epoch)
        instructions = self._rescaling.on_epoch_over(epoch.epoch)
        self._publish(requests_over=self._requests_of.pop(epoch.epoch, self._state.requests_over))
        if not epoch.barrier.is_stop:
            return instructions
        self._publish(phase="stopped")
        return [*instructions, End()]

    def _note_unfinished(self, epoch: CollectedEpoch) -> None:
        """Keeps in mind how old the oldest unfinished files are."""
        self._unfinished_since = {}
        for report in epoch.reports.values():
            for source, listed in report.unfinished_since.items():
                self._unfinished_since[source] = min(listed, self._unfinished_since.get(source, listed))
        oldest = min(self._unfinished_since.values(), default=epoch.epoch)
        del self._committed_epochs[: bisect_right(self._committed_epochs, oldest)]

    def _oldest_unfinished(self) -> dict[str, Unfinished]:
        epochs = self._committed_epochs
        return {
            source: Unfinished(listed, len(epochs) - bisect_right(epochs, listed))
            for source, listed in self._unfinished_since.items()
        }

    def _inject(self, now_s: float) -> list[Instruction]:
        if self._scheduler.stopping:
            return []
        if self._rescaling.due is not None and not self._scheduler.has_requests:
            # What was asked for before is in force then.
            self._scheduler.request(Update(self._rescaling.mapping, self._rescaling.due, self._paused, self._throttle))
        wait_s = self._scheduler.wait_s(now_s)
        if wait_s > 0:
            return self._wake(now_s, wait_s)
        epoch = self._next_epoch(max(self._scheduler.epoch, self._first_epoch))
        barrier = self._scheduler.next_barrier(now_s, epoch, self._admission.admitted)
        assert barrier is not None, "it is time, and the run is not stopping"
        self._collector.on_barrier(barrier, now_s)
        if barrier.mutation is not None:
            self._on_mutation(barrier, barrier.mutation)
        return [Inject(barrier), *self._inject(now_s)]

    def _on_mutation(self, barrier: Barrier, mutation: Mutation) -> None:
        """A request is on its way: what it changes begins at the barrier, and what it has for files comes behind it."""
        if isinstance(mutation, Update):
            self._rescaling.on_barrier(barrier.epoch.prev)
            self._scheduler.add_fetchers(name for name in mutation.after.owners if name not in mutation.before.owners)
            return
        if isinstance(mutation, (Pause, Resume)):
            self._paused = isinstance(mutation, Pause)
        elif isinstance(mutation, Throttle):
            self._throttle = mutation
        self._requests_injected += 1
        epoch = barrier.epoch.prev
        if isinstance(mutation, (Retry, Forget, Reread)):
            epoch = barrier.epoch.curr
            self._unfinished += 0 if isinstance(mutation, Forget) else len(mutation.files)
        self._requests_of[epoch] = self._requests_injected

    def _publish(self, **changes: object) -> None:
        """Something has happened: those who watch will get a new state."""
        if changes:
            self._state = replace(self._state, **changes)  # type: ignore[arg-type]
        self._is_news = True


def _added(totals: RunTotals, records: Sequence[EpochRecord]) -> RunTotals:
    """The totals with further epochs."""
    counts = [totals.counts, *(record.counts for record in records)]
    return RunTotals(
        records[-1].epoch if records else totals.epoch,
        totals.epochs + len(records),
        EpochCounts(
            files=sum(each.files for each in counts),
            rows=sum(each.rows for each in counts),
            bytes=sum(each.bytes for each in counts),
            requests=sum(each.requests for each in counts),
        ),
    )
