"""The thread that takes epochs from the merger to the views, in the process with the Spark session."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.hosting.run_client import RunClient
from actors.protocol.barrier import BarrierKind
from actors.protocol.blocks import Block
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered
from actors.sources.pipeline_definition import MATERIALIZER
from slackwater.reading.selection import hidden
from slackwater.status.run_status import BackfillStatus, ViewStatus
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.materializer import Materializer
from spark_bridge.work_times import WorkTimes
from state.clock import Clock
from state.errors import RunFailedError, SlackwaterError, ViewError, ViewNotFoundError
from state.location import Location
from state.tables.stored_rows import is_view

if TYPE_CHECKING:
    from spark_bridge.hand_over.history import OpenHistory

_POLL_S = 0.05
_RECORD_EVERY_S = 1.0
"""Rows of a backfill that no epoch records are written again after a crash."""
_REFERENCE_FROM_BYTES = 1 << 20
"""A smaller block reaches Spark sooner without the object store of Ray."""
_LOOK_EVERY_S = 0.5
_STARTED, _WAITED, _DECLARED = "start of Spark", "news of a schema", "analysis of views"


class MaterializerLoop:
    """Materializes epochs in a thread of its own; an error there ends the run.

    Between two epochs, backfills get pieces of their history; the next epoch records their progress.

    Args:
        client: of the coordinator.
        root: the root with the views.
        definitions: the declared views.
        spark: the session, when it has started; until then, epochs without rows pass.
        recovered: the state at the beginning of the attempt.
        schemas: gives the present schema of every source; None before it is decided.
        has_files: whether files are in flight, as far as this process knows.
        materialized, replacing: see `Materializer`.
        open_history: gives a backfill the rows from before it.
        clock: times the records of progress.
    """

    def __init__(
        self,
        *,
        client: RunClient,
        root: Location,
        definitions: Sequence[ViewDefinition],
        spark: Future[Any],
        recovered: Recovered,
        schemas: Callable[[], Mapping[str, pa.Schema | None]],
        has_files: Callable[[], bool],
        materialized: Collection[str],
        replacing: Collection[str],
        open_history: OpenHistory,
        clock: Clock,
    ) -> None:
        self._client, self._root, self._clock = client, root, clock
        self._definitions = {definition.name: definition for definition in definitions}
        self._spark, self._recovered, self._schemas, self._has_files = spark, recovered, schemas, has_files
        self._materialized, self._replacing, self._open_history = materialized, replacing, open_history
        self._materializer: Materializer | None = None
        self._known = dict(recovered.catalog_views)
        self._declared: Mapping[str, pa.Schema | None] | None = None
        self._changes: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._is_waiting = True
        self._recorded_s = float("-inf")
        self._told_catching_up = False
        self._ended = threading.Event()
        self._view_classes: Mapping[str, str] = {}
        self._must_look, self._looked_s = False, float("-inf")
        self.views: Mapping[str, ViewStatus] = {}
        self.backfills: Mapping[str, BackfillStatus] = {}
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="materializer", daemon=True)
        self._thread.start()

    def begin_end(self) -> None:
        """Stops taking epochs."""
        self._ended.set()

    def join(self) -> None:
        """Waits for the end of the thread, and of its Spark job."""
        self._thread.join()
        for _, change in self._changes:
            change.set_exception(RunFailedError("the attempt ended before the views could change"))
        if self._materializer is not None:
            self._materializer.close()

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        """Declares a view, or replaces one with `replace`; done when the view is analysed."""
        return self._change(partial(self._add, definition))

    def drop_view(self, name: str) -> Future[None]:
        """Ends a view with the next epoch; done when the declaration has changed."""
        return self._change(partial(self._drop, name))

    def _change(self, change: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self._changes.append((change, future))
        return future

    def _run(self) -> None:
        try:
            is_busy = False
            while not self._ended.is_set():
                if self._spark.done() or not any(self._schemas().values()):
                    self._declare()
                if self._spark.done():
                    self._carry_out_changes()
                epoch = self._client.next_epoch(0 if is_busy else _POLL_S)
                if epoch is None:
                    is_busy = self._catch_up()
                    if self._must_look:
                        self._look_at_views()
                    continue
                report = self._materialize(epoch)
                if report is None:
                    return
                self._client.collect(report)
                self._recorded_s = self._clock.monotonic()
                if epoch.barrier.is_stop:
                    return
                self._tell_if_changed()
                self._must_look = True
                if self._clock.monotonic() >= self._looked_s + _LOOK_EVERY_S:
                    self._look_at_views()
                if self._materializer is not None:
                    self._materializer.tidy()
        except Exception as error:
            self.failure = error

    # -- views -----------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Analyses the views over the decided schemas, once for each set of schemas."""
        schemas = self._schemas()
        if schemas == self._declared:
            return
        if any(schema is not None for schema in schemas.values()):
            self._declare_all(self._definitions, schemas)
        self._declared = schemas
        self._tell()

    def _declare_all(self, definitions: Mapping[str, ViewDefinition], schemas: Mapping[str, pa.Schema | None]) -> None:
        declaration = self._started().declare(list(definitions.values()), schemas, self._known)
        self._definitions = dict(definitions)
        self._is_waiting = bool(declaration.waiting)
        self._view_classes = {name: plan.view_class for name, plan in declaration.plans.items()}
        self._look_at_views()

    def _carry_out_changes(self) -> None:
        while self._changes:
            change, future = self._changes.popleft()
            try:
                change()
            except SlackwaterError as error:
                future.set_exception(error)
            else:
                future.set_result(None)

    def _add(self, definition: ViewDefinition) -> None:
        if definition == self._definitions.get(definition.name):
            return
        if definition.name in self._definitions and not definition.replace:
            raise ViewError(
                f"view {definition.name} is already declared: give the new view another name, or replace=True"
            )
        schemas = self._schemas()
        self._declare_all({**self._definitions, definition.name: definition}, schemas)
        self._declared = schemas
        self._tell()

    def _drop(self, name: str) -> None:
        if name not in self._definitions and name not in self._known:
            names = ", ".join(sorted({*self._definitions, *filter(is_view, self._known)})) or "none"
            raise ViewNotFoundError(f"there is no view {name!r} to drop; the views are: {names}")
        self._started().drop(name)
        self._declare_all({key: each for key, each in self._definitions.items() if key != name}, self._schemas())
        self._tell()

    # -- history ---------------------------------------------------------------------------------------------------

    def _catch_up(self) -> bool:
        """Reads the next piece of a backfill.  Returns False without a backfill."""
        materializer = self._materializer
        if materializer is None:
            return False
        if self._has_files() and not self._is_record_due:
            # A piece that begins now would delay the epoch of these files.
            return False
        is_busy = materializer.backfill()
        is_due = self._is_record_due
        if (is_busy and (is_due or materializer.has_news)) or (is_due and materializer.has_news):
            # The requested epoch follows at once.
            self._recorded_s = self._clock.monotonic()
            self._tell(record=True)
        else:
            self._tell_if_changed()
        return is_busy

    @property
    def _is_record_due(self) -> bool:
        """The last epoch is older than the interval of records."""
        return self._clock.monotonic() >= self._recorded_s + _RECORD_EVERY_S

    def _block(self, source: str, table: pa.Table) -> Block:
        reference = table if table.nbytes < _REFERENCE_FROM_BYTES else self._client.put(table)
        return Block(MATERIALIZER, source, reference, table.num_rows, table.nbytes, tuple(table.column_names))

    def _shown_backfills(self) -> Mapping[str, BackfillStatus]:
        assert self._materializer is not None
        blocked = self._materializer.blocked
        return {
            name: BackfillStatus(fraction, blocked.get(name, ()))
            for name, fraction in self._materializer.backfilling.items()
        }

    def _look_at_views(self) -> None:
        """Updates the status of the views."""
        self._must_look, self._looked_s = False, self._clock.monotonic()
        shown = [] if self._materializer is None else self._materializer.shown()
        declared = {name: ViewStatus(view_class) for name, view_class in self._view_classes.items()}
        self.views = declared | {each.name: ViewStatus(each.view_class, each.rows, each.behind_s) for each in shown}

    @property
    def _is_catching_up(self) -> bool:
        behind = frozenset[str]() if self._materializer is None else self._materializer.behind
        return bool(behind) or any(not late.missing for late in self.backfills.values())

    # -- the coordinator -------------------------------------------------------------------------------------------

    def _tell(self, *, record: bool = False) -> None:
        """Reports the declaration to the coordinator, which makes an epoch if there is progress to record."""
        materializer = self._materializer
        if materializer is not None:
            self.backfills = self._shown_backfills()
        self._told_catching_up = self._is_catching_up
        self._client.views_declared(
            sources={name for name, schema in (self._declared or {}).items() if schema is not None},
            new_views=record or (materializer is not None and materializer.has_news),
            # A view that waits for a schema may use more columns of the other sources.
            columns={} if materializer is None or self._is_waiting else materializer.columns(),
            backfilling=self._told_catching_up,
        )

    def _tell_if_changed(self) -> None:
        if self._materializer is not None:
            self.backfills = self._shown_backfills()
        if self._is_catching_up != self._told_catching_up:
            self._tell()

    # -- epochs ----------------------------------------------------------------------------------------------------

    def _started(self) -> Materializer:
        if self._materializer is None:
            self._materializer = Materializer(
                self._spark.result(),
                self._root,
                self._clock,
                materialized=self._materialized,
                replacing=self._replacing,
                open_history=self._open_history,
                put_block=self._block,
            )
            self._materializer.open(self._recovered.views, self._recovered.epoch, self._recovered.ingested)
        return self._materializer

    def _materialize(self, epoch: EpochBlocks) -> CollectReport | None:
        """Materializes an epoch; None if the attempt ends before."""
        if epoch.barrier.kind is BarrierKind.INITIAL or (
            self._materializer is None and not epoch.blocks and not epoch.corrections
        ):
            return CollectReport(MATERIALIZER, epoch.epoch)
        times = WorkTimes(self._clock)
        with times.timed(_WAITED if self._spark.done() else _STARTED):
            while not self._spark.done() or not self._is_known(epoch):
                if self._ended.wait(_POLL_S):
                    return None
        with times.timed(_DECLARED):
            self._declare()
        began_s = times.seconds
        done = self._started().run_epoch(epoch.epoch, epoch.blocks, epoch.corrections)
        self._known = {name: view for name, view in self._known.items() if name not in done.dropped}
        self._known |= {view.name: view for view in done.created}
        return CollectReport(
            MATERIALIZER,
            epoch.epoch,
            views=done.views,
            created=done.created,
            dropped=done.dropped,
            work_s=times.seconds,
            work=(*times.spans, *(replace(span, start_s=began_s + span.start_s) for span in done.work)),
        )

    def _is_known(self, epoch: EpochBlocks) -> bool:
        """Whether the schemas in this process have every column of the epoch."""
        schemas = self._schemas()
        stored = [(each.source, block.schema.names) for each in epoch.corrections for block in each.stored]
        blocks = [(source, block.columns) for source, each in epoch.blocks.items() for block in each]
        for source, columns in (*blocks, *stored):
            schema = schemas[source]
            if schema is None or any(name not in schema.names for name in columns if not hidden(name)):
                return False
        return True
