"""The coordinator of one attempt on Ray: hosts a `CoordinateExecutor`, commits what it says, and watches the actors.

Whoever gets a handle of it loads this module: what the coordinator alone needs (Lance, all other actors) is loaded
where it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import ray
import structlog

from actors.coordination.instructions import (
    Commit,
    Connect,
    CoordinateInstruction,
    DecideSchema,
    EndFetchers,
    Inject,
    MarkListings,
    MoveTags,
    PrepareMove,
    TellCommitted,
    TellLeftOut,
    TellScaling,
    TryNextFile,
)
from actors.protocol.barrier import Mutation
from actors.protocol.instructions import End, Fail, ProposeSchema, WakeAt
from actors.protocol.reports import CollectReport, Progress
from actors.protocol.run_state import Recovered, RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.sources.pipeline_definition import PipelineDefinition
from actors.telemetry.logging import configure_default
from actors.telemetry.text import cause_of_death, first_line
from state.clock import SystemClock
from state.epoch import next_epoch
from state.errors import NotFoundError, RunFailedError, SlackwaterError
from state.tables.records import ViewVersion
from state.upkeep.quarantine import clear_quarantine
from state.upkeep.tags import delete_tag, put_tag

if TYPE_CHECKING:
    from state.upkeep.vacuum import Vacuumed

_WATCH_S = 1.0


class Coordinator:
    """One attempt of a pipeline's run.

    Args:
        definition: the pipeline.
        plan: what the attempts before this one left.
    """

    def __init__(self, definition: PipelineDefinition, plan: AttemptPlan) -> None:
        from state.lance.lance_root import LanceRoot

        configure_default()
        self._log = structlog.get_logger().bind(actor="coordinator")
        self._definition = definition if plan.files_at_once is None else definition.cautious()
        self._plan = plan
        self._clock = SystemClock()
        self._root = LanceRoot(definition.root, self._clock)
        self._watched = asyncio.Event()
        self._over = asyncio.Event()
        self._tags_due = asyncio.Event()
        self._untagged: dict[str, ViewVersion] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake: asyncio.TimerHandle | None = None
        self._failure: SlackwaterError | None = None

    async def start(self) -> Recovered:
        """Takes the root over, recovers what is committed, and lets the flow begin."""
        from actors.coordination.coordinate_executor import CoordinateExecutor
        from actors.hosting.actor_group import ActorGroup
        from actors.hosting.owned_store import OwnedStore
        from actors.recovery.recovery import recover

        recovered = await asyncio.to_thread(recover, self._definition, self._plan, self._root)
        self._store = OwnedStore(recovered.store, self._root, self._definition.retention)
        self._executor = CoordinateExecutor(
            definition=self._definition,
            plan=self._plan,
            recovered=recovered,
            next_epoch=partial(next_epoch, self._clock),
            now_s=self._now_s(),
        )
        self._group = ActorGroup(
            coordinator=ray.get_runtime_context().current_actor,
            definition=self._definition,
            mapping=self._executor.mapping,
            recovered=recovered,
            open_sources=self._executor.open_schemas,
            poisoned=self._plan.poisoned,
            spent=self._plan.spent,
            stored=self._executor.stored_paths,
        )
        try:
            await self._group.connect()
        except ray.exceptions.RayActorError as error:
            raise RunFailedError(f"an actor died before it was connected: {cause_of_death(error)}") from error
        self._run(self._move_tags())
        self._run(self._store.keep_house())
        self._watches = {
            name: self._run(self._watch_actor(name, handle)) for name, handle in self._group.handles.items()
        }
        self._do(self._executor.start(self._now_s()))
        return Recovered(
            term=recovered.head.term,
            epoch=recovered.head.epoch,
            merger=self._group.merger,
            views=recovered.views,
            catalog_views=recovered.catalog.views,
            schemas=recovered.catalog.schemas,
            ingested=recovered.ingested,
            finished=recovered.finished,
        )

    # -- what the actors, the materializer and the user say -------------------------------------------------------

    async def progress(self, progress: Progress, number: int) -> None:
        """An actor is further; its reports are numbered."""
        with self._guard():
            self._do(self._executor.on_progress(progress, number, self._now_s()))

    async def collect(self, report: CollectReport) -> None:
        """An actor, or the materializer, has finished an epoch."""
        with self._guard():
            self._do(self._executor.on_collect(report, self._now_s()))

    async def propose_schema(self, proposal: ProposeSchema) -> None:
        """One of the first files of a source shows a schema, or cannot be read."""
        with self._guard():
            self._do(self._executor.on_schema_proposed(proposal, self._now_s()))

    async def propose_columns(self, source: str, columns: pa.Schema) -> None:
        """A file has columns that its source lacks."""
        with self._guard():
            self._do(self._executor.on_columns_proposed(source, columns, self._now_s()))

    async def views_declared(
        self, sources: frozenset[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None:
        """The materializer has analysed every view that the schemas of these sources allow; they use these columns."""
        with self._guard():
            self._group.read_columns(columns)
            self._do(self._executor.on_views_declared(sources, new_views, self._now_s(), backfilling=backfilling))

    async def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier, and numbers it, see `RunState.requests_over`."""
        with self._guard():
            self._do(self._executor.on_request(mutation, self._now_s()))
        return self._executor.requests

    async def rescale(self, fewest: int, most: int) -> int:
        """There are to be so many fetch actors.  Numbers that, see `RunState.rescalings_over`."""
        with self._guard():
            self._do(self._executor.on_rescale(fewest, most, self._now_s()))
        return self._executor.rescalings

    async def mark(self) -> int:
        """Makes a mark, see `CaughtUp`."""
        with self._guard():
            self._do(self._executor.on_mark())
        return self._executor.mark

    async def watch(self, version: int, epoch: int) -> RunState:
        """The state of the attempt `since` an epoch, as soon as it is newer than `version`, or after a second."""
        if self._executor.state.version <= version and self._failure is None:
            self._watched.clear()
            try:
                await asyncio.wait_for(self._watched.wait(), _WATCH_S)
            except TimeoutError:
                pass
        return replace(self._executor.state.since(epoch), failure=self._failure)

    async def put_tag(self, name: str, epoch: int) -> None:
        """Gives an epoch a name.  Errors as `state.upkeep.tags.put_tag`."""
        await self._store.change(partial(put_tag, name=name, epoch=epoch))

    async def delete_tag(self, name: str) -> None:
        """Takes a name away.  Errors as `state.upkeep.tags.delete_tag`."""
        await self._store.change(partial(delete_tag, name=name))

    async def clear_quarantine(self, source: str | None, epoch: int) -> int:
        """Forgets bad records.  Errors as `state.upkeep.quarantine.clear_quarantine`."""
        return await self._store.change(partial(clear_quarantine, source=source, epoch=epoch))

    async def vacuum(self) -> Vacuumed:
        """Folds, expires and vacuums whatever can be, now."""
        return await self._store.vacuum()

    async def join(self) -> None:
        """Returns when the attempt is over and every tag is moved."""
        await self._over.wait()

    # -- what the executor asks for --------------------------------------------------------------------------------

    def _do(self, instructions: Iterable[CoordinateInstruction]) -> None:
        if self._failure is not None:
            return
        for instruction in instructions:
            self._perform(instruction)
        self._watched.set()

    def _perform(self, instruction: CoordinateInstruction) -> None:
        match instruction:
            case Inject():
                self._group.inject(instruction.barrier)
            case WakeAt():
                self._wake_at(instruction.monotonic_s)
            case Commit():
                self._run(self._commit(instruction))
            case MoveTags():
                self._untagged |= instruction.views
                self._tags_due.set()
            case TellCommitted():
                self._group.committed(instruction.epoch)
            case MarkListings():
                self._group.mark(instruction.mark)
            case DecideSchema():
                self._group.decide_schema(instruction.source, instruction.schema)
            case TryNextFile():
                self._group.try_next_file(instruction.source)
            case Connect():
                self._run(self._connect(instruction))
            case PrepareMove():
                self._group.prepare_move(
                    instruction.number, instruction.before, instruction.after, rest=instruction.rest
                )
            case EndFetchers():
                for name in instruction.names:
                    self._run(self._end_fetcher(name))
            case TellScaling():
                self._log.info(
                    "rescaling", epoch=self._executor.state.epoch, before=instruction.before,
                    after=instruction.decision.num_fetchers, reason=instruction.decision.reason,
                )  # fmt: skip
            case TellLeftOut(column):
                self._log.warning(
                    "files have a column that their source does not: it is left out",
                    source=column.source, column=column.column, first_file=column.path, epoch=column.epoch,
                )  # fmt: skip
            case End():
                self._tags_due.set()
            case Fail():
                raise instruction.error
            case _:
                assert_never(instruction)

    async def _connect(self, connect: Connect) -> None:
        new = self._group.make_fetchers(connect.after)
        self._watches |= {name: self._run(self._watch_actor(name, handle)) for name, handle in new.items()}
        try:
            await self._group.connect_fetchers(new, connect.before, connect.after)
        except ray.exceptions.RayActorError as error:
            raise RunFailedError(f"an actor died while vnodes were to move: {cause_of_death(error)}") from error
        self._do(self._executor.on_connected(self._now_s()))

    async def _end_fetcher(self, name: str) -> None:
        """What is on its way to other fetch actors arrives before."""
        await self._watches.pop(name)
        if self._failure is None:
            self._group.end_fetcher(name)

    async def _commit(self, commit: Commit) -> None:
        started_s = self._now_s()
        record = await self._store.commit(commit)
        self._log.info(
            "epoch committed", epoch=record.epoch, files=record.counts.files, rows=record.counts.rows,
            commit_s=round(self._now_s() - started_s, 4),
        )  # fmt: skip
        self._do(self._executor.on_committed(record, self._now_s()))

    async def _move_tags(self) -> None:
        """Tags are a courtesy to plain Lance readers: only the latest version needs one, and no run fails for it."""
        while True:
            await self._tags_due.wait()
            self._tags_due.clear()
            views, self._untagged = self._untagged, {}
            for name, view in views.items():
                try:
                    await asyncio.to_thread(self._root.tag_committed, view)
                except NotFoundError:
                    self._log.debug(
                        "a view's version went before it was tagged", epoch=self._executor.state.epoch, view=name,
                        version=view.version,
                    )  # fmt: skip
                except Exception as error:
                    self._untagged.setdefault(name, view)
                    self._log.warning(
                        "a view's tag stays behind until the next epoch", epoch=self._executor.state.epoch, view=name,
                        error=str(error),
                    )  # fmt: skip
            if self._executor.state.phase == "stopped" and not self._tags_due.is_set():
                self._over.set()
                return

    async def _watch_actor(self, name: str, handle: ray.actor.ActorHandle) -> None:
        try:
            await handle.join.remote()
        except ray.exceptions.RayActorError as error:
            raise RunFailedError(f"the actor {name} died: {cause_of_death(error)}") from error
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None

    # -- inside --------------------------------------------------------------------------------------------------

    def _now_s(self) -> float:
        return self._clock.monotonic()

    def _wake_at(self, monotonic_s: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        delay_s = max(0.0, monotonic_s - self._now_s())
        self._wake = asyncio.get_running_loop().call_later(delay_s, self._on_wake)

    def _on_wake(self) -> None:
        self._wake = None
        with self._guard():
            self._do(self._executor.on_time(self._now_s()))

    def _run(self, work: object) -> asyncio.Task[None]:
        """Runs beside the handlers; what it raises ends the attempt."""

        async def guarded() -> None:
            with self._guard():
                await work  # type: ignore[misc]

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """The edge of the shell: an error fails the attempt.  The callers wait for no answer, and a timer has none."""
        try:
            yield
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failure is not None or self._executor.state.phase == "stopped":
            return
        self._log.warning("attempt failed", epoch=self._executor.state.epoch, error=str(error))
        if not isinstance(error, SlackwaterError):
            error = RunFailedError(f"{type(error).__name__}: {first_line(error)}")
        self._failure = error
        self._watched.set()
