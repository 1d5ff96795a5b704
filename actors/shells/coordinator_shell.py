"""The coordinator of one attempt: hosts a `CoordinateExecutor`, commits epochs, and watches the actors.

Every actor that gets a reference to it loads this module: code that the coordinator alone needs (recovery, the store,
all other actors) is loaded at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import pyarrow as pa

from actors.coordination.caught_up import FIRST_MARK
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
    ReportCommitted,
    ReportScaling,
    ReportUnmatched,
    TryNextFile,
)
from actors.protocol.barrier import Mutation
from actors.protocol.instructions import End, Fail, ProposeSchema, WakeAt
from actors.protocol.reports import CollectReport, Progress
from actors.protocol.run_state import Recovered, RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.shells.actor_shell import ActorShell
from actors.shells.runtime import Actor, ActorDiedError, Event, Runtime
from actors.shells.shell import Shell
from actors.sources.pipeline_definition import COORDINATOR, PipelineDefinition
from actors.telemetry.text import first_line
from state.epoch import next_epoch
from state.errors import NotFoundError, RunFailedError, SlackwaterError
from state.tables.records import UnmatchedColumn, ViewVersion

if TYPE_CHECKING:
    from actors.shells.actor_group import ActorFactory
    from actors.shells.owned_store import OwnedRoot
    from state.store.store import StateStore
    from state.upkeep.vacuum import Vacuumed

_WATCH_S = 1.0
# A file may have thousands of columns that its source lacks.
_MOST_COLUMNS = 100
_Result = TypeVar("_Result")


class CoordinatorShell(Shell[CoordinateInstruction]):
    """One attempt of a pipeline's run.

    Args:
        plan: the results of the attempts before this one.
        root: the place that the pipeline writes to.
        make_actors: makes the factory of the attempt's actors, when the attempt starts.
        pinned: the epochs that readers hold at this moment.
        upkeep_interval_s: see `Housekeeping`; None for its default.
        patience_s: see `Rescaling`; None for its default.
    """

    def __init__(
        self,
        *,
        runtime: Runtime,
        definition: PipelineDefinition,
        plan: AttemptPlan,
        root: OwnedRoot,
        make_actors: Callable[[], ActorFactory],
        pinned: Callable[[], Collection[int]] = frozenset,
        upkeep_interval_s: float | None = None,
        patience_s: float | None = None,
    ) -> None:
        super().__init__(COORDINATOR, runtime)
        self._definition = definition if plan.files_at_once is None else definition.cautious()
        self._plan, self._root, self._make_actors, self._pinned = plan, root, make_actors, pinned
        self._upkeep = {} if upkeep_interval_s is None else {"upkeep_interval_s": upkeep_interval_s}
        self._patience = {} if patience_s is None else {"patience_s": patience_s}
        self._watched, self._over, self._tags_due = runtime.event(), runtime.event(), runtime.event()
        self._untagged: dict[str, ViewVersion] = {}
        self._lists = False
        self._reported_columns = 0
        self._watches: dict[str, Event] = {}

    async def start(self) -> Recovered:
        """Takes the root over, recovers the committed state, and starts the flow."""
        from actors.coordination.coordinate_executor import CoordinateExecutor
        from actors.recovery.recovery import recover
        from actors.shells.actor_group import ActorGroup
        from actors.shells.owned_store import OwnedStore

        recovered = await self._runtime.in_thread(partial(recover, self._definition, self._plan, self._root))
        self._store = OwnedStore(
            recovered.store, self._root, self._runtime, self._definition.retention, self._pinned, **self._upkeep
        )
        self._executor = CoordinateExecutor(
            definition=self._definition,
            plan=self._plan,
            recovered=recovered,
            next_epoch=partial(next_epoch, self._runtime.clock, term=recovered.head.term),
            now_s=self.now_s(),
            **self._patience,
        )
        self._group = ActorGroup(
            runtime=self._runtime,
            actors=self._make_actors(),
            definition=self._definition,
            mapping=self._executor.mapping,
            recovered=recovered,
            open_sources=self._executor.open_schemas,
            poisoned=recovered.poisoned(self._plan.poisoned),
            spent=self._plan.spent,
            stored=self._executor.stored_paths,
        )
        try:
            await self._group.connect(recovered.seen)
        except ActorDiedError as error:
            raise error.ending("an actor died before it was connected") from error
        self.beside(self._move_tags)
        self.beside(self._store.keep_house)
        self._watch(self._group.actors)
        self._lists = True
        with self.guard():
            self.do(self._executor.start(self.now_s()))
        return Recovered(
            term=recovered.head.term,
            epoch=recovered.head.epoch,
            merger=self._group.merger,
            views=recovered.views,
            catalog_views=recovered.catalog.views,
            schemas=recovered.catalog.schemas,
            ingested=recovered.ingested,
            finished=recovered.finished,
            expectations=dict(recovered.catalog.expectations),
        )

    # -- calls of the actors, the materializer and the user -------------------------------------------------------

    async def progress(self, progress: Progress, number: int) -> None:
        """An actor is further; its reports are numbered."""
        with self.guard():
            self.do(self._executor.on_progress(progress, number, self.now_s()))

    async def collect(self, report: CollectReport) -> None:
        """An actor, or the materializer, has finished an epoch."""
        with self.guard():
            self.do(self._executor.on_collect(report, self.now_s()))

    async def propose_schema(self, proposal: ProposeSchema) -> None:
        """One of the first files of a source shows a schema, or cannot be read."""
        with self.guard():
            self.do(self._executor.on_schema_proposed(proposal, self.now_s()))

    async def propose_columns(self, source: str, columns: pa.Schema) -> None:
        """A file has columns that its source lacks."""
        with self.guard():
            self.do(self._executor.on_columns_proposed(source, columns, self.now_s()))

    async def views_declared(
        self, sources: frozenset[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None:
        """The materializer has analysed every view that the schemas of these sources allow; they use these columns."""
        with self.guard():
            self._group.read_columns(columns)
            self.do(self._executor.on_views_declared(sources, new_views, self.now_s(), backfilling=backfilling))

    async def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier.  Returns its number, see `RunState.requests_over`."""
        with self.guard():
            self.do(self._executor.on_request(mutation, self.now_s()))
        return self._executor.requests

    async def rescale(self, fewest: int, most: int) -> int:
        """Sets the bounds of the number of fetch actors.  Returns its number, see `RunState.rescalings_over`."""
        with self.guard():
            self.do(self._executor.on_rescale(fewest, most, self.now_s()))
        return self._executor.rescalings

    async def mark(self) -> int:
        """Makes a mark, see `CaughtUp`; the first one covers all calls before the first listings."""
        if not self._lists:
            return FIRST_MARK
        with self.guard():
            self.do(self._executor.on_mark())
        return self._executor.mark

    async def watch(self, version: int, epoch: int) -> RunState:
        """The state of the attempt `since` an epoch, as soon as it is newer than `version`, or after a second."""
        if self._executor.state.version <= version and self._failure is None:
            self._watched.clear()
            await self._runtime.wait(self._watched, _WATCH_S)
        return replace(self._executor.state.since(epoch), failure=self._failure)

    async def change(self, action: Callable[[StateStore], _Result]) -> _Result:
        """Changes the store between two commits.  Errors as the action."""
        return await self._store.change(action)

    async def vacuum(self) -> Vacuumed:
        """Folds, expires and vacuums everything that can be, now."""
        return await self._store.vacuum()

    async def join(self) -> None:
        """Returns when the attempt is over and every tag is moved."""
        await self._over.wait()

    # -- instructions ---------------------------------------------------------------------------------------------

    def on_time(self) -> list[CoordinateInstruction]:
        return self._executor.on_time(self.now_s())

    def after_instructions(self) -> None:
        self._watched.set()

    def perform(self, instruction: CoordinateInstruction) -> None:
        match instruction:
            case Inject():
                self._group.inject(instruction.barrier)
            case WakeAt():
                self.wake_at(instruction.monotonic_s)
            case Commit():
                self.beside(self._commit, instruction)
            case MoveTags():
                self._untagged |= instruction.views
                self._tags_due.set()
            case ReportCommitted():
                self._group.committed(instruction.epoch)
            case MarkListings():
                self._group.mark(instruction.mark, at_once=instruction.at_once)
            case DecideSchema():
                self._group.decide_schema(instruction.source, instruction.schema)
            case TryNextFile():
                self._group.try_next_file(instruction.source)
            case Connect():
                self.beside(self._connect, instruction)
            case PrepareMove():
                self._group.prepare_move(
                    instruction.number, instruction.before, instruction.after, rest=instruction.rest
                )
            case EndFetchers():
                for name in instruction.names:
                    self.beside(self._end_fetcher, name)
            case ReportScaling():
                self._log.info(
                    "rescaling", epoch=self._executor.state.epoch, before=instruction.before,
                    after=instruction.decision.num_fetchers, reason=instruction.decision.reason,
                )  # fmt: skip
            case ReportUnmatched(column):
                self._report_column(column)
            case End():
                self._tags_due.set()
            case Fail():
                raise instruction.error
            case _:
                assert_never(instruction)

    def _report_column(self, column: UnmatchedColumn) -> None:
        """Logs a column that differs between the files and their source; of very many only the first."""
        self._reported_columns += 1
        if self._reported_columns > _MOST_COLUMNS:
            if self._reported_columns == _MOST_COLUMNS + 1:
                self._log.warning(
                    "more columns differ between files and their sources: `slackwater status` lists them",
                    source=column.source, epoch=column.epoch,
                )  # fmt: skip
            return
        if column.is_missing:
            self._log.warning(
                "files lack a column of their source: it is null in their rows",
                source=column.source, column=column.column, first_file=column.path, epoch=column.epoch,
            )  # fmt: skip
        elif column.was is not None:
            self._log.warning(
                "a column of files has another name in their source",
                source=column.source, column=column.column, in_file=column.was, first_file=column.path,
                epoch=column.epoch,
            )  # fmt: skip
        else:
            self._log.warning(
                "files have a column that their source does not: it is left out",
                source=column.source, column=column.column, first_file=column.path, epoch=column.epoch,
            )  # fmt: skip

    def fail(self, error: Exception) -> None:
        """Fails the attempt, unless it is over."""
        if self._failure is not None or self._executor.state.phase == "stopped":
            return
        self._log.warning("attempt failed", epoch=self._executor.state.epoch, error=str(error))
        if isinstance(error, SlackwaterError):
            self._failure = error
        else:
            self._failure = RunFailedError(f"{type(error).__name__}: {first_line(error)}")
        self._watched.set()
        self._runtime.on_failure(error)

    async def _connect(self, connect: Connect) -> None:
        new = self._group.make_fetchers(connect.after)
        self._watch(new)
        try:
            await self._group.connect_fetchers(new, connect.before, connect.after)
        except ActorDiedError as error:
            raise error.ending("an actor died while vnodes were to move") from error
        self.do(self._executor.on_connected(self.now_s()))

    async def _end_fetcher(self, name: str) -> None:
        """Messages on the way to other fetch actors arrive before."""
        await self._watches.pop(name).wait()
        if self._failure is None:
            self._group.end_fetcher(name)

    async def _commit(self, commit: Commit) -> None:
        started_s = self.now_s()
        record = await self._store.commit(commit)
        self._log.info(
            "epoch committed", epoch=record.epoch, files=record.counts.files, rows=record.counts.rows,
            commit_s=round(self.now_s() - started_s, 4),
        )  # fmt: skip
        self.do(self._executor.on_committed(record, self.now_s()))

    async def _move_tags(self) -> None:
        """Tags are a courtesy to plain Lance readers: only the latest version needs one, and no run fails for it."""
        while True:
            await self._tags_due.wait()
            self._tags_due.clear()
            views, self._untagged = self._untagged, {}
            for name, view in views.items():
                try:
                    await self._runtime.in_thread(partial(self._root.tag_committed, view))
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

    def _watch(self, actors: Mapping[str, Actor[Any]]) -> None:
        self._watches |= {name: self.beside(self._watch_actor, name, actor) for name, actor in actors.items()}

    async def _watch_actor(self, name: str, actor: Actor[ActorShell[Any]]) -> None:
        try:
            await self._runtime.call(actor, ActorShell.join)
        except ActorDiedError as error:
            self._executor.on_death(name)
            raise error.ending(f"the actor {name} died") from error
