"""One attempt of a run: a coordinator with its actors, and the loop that takes epochs to the views on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pyarrow as pa

from actors.hosting.run_client import RunClient
from actors.protocol.barrier import Mutation
from actors.protocol.run_state import Recovered, RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import event_columns, replacing, row_keys
from slackwater.backfill.backfill_input import view_history
from slackwater.expectations.expectation_counts import ExpectationCounts
from slackwater.expectations.release import Release
from slackwater.expectations.view_rows import StoredRows
from slackwater.running.loop_thread import LoopThread
from slackwater.running.materializer_loop import POLL_S, MaterializerLoop, OnAnalysed
from slackwater.running.spark_application import SparkApplication
from slackwater.status.run_status import MaintainedStatus
from spark_bridge.ingest.history import History
from spark_bridge.materializer import Materializer
from spark_bridge.plans.row_conditions import RowConditions
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock


class Attempt:
    """An attempt lasts from a recovery to a stop or a failure.  Its handles cannot write into a later attempt.

    Args:
        plan: the result of the earlier attempts.
        dropped, retried: see `MaterializerLoop`.
        spark: the Spark application, which outlives the attempt.
        clock, on_analysed: see `MaterializerLoop`.
    """

    def __init__(
        self,
        *,
        definition: PipelineDefinition,
        plan: AttemptPlan,
        views: Sequence[ViewDefinition],
        dropped: Mapping[str, int],
        retried: set[str],
        release: Release,
        spark: SparkApplication,
        clock: Clock,
        on_analysed: OnAnalysed = lambda *_: None,
    ) -> None:
        self._on_analysed = on_analysed
        self.plan = plan
        self._definition, self._views, self._dropped, self._retried = definition, views, dropped, retried
        self._release, self._spark, self._clock = release, spark, clock
        self._client = RunClient(definition, plan)
        self._loop: MaterializerLoop | None = None
        self._thread: LoopThread | None = None
        self._materializer: Materializer | None = None
        self.state = RunState(
            version=0, phase="starting", term=0, epoch=plan.so_far.epoch, epochs=plan.so_far.epochs,
            totals=plan.so_far.counts,
        )  # fmt: skip
        self.recovered: Recovered | None = None

    @property
    def is_running(self) -> bool:
        """The attempt has recovered, and accepts mutations."""
        return self._loop is not None

    @property
    def maintained(self) -> MaintainedStatus:
        """The maintained views, their backfills, and the counts of the materializer."""
        return MaintainedStatus() if self._loop is None else self._loop.status

    @property
    def changed_views(self) -> frozenset[str]:
        """The views that committed epochs of the attempt have changed, or show as failed."""
        if self._loop is None or self.recovered is None:
            return frozenset()
        failed = {name for name, view in self.recovered.catalog_views.items() if view.error is not None}
        return self._loop.changed_by(self.state.epoch).union(failed.difference(self._retried))

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        """See `MaterializerLoop.add_view`; the attempt runs."""
        assert self._loop is not None
        return self._loop.add_view(definition)

    def drop_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.drop_view`; the attempt runs."""
        assert self._loop is not None
        return self._loop.drop_view(name)

    def retry_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.retry_view`; the attempt runs."""
        assert self._loop is not None
        return self._loop.retry_view(name)

    def release(self) -> Future[None]:
        """See `MaterializerLoop.release`; the attempt runs."""
        assert self._loop is not None
        return self._loop.release()

    def readers(self, *names: str) -> tuple[str, ...]:
        """See `MaterializerLoop.readers`; the attempt runs."""
        assert self._loop is not None
        return self._loop.readers(*names)

    def start(self) -> Recovered:
        """Takes the root over, recovers, and starts the flow.  Errors as `actors.recovery.recovery.recover`."""
        self.recovered = recovered = self._client.start()
        self.state = self._client.watch()
        self._release.recover(recovered.epoch)
        self._loop = MaterializerLoop(
            client=self._client,
            definitions=self._views,
            dropped=self._dropped,
            retried=self._retried,
            recovered=recovered,
            schemas=self._schemas,
            has_files=lambda: self.state.files_in_flight > 0,
            spark_is_up=self._spark.session.done,
            make_materializer=partial(self._make_materializer, self._spark.session),
            clock=self._clock,
            on_analysed=self._on_analysed,
            expectations=ExpectationCounts(
                partial(StoredRows, self._definition.root),
                recovered.expectations,
                recovered.views,
                self._make_conditions,
                self._release,
            ),
            urls={source.name: source.location.url for source in self._definition.sources},
        )
        self._thread = LoopThread("materializer", self._loop.turn, POLL_S)
        self._spark.session.add_done_callback(lambda _: self._client.wake())
        return recovered

    def follow(self, on_state: Callable[[RunState], None]) -> None:
        """Returns when the attempt has stopped gracefully.

        Args:
            on_state: called with every state that differs from the last, at least once a second.

        Raises:
            SlackwaterError: the failure of the attempt.
        """
        assert self._thread is not None
        while self.state.phase != "stopped":
            before, self.state = self.state, self._client.watch(self.state)
            has_finished = before.files_in_flight > 0 and not self.state.files_in_flight
            if has_finished or self.state.schemas != before.schemas:
                self._client.wake()
            on_state(self.state)
            failure = self.state.failure or self._thread.failure or self._spark.failure
            if failure is not None:
                raise self._spark.reason_of(failure)
        self._client.join()

    @property
    def client(self) -> RunClient:
        """The client of the coordinator, for work on the root."""
        return self._client

    def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier.  Returns its number, see `RunState.requests_over`."""
        return self._client.request(mutation)

    def rescale(self, fewest: int, most: int) -> int:
        """Requests a number of fetch actors.  Returns the number of the request, see `RunState.rescalings_over`."""
        return self._client.rescale(fewest, most)

    def mark(self, timeout_s: float | None) -> int | None:
        """Makes a mark, also while the attempt starts, see `RunClient.mark`."""
        return self._client.mark(timeout_s)

    def end(self) -> None:
        """Ends the attempt; returns when no part of it computes or writes any more."""
        if self._loop is not None and self._thread is not None:
            self._thread.begin_end()
            self._client.wake()
            if self.state.phase != "stopped":
                self._spark.cancel_jobs()
            self._thread.join()
            self._loop.close()
        self._client.close()

    def _make_materializer(self, session: Future[Any]) -> Materializer:
        self._materializer = Materializer(
            session.result(),
            self._definition.root,
            self._clock,
            materialized=[source.name for source in self._definition.sources if source.materialize],
            replacing=replacing(self._definition.sources),
            open_history=self._open_history,
            put_block=self._client.put_block,
            join_memory_bytes=self._definition.join_memory_bytes,
            backfill_weight=self._definition.backfill_weight,
            keys=row_keys(self._definition.sources),
            event_times=event_columns(self._definition.sources),
            suspended=self.plan.suspended,
            alone_s=self.plan.alone_s,
        )
        return self._materializer

    def _make_conditions(self, view: str, schema: pa.Schema, conditions: Mapping[str, str]) -> RowConditions:
        assert self._materializer is not None, "it has written the rows"
        return self._materializer.conditions(view, schema, conditions)

    def _open_history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> History | None:
        if self.state.epoch < epoch:
            return None
        return view_history(self._definition, self._clock, self._schemas(), plan, since, epoch, progress)

    def _schemas(self) -> Mapping[str, pa.Schema | None]:
        """Source → schema; None before it is decided."""
        return {source.name: self.state.schemas.get(source.name) for source in self._definition.sources}
