"""The materializer's loop as events of the schedule, in place of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.files import FileKey
from actors.protocol.blocks import Block
from actors.protocol.run_state import Recovered
from actors.sources.pipeline_definition import MATERIALIZER
from slackwater.expectations.expectation_counts import ExpectationCounts
from slackwater.running.loop_thread import Turn
from slackwater.running.materializer_loop import MaterializerLoop
from spark_bridge.ingest.history import NotResumableError
from spark_bridge.maintenance.recorded_views import TIMERS_EVERY_S
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import RowsLostError, RunFailedError, SlackwaterError
from state.tables.records import ViewVersion
from tests.simulation.hosting.run_client import SimulatedRunClient
from tests.simulation.hosting.simulated_runtime import SimulatedRuntime, judge
from tests.simulation.model_views.model_expectations import ModelConditions, opened_rows
from tests.simulation.model_views.model_full_view import SimulatedThread
from tests.simulation.model_views.model_history import ModelHistory
from tests.simulation.model_views.model_materializer import ModelMaterializer
from tests.simulation.promises.backfill_history import history_of, offsets_of
from tests.simulation.world.file_rows import Span
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.schedule import Life, ScheduledTimer
from tests.simulation.world.simulated_threads import SimulatedThreads

if TYPE_CHECKING:
    from tests.simulation.hosting.attempt import SimulatedAttempt

_RECORD_EVERY_S = (0.0, 1.0)
_PIECE_S, _SLOW = 0.1, 0.5
_COMPACTED = 0.1


class SimulatedChange(Future[None]):
    """A change of views that a call waits for.

    Args:
        change: the change by the loop.
        threads: the calls.
        life: the life that calls.
    """

    def __init__(self, change: Future[None], threads: SimulatedThreads, life: Life) -> None:
        super().__init__()
        self._threads, self._life = threads, life
        change.add_done_callback(self._on_done)

    def result(self, timeout: float | None = None) -> None:
        self._threads.wait_until(self.done)
        return super().result(timeout)

    def _on_done(self, change: Future[None]) -> None:
        error = change.exception()
        if error is None:
            self.set_result(None)
        else:
            self.set_exception(error)
        self._threads.wake(self._life)


class SimulatedMaterializer(Life):
    """Takes turns of the real loop whenever it may have work.

    Args:
        attempt: the attempt that it is part of.
        recovered: the state where the attempt begins.
    """

    def __init__(self, attempt: SimulatedAttempt, recovered: Recovered) -> None:
        super().__init__(MATERIALIZER, attempt)
        self._attempt, self._world = attempt, attempt.world
        self._root = self._world.root(self)
        self._is_due = self._is_turning = self._is_over = False
        self._later: ScheduledTimer | None = None
        self._recovered_views = recovered.views
        attempt.process.declared.release_asked.recover(recovered.epoch)
        self._client = SimulatedRunClient(
            SimulatedRuntime(self, self._world), attempt.coordinator, recovered.merger, self.turn_soon
        )
        self._loop = MaterializerLoop(
            client=self._client,
            definitions=tuple(attempt.declared.values()),
            dropped=attempt.dropped,
            retried=attempt.process.declared.retried,
            recovered=recovered,
            schemas=self._schemas,
            has_files=lambda: attempt.state.files_in_flight > 0,
            spark_is_up=lambda: attempt.process.spark_is_up,
            make_materializer=self._make_materializer,
            clock=self._world.clock,
            on_analysed=attempt.process.declared.needs.analysed,
            record_every_s=self._world.random.choice(_RECORD_EVERY_S),
            expectations=ExpectationCounts(
                partial(opened_rows, self._root, bool(self._world.stored_rows)),
                recovered.expectations,
                recovered.views,
                lambda *_: ModelConditions(),
                attempt.process.declared.release_asked,
            ),
        )

    @property
    def written_views(self) -> Mapping[str, ViewVersion]:
        """The views of the last report that have changed since the recovery."""
        before = self._recovered_views
        return {name: view for name, view in self._client.reported_views.items() if before.get(name) != view}

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        """See `MaterializerLoop.add_view`."""
        return self._changed(self._loop.add_view(definition))

    def readers(self, *names: str) -> tuple[str, ...]:
        """See `MaterializerLoop.readers`."""
        return self._loop.readers(*names)

    def drop_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.drop_view`."""
        return self._changed(self._loop.drop_view(name))

    def retry_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.retry_view`."""
        return self._changed(self._loop.retry_view(name))

    def release(self) -> Future[None]:
        """See `MaterializerLoop.release`."""
        return self._changed(self._loop.release())

    def close(self) -> None:
        """Ends the loop."""
        self._loop.close()

    def _changed(self, change: Future[None]) -> Future[None]:
        self.turn_soon()
        return SimulatedChange(change, self._world.threads, self.process)

    def turn_soon(self) -> None:
        """Takes a turn at some moment: there may be an epoch, a schema, or Spark."""
        if not (self._is_due or self._is_turning or self._is_over):
            self._world.schedule.soon(self, self._turn)
        self._is_due = True

    def _turn(self) -> None:
        """An error ends the materializer, and one that shows a bug ends the simulation."""
        self._is_due, self._is_turning = False, True
        try:
            turn = self._loop.turn()
        except Killed:
            return
        except SlackwaterError as error:
            judge(error, self.name)
            if self.alive:
                self.end()
                self._attempt.on_failure(error)
            return
        self._is_turning = False
        self._is_over = turn is Turn.OVER
        is_busy = turn is Turn.BUSY
        if self._is_due or (is_busy and not self._is_slow()):
            self._is_due = False
            self.turn_soon()
        elif self._client.is_catching_up:
            # A piece of history takes a while; without one, time alone makes a record of progress due.
            self._turn_after(_PIECE_S if is_busy else max(_RECORD_EVERY_S))
        elif self._world.has_timers and not self._is_over:
            self._turn_after(TIMERS_EVERY_S)

    def _is_slow(self) -> bool:
        return bool(self._loop.status.backfills) and self._world.random.random() < _SLOW

    def _turn_after(self, seconds: float) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = self._world.schedule.at(self._world.clock.monotonic() + seconds, self, self.turn_soon)

    def _make_materializer(self) -> ModelMaterializer:
        return ModelMaterializer(
            views=self._attempt.process.models,
            stored_rows=self._world.stored_rows,
            root=self._root,
            clock=self._world.clock,
            random=self._world.random,
            read=self._read,
            fails=self._fails,
            open_history=self._open_history,
            thread=SimulatedThread(lambda work: self._world.schedule.soon(self, work), self.turn_soon),
        )

    def _schemas(self) -> Mapping[str, pa.Schema | None]:
        return {
            source.name: self._attempt.state.schemas.get(source.name) for source in self._attempt.definition.sources
        }

    def _read(self, block: Block) -> Sequence[Span]:
        """The rows of a block.

        Raises:
            RunFailedError: they are gone with their actor, or kill Spark.
        """
        if not self._attempt.actors.by_name[block.origin].alive:
            raise RowsLostError(f"the blocks of {block.origin} are lost")
        spans: Sequence[Span] = block.ref.spans
        contents = self._world.bucket.contents
        if any(contents[span.file].kills_in("spark", span.start, span.end) for span in spans):
            raise RunFailedError("Spark failed over the rows of an epoch: out of memory")
        return spans

    def _fails(self, view: str, span: Span) -> bool:
        return self._world.bucket.contents[span.file].fails_in(view, span.start, span.end)

    def _open_history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> ModelHistory | None:
        if self._attempt.state.epoch < epoch:
            return None
        store, sources = self._root.open(read_only=True), frozenset(plan.sources)
        versions = {each.epoch: each.state_version for each in store.epochs() if each.epoch <= epoch}
        ledger, queue = (store.rows(table, max(versions.values())) for table in ("ledger", "queue"))
        had = dict[FileKey, int]()
        if since:
            if since not in versions or self._world.random.random() < _COMPACTED:
                raise NotResumableError("the epoch is not retained, or its rows were compacted")
            had = offsets_of(store.rows("ledger", versions[since]), store.rows("queue", versions[since]), sources)
            now = offsets_of(ledger, queue, sources)
            if any(now.get(file, 0) < rows for file, rows in had.items()):
                raise NotResumableError("a file was replaced or removed")
        spans = history_of(ledger, queue, self._world.bucket.contents, sources, had)
        return ModelHistory(spans, progress, is_stored=self._world.stored_rows.keys() >= sources)
