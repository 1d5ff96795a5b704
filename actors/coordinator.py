"""The coordinator on Ray: makes epochs, injects barriers, collects, commits.

Three loops run on its event loop: one injects barriers when the scheduler says so, one commits complete epochs in
their order, one moves the tags of changed views off the critical path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import ray
import structlog

from actors.actor_group import MATERIALIZER, MERGER, ActorGroup
from actors.barrier_scheduler import BarrierScheduler
from actors.epoch_collector import CollectedEpoch, EpochCollector
from actors.logging import configure_default
from actors.messages import BarrierKind, Mutation, Pause, Resume, Stop
from actors.pipeline_definition import PipelineDefinition
from actors.recovery import RecoveredState, recover
from actors.reports import CollectReport, Progress
from actors.run_state import Recovered, RunState
from actors.watermark import Watermark
from state.clock import SystemClock
from state.delta import Delta
from state.epoch import next_epoch
from state.errors import ProtocolError, RunFailedError, SlackwaterError
from state.records import EpochCounts, ViewVersion
from state.view_dataset import tag_committed

_WATCH_S = 1.0


class Coordinator:
    """One pipeline's run.

    Args:
        definition: the pipeline.
    """

    def __init__(self, definition: PipelineDefinition) -> None:
        configure_default()
        self._log = structlog.get_logger().bind(actor="coordinator")
        self._definition = definition
        self._clock = SystemClock()
        self._changed = asyncio.Event()
        self._watched = asyncio.Event()
        self._over = asyncio.Event()
        self._complete = asyncio.Event()
        self._tags_due = asyncio.Event()
        self._untagged: dict[str, ViewVersion] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._state = RunState(version=0, phase="running", epoch=0)
        self._declared_sources: frozenset[str] | None = None
        self._views_due = 0
        self._last_over = 0
        self._marks = 1

    async def start(self) -> Recovered:
        """Takes the root over, recovers what is committed, and lets the flow begin."""
        recovered = await asyncio.to_thread(recover, self._definition, self._clock)
        self._store, self._catalog = recovered.store, recovered.catalog
        self._views: dict[str, ViewVersion] = dict(recovered.views)
        # The tag may be older than the last commit, if that was just before a crash.
        self._untagged = dict(recovered.views)
        self._tags_due.set()
        self._closed = self._definition.closed_sources(self._catalog.schemas.keys())
        self._group = self._create_group(recovered)
        lists = {f"list-{source.name}": source.name for source in self._definition.sources}
        self._watermark = Watermark(lists)
        self._scheduler = BarrierScheduler(
            settings=self._definition.barrier,
            max_files_waiting=self._definition.fetch.max_files_waiting,
            committed=self._store.head.epoch,
            lists=lists,
            fetchers=self._group.fetch_names,
        )
        self._collector = EpochCollector(
            actors=[*self._group.names, MATERIALIZER],
            merger=MERGER,
            materializer=MATERIALIZER,
            now_s=self._clock.monotonic(),
        )
        self._scheduler.closed = self._closed
        # An epoch of a term that committed nothing must not come again: datasets are named after epochs.
        self._first_epoch = self._store.head.epoch + (self._store.head.term << 16)
        if self._catalog.is_changed:
            self._scheduler.on_declared()
        await self._group.connect()
        for loop in (self._inject_barriers(), self._commit_epochs(), self._move_tags()):
            self._run(loop)
        for name, handle in self._group.handles.items():
            self._run(self._watch_actor(name, handle))
        self._publish(epoch=self._store.head.epoch)
        return Recovered(
            term=self._store.head.term,
            epoch=self._store.head.epoch,
            merger=self._group.merger,
            views=self._views,
            catalog_views=self._catalog.views,
            schemas=self._catalog.schemas,
            ingested=recovered.ingested,
        )

    # -- what the actors and the materializer say ---------------------------------------------------------------

    async def progress(self, progress: Progress, number: int) -> None:
        """An actor is further; its reports are numbered."""
        self._scheduler.on_progress(progress, number)
        self._publish()

    async def collect(self, report: CollectReport) -> None:
        """An actor, or the materializer, has finished an epoch."""
        try:
            self._scheduler.on_collect(report)
            self._collector.on_collect(report, self._clock.monotonic())
        except ProtocolError as error:
            self._fail(error)
        self._complete.set()
        self._publish()

    async def propose_schema(self, source: str, schema: pa.Schema | None) -> None:
        """The first file of a source shows this schema, or cannot be read."""
        if source in self._catalog.schemas:
            return
        if schema is None:
            self._group.try_next_file(source)
            return
        self._catalog.set_schema(source, schema)
        self._scheduler.on_declared()
        before, self._closed = self._closed, self._definition.closed_sources(self._catalog.schemas.keys())
        self._scheduler.closed = self._closed
        for opened in (before | {source}) - self._closed:
            self._group.decide_schema(opened, self._catalog.schemas[opened])
        self._publish()

    async def views_declared(self, sources: frozenset[str], new_views: bool) -> None:
        """The materializer has analysed every view that the schemas of these sources allow."""
        self._declared_sources = sources
        if new_views:
            self._views_due = self._scheduler.epoch
            self._scheduler.on_declared()
        self._publish()

    # -- what the user says --------------------------------------------------------------------------------------

    async def request(self, mutation: Mutation) -> None:
        """Puts a mutation on the next barrier."""
        self._scheduler.request(mutation)
        phases: Mapping[type, str] = {Pause: "paused", Resume: "running", Stop: "stopping"}
        if self._state.phase not in ("failed", "stopped"):
            self._publish(phase=phases[type(mutation)])

    async def mark(self) -> int:
        """Makes a mark, see `Watermark`."""
        self._marks += 1
        self._group.mark(self._marks)
        return self._marks

    async def watch(self, version: int) -> RunState:
        """The state of the run, as soon as it is newer than `version`, at the latest after a second."""
        if self._state.version <= version:
            self._watched.clear()
            try:
                await asyncio.wait_for(self._watched.wait(), _WATCH_S)
            except asyncio.TimeoutError:
                pass
        return self._state

    async def join(self) -> None:
        """Returns when the run is over and every tag is moved."""
        await self._over.wait()

    # -- the loops -----------------------------------------------------------------------------------------------

    async def _inject_barriers(self) -> None:
        while not self._scheduler.stopping and self._state.phase != "failed":
            now_s = self._clock.monotonic()
            last = max(self._scheduler.epoch, self._first_epoch)
            barrier = self._scheduler.next_barrier(now_s, next_epoch(self._clock, last))
            if barrier is not None:
                self._collector.on_barrier(barrier, now_s)
                self._group.inject(barrier)
                continue
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), min(self._scheduler.wait_s(now_s), _WATCH_S))
            except asyncio.TimeoutError:
                pass

    async def _commit_epochs(self) -> None:
        while self._state.phase != "failed":
            epoch = self._collector.take_complete(self._clock.monotonic())
            if epoch is None:
                self._complete.clear()
                await self._complete.wait()
                continue
            await self._commit(epoch)
            self._scheduler.on_epoch_over(epoch.epoch)
            self._watermark.on_epoch_over(epoch.epoch, epoch.reports, self._closed)
            self._last_over = epoch.epoch
            if epoch.barrier.is_stop:
                self._tags_due.set()
                self._publish(phase="stopped")
                return
            self._publish()

    async def _commit(self, epoch: CollectedEpoch) -> None:
        if epoch.barrier.kind is BarrierKind.INITIAL:
            return
        delta = Delta.merge([epoch.delta, self._catalog.take_delta(epoch.created)])
        if delta.is_empty:
            return
        started_s = self._clock.monotonic()
        changed = {name: view for name, view in epoch.views.items() if self._views.get(name) != view}
        self._views |= changed
        record = await asyncio.to_thread(
            self._store.commit,
            epoch=epoch.epoch,
            delta=delta,
            views=self._views,
            counts=epoch.counts,
            seconds=epoch.seconds,
        )
        self._untagged |= changed
        self._tags_due.set()
        self._log.info("epoch committed", epoch=record.epoch, commit_s=round(self._clock.monotonic() - started_s, 4))
        totals = self._state.totals
        totals = EpochCounts(
            files=totals.files + epoch.counts.files,
            rows=totals.rows + epoch.counts.rows,
            bytes=totals.bytes + epoch.counts.bytes,
            requests=totals.requests + epoch.counts.requests,
        )
        self._publish(epoch=record.epoch, epochs=self._state.epochs + 1, totals=totals)

    async def _move_tags(self) -> None:
        """Tags are a courtesy to plain Lance readers: only the latest version needs one, and no run fails for it."""
        while True:
            await self._tags_due.wait()
            self._tags_due.clear()
            views, self._untagged = self._untagged, {}
            for name, view in views.items():
                try:
                    await asyncio.to_thread(tag_committed, self._definition.root, view)
                except Exception as error:
                    self._untagged.setdefault(name, view)
                    self._log.warning("a view's tag stays behind until the next epoch", view=name, error=str(error))
            if self._state.phase == "stopped" and not self._tags_due.is_set():
                self._over.set()
                return

    async def _watch_actor(self, name: str, handle: ray.actor.ActorHandle) -> None:
        try:
            await handle.join.remote()
        except ray.exceptions.RayActorError as error:
            raise RunFailedError(f"the actor {name} died: {_first_line(error)}; start the run again") from error
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None

    # -- inside --------------------------------------------------------------------------------------------------

    def _create_group(self, recovered: RecoveredState) -> ActorGroup:
        return ActorGroup(
            coordinator=ray.get_runtime_context().current_actor,
            definition=self._definition,
            seen=recovered.seen,
            schemas={name: each for name, each in self._catalog.schemas.items() if name not in self._closed},
            unfinished=recovered.unfinished,
            without_rows=recovered.without_rows,
        )

    def _run(self, work: object) -> None:
        """Runs one of the loops; what it raises ends the run."""

        async def guarded() -> None:
            try:
                await work  # type: ignore[misc]
            except Exception as error:
                self._fail(error)

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(self, error: Exception) -> None:
        if self._state.phase in ("failed", "stopped"):
            return
        self._log.error("run failed", error=str(error))
        if not isinstance(error, SlackwaterError):
            error = RunFailedError(f"{type(error).__name__}: {_first_line(error)}; start the run again")
        self._publish(phase="failed", failure=error)
        self._over.set()

    def _publish(self, **changes: object) -> None:
        """Makes a new state for those who watch, and wakes the scheduler."""
        sources = (source.name for source in self._definition.sources)
        declared = frozenset(name for name in sources if name in self._catalog.schemas)
        every_view_is_there = self._declared_sources == declared and self._last_over >= self._views_due
        self._state = replace(
            self._state,
            version=self._state.version + 1,
            lists=self._scheduler.lists,
            fetchers=self._scheduler.fetchers,
            schemas=dict(self._catalog.schemas),
            reached_mark=self._watermark.reached if every_view_is_there else self._state.reached_mark,
            closed=self._closed,
            **changes,  # type: ignore[arg-type]
        )
        self._changed.set()
        self._watched.set()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
