"""The loop that takes epochs from the merger to the views, in the process with the Spark session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa

from actors.protocol.barrier import BarrierKind
from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import MaterializerCounts, ViewCounts
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered
from actors.sources.pipeline_definition import MATERIALIZER
from actors.telemetry.counted import values_of
from slackwater.commands.attempt_views import AttemptViews
from slackwater.commands.release import NOTHING_HELD
from slackwater.expectations.expectation_counts import ExpectationCounts
from slackwater.expectations.view_facts import Records
from slackwater.running.loop_thread import Turn
from slackwater.status.run_status import BackfillStatus, MaintainedStatus, RowsInMemory, ViewStatus
from spark_bridge.ingest.late_rows import late_delta
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.work_times import WorkTimes
from state.clock import Clock
from state.errors import CommandRefusedError, RunFailedError, SlackwaterError, UsageError, ViewNotFoundError
from state.tables.expectations import ViewExpectations, gate_of
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, hidden, is_view

if TYPE_CHECKING:
    from spark_bridge.changes.memory_tier import KeptSize
    from spark_bridge.changes.view import ShownView
    from spark_bridge.ingest.epoch_rows import EpochViews
    from spark_bridge.maintenance.declaration import Declaration

POLL_S = 0.05
_IDLE_S = 1.0
"""The longest wait for an epoch: news of timers comes without a call of `wake`."""
_RECORD_EVERY_S = 1.0
"""Rows of a backfill that no epoch records are written again after a crash."""
_LOOK_EVERY_S = 0.5
_STARTED, _WAITED, _DECLARED = "start of Spark", "news of a schema", "analysis of views"
_COUNTED = "expectations of views"
_REFUSALS = (UsageError, ViewNotFoundError, CommandRefusedError)
"""Errors of a command that has changed nothing."""


OnAnalysed: TypeAlias = Callable[[Mapping[str, ViewDefinition], Mapping[str, str], Sequence[str]], None]


class EpochClient(Protocol):
    """The merger and the coordinator, as the loop uses them; see `actors.hosting.run_client.RunClient`."""

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None: ...

    def wake(self) -> None: ...

    def collect(self, report: CollectReport) -> None: ...

    def views_declared(
        self, *, sources: Set[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None: ...


class ViewMaterializer(Protocol):
    """The materializer, as the loop uses it; see `spark_bridge.materializer.Materializer`."""

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None: ...

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str],
    ) -> Declaration: ...

    def run_epoch(
        self,
        epoch: int,
        blocks: Mapping[str, Sequence[Block]],
        corrections: Sequence[Correction],
        watermarks: Mapping[str, int],
    ) -> EpochViews: ...

    def backfill(self) -> bool: ...

    def tidy(self) -> None: ...

    def close(self) -> None: ...

    def shown(self) -> list[ShownView]: ...

    def columns(self) -> dict[str, tuple[str, ...]]: ...

    def has_news(self, watermarks: Mapping[str, int]) -> bool: ...

    @property
    def failing(self) -> frozenset[str]: ...

    @property
    def behind(self) -> frozenset[str]: ...

    @property
    def backfilling(self) -> dict[str, float]: ...

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]: ...

    @property
    def in_memory(self) -> Mapping[str, KeptSize]: ...

    @property
    def counts(self) -> MaterializerCounts: ...


@dataclass(frozen=True)
class _Taken:
    """An epoch that is not materialized yet.

    Args:
        times: measures the work on it.
        awaits: the reason of the wait, if it must wait.
    """

    epoch: EpochBlocks
    times: WorkTimes
    awaits: str


class MaterializerLoop:
    """Materializes one epoch after the other; an error of a turn ends the attempt.

    Between two epochs, backfills get pieces of their history; the next epoch records their progress.  No turn waits
    for Spark or for a schema: a later turn looks again.  A turn without work waits up to a second for an epoch; the
    owner of the loop calls the client's `wake` when Spark is up, schemas change or no file is in flight any more.

    Args:
        client: of the merger and the coordinator.
        dropped: views that were dropped before, each with the last epoch at that moment: those that the catalog still
            has end with the next epoch after a declaration.
        retried: views that were retried before, and views to be rebuilt, by `CatalogView.version_name`; commands and
            failures change the set.
        recovered: the state at the beginning of the attempt.
        schemas: returns the present schema of every source; None before it is decided.
        has_files: whether files are in flight, as far as this process knows.
        spark_is_up: whether the start of Spark is over; until then, epochs without rows pass, except on a root without
            views when a schema is known: its next epoch shows the views.
        make_materializer: makes the materializer, once; raises the error of a failed start.
        clock: times the records of progress.
        on_analysed: called when the views are analysed: the definitions, view → identity of each one whose sources
            have schemas, and the names of the stored views that are rebuilt, see `CatalogView.version_name`.
        record_every_s: seconds between two epochs that record progress of a backfill without new rows.
        urls: source → its URL, to which the paths of its files are relative.
        expectations: counts the rows that violate the expectations of views; None for views without any.
    """

    def __init__(
        self,
        *,
        client: EpochClient,
        definitions: Sequence[ViewDefinition],
        dropped: Mapping[str, int] = MappingProxyType({}),
        retried: set[str] | None = None,
        recovered: Recovered,
        schemas: Callable[[], Mapping[str, pa.Schema | None]],
        has_files: Callable[[], bool],
        spark_is_up: Callable[[], bool],
        make_materializer: Callable[[], ViewMaterializer],
        clock: Clock,
        on_analysed: OnAnalysed = lambda *_: None,
        record_every_s: float = _RECORD_EVERY_S,
        urls: Mapping[str, str] = MappingProxyType({}),
        expectations: ExpectationCounts | None = None,
    ) -> None:
        self._urls, self._expectations, self._on_analysed = urls, expectations, on_analysed
        self._client, self._clock, self._record_every_s = client, clock, record_every_s
        self._recovered, self._schemas, self._has_files = recovered, schemas, has_files
        self._spark_is_up, self._make_materializer = spark_is_up, make_materializer
        self._materializer: ViewMaterializer | None = None
        self._taken: _Taken | None = None
        self._views = AttemptViews(
            definitions,
            recovered.catalog_views,
            self._started,
            schemas,
            self._on_declared,
            dropped=dropped,
            retried=set() if retried is None else retried,
        )
        self._declared: Mapping[str, pa.Schema | None] | None = None
        self._changes: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._is_busy = False
        self._recorded_s = float("-inf")
        self._reported_catching_up = False
        self._watermarks: Mapping[str, int] = {}
        self._must_look, self._looked_s = False, float("-inf")
        self._datasets = _datasets(recovered.views)
        self._changed: dict[str, int] = {}
        self.status = MaintainedStatus()

    def turn(self) -> Turn:
        """Takes one epoch to the views, or a piece of history to a backfill."""
        taken = self._taken = self._taken or self._next()
        if taken is None:
            self._is_busy = self._catch_up()
            if self._must_look:
                self._look_at_views()
            return Turn.BUSY if self._is_busy else Turn.IDLE
        if not self._is_ready(taken.epoch):
            return Turn.WAITS
        report = self._materialize(taken)
        if taken.epoch.barrier.is_stop:
            self._look_at_views()  # for the last status
        if self._is_catching_up:
            self._report_if_changed()  # else no view would seem to lack the rows, once the epoch is committed
        self._client.collect(report)
        self._taken = None
        self._recorded_s = self._clock.monotonic()
        if taken.epoch.barrier.is_stop:
            return Turn.OVER
        self._report_if_changed()
        self._must_look = True
        if self._clock.monotonic() >= self._looked_s + _LOOK_EVERY_S:
            self._look_at_views()
        if self._materializer is not None:
            self._materializer.tidy()
        return Turn.BUSY

    def close(self) -> None:
        """Ends the materializer, and the changes of views that wait; no turn follows."""
        for _, change in self._changes:
            change.set_exception(RunFailedError("the attempt ended before the views could change"))
        if self._materializer is not None:
            self._materializer.close()

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        """Declares a view, or replaces one with `replace`; done when the view is analysed."""
        return self._change(partial(self._change_views, partial(self._views.add, definition)))

    def drop_view(self, name: str) -> Future[None]:
        """Ends a view with the next epoch; done when the declaration has changed."""
        return self._change(partial(self._change_views, partial(self._views.drop, name)))

    def retry_view(self, name: str) -> Future[None]:
        """Rebuilds a failed view; done when the view is analysed."""
        return self._change(partial(self._change_views, partial(self._views.retry, name)))

    def release(self) -> Future[None]:
        """Lets the next epoch accept the rows that violate expectations; done when the loop knows it."""
        return self._change(self._release)

    def changed_by(self, epoch: int) -> frozenset[str]:
        """The declared views that the epochs up to one have changed, or recorded as failed."""
        return frozenset(view for view, first in self._changed.items() if first <= epoch)

    def readers(self, *names: str) -> tuple[str, ...]:
        """The declared views that read some views, directly or indirectly, in topological order."""
        return self._views.readers(*names)

    def _change(self, change: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self._changes.append((change, future))
        self._client.wake()
        return future

    def _next(self) -> _Taken | None:
        spark_is_up = self._spark_is_up()
        if spark_is_up or not any(self._schemas().values()):
            self._declare()
        if spark_is_up:
            self._carry_out_changes()
        epoch = self._client.next_epoch(0 if self._is_busy else self._patience_s)
        if epoch is None:
            return None
        return _Taken(epoch, WorkTimes(self._clock), _WAITED if self._spark_is_up() else _STARTED)

    @property
    def _patience_s(self) -> float:
        """The longest wait for an epoch.  A piece of a backfill that ends calls no `wake`."""
        return POLL_S if self._must_look or self._is_catching_up else _IDLE_S

    # -- views -----------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Analyses the views over the decided schemas, once for each set of schemas."""
        schemas = self._schemas()
        if schemas == self._declared:
            return
        if any(schema is not None for schema in schemas.values()):
            self._views.declare()
        self._declared = schemas
        self._notify()

    def _change_views(self, change: Callable[[], bool]) -> None:
        """Changes the declaration, unless the change is one without effect."""
        schemas = self._schemas()
        if change():
            self._declared = schemas
            self._notify()

    def _on_declared(self) -> None:
        views = self._views
        self._on_analysed(views.definitions, {name: plan.identity for name, plan in views.plans.items()}, views.rebuilt)
        self._look_at_views()

    def _carry_out_changes(self) -> None:
        while self._changes:
            change, future = self._changes.popleft()
            try:
                change()
            except SlackwaterError as error:
                future.set_exception(error)
                if not isinstance(error, _REFUSALS):
                    raise  # the materializer may have declared a part of the views
            else:
                future.set_result(None)

    def _release(self) -> None:
        if self._expectations is None or gate_of(self._expectations.views.values()) != "closed":
            raise CommandRefusedError(NOTHING_HELD)
        self._expectations.release()
        self._notify(record=True)

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
        if (is_busy and (is_due or self._has_news)) or (is_due and self._has_news):
            # The requested epoch follows at once.
            self._recorded_s = self._clock.monotonic()
            self._notify(record=True)
        else:
            self._report_if_changed()
        return is_busy

    @property
    def _has_news(self) -> bool:
        """True if the next epoch changes views, even without rows."""
        if self._materializer is None:
            return False
        has_expectations = self._expectations is not None and self._expectations.has_news(self._views.definitions)
        return has_expectations or self._materializer.has_news(self._watermarks)

    @property
    def _is_record_due(self) -> bool:
        """The last epoch is older than the interval of records."""
        return self._clock.monotonic() >= self._recorded_s + self._record_every_s

    def _shown_backfills(self) -> Mapping[str, BackfillStatus]:
        assert self._materializer is not None
        blocked = self._materializer.blocked
        return {
            name: BackfillStatus(fraction, blocked.get(name, ()))
            for name, fraction in self._materializer.backfilling.items()
        }

    def _look_at_views(self) -> None:
        """Updates the status of the views, and of the rows in memory."""
        self._must_look, self._looked_s = False, self._clock.monotonic()
        shown = [] if self._materializer is None else self._materializer.shown()
        declared = {name: ViewStatus(plan.view_class) for name, plan in self._views.plans.items()}
        failed = {
            name: _failed(view)
            for name in self._views.definitions
            if (view := self._views.known.get(name)) is not None and view.error
        }
        maintained = {each.name: ViewStatus(**values_of(ViewCounts, each)) for each in shown}
        expected = {} if self._expectations is None else self._expectations.views
        kept = {} if self._materializer is None else self._materializer.in_memory
        counts = MaterializerCounts() if self._materializer is None else self._materializer.counts
        self.status = MaintainedStatus(
            views={
                name: _with_expectations(view, expected.get(name))
                for name, view in (declared | failed | maintained).items()
            },
            backfills=self.status.backfills,
            in_memory={path: RowsInMemory(size.rows, size.nbytes) for path, size in kept.items()},
            **values_of(MaterializerCounts, counts),
        )

    @property
    def _is_catching_up(self) -> bool:
        behind = frozenset[str]() if self._materializer is None else self._materializer.behind
        return bool(behind) or any(not late.missing for late in self.status.backfills.values())

    # -- the coordinator -------------------------------------------------------------------------------------------

    def _notify(self, *, record: bool = False) -> None:
        """Reports the declaration to the coordinator, which makes an epoch if there is progress to record."""
        materializer = self._materializer
        if materializer is not None:
            self.status = replace(self.status, backfills=self._shown_backfills())
        self._reported_catching_up = self._is_catching_up
        self._client.views_declared(
            sources={name for name, schema in (self._declared or {}).items() if schema is not None},
            new_views=record or self._has_news,
            # A view that waits for a schema may use more columns of the other sources.
            columns={} if materializer is None or self._views.lacks_plans else materializer.columns(),
            backfilling=self._reported_catching_up,
        )

    def _report_if_changed(self) -> None:
        if self._materializer is not None:
            self.status = replace(self.status, backfills=self._shown_backfills())
        if self._is_catching_up != self._reported_catching_up:
            self._notify()

    # -- epochs ----------------------------------------------------------------------------------------------------

    def _started(self) -> ViewMaterializer:
        if self._materializer is None:
            self._materializer = self._make_materializer()
            self._materializer.open(self._recovered.views, self._recovered.epoch, self._recovered.ingested)
        return self._materializer

    def _materialize(self, taken: _Taken) -> CollectReport:
        """Materializes an epoch that is ready."""
        epoch, times = taken.epoch, taken.times
        # The watermarks of an epoch close windows in the next epoch.
        self._watermarks = epoch.barrier.watermarks
        if self._passes(epoch):
            return CollectReport(MATERIALIZER, epoch.epoch)
        times.add(taken.awaits, 0.0)
        with times.timed(_DECLARED):
            self._declare()
        began_s = times.seconds
        done = self._started().run_epoch(epoch.epoch, epoch.blocks, epoch.corrections, epoch.barrier.watermarks)
        changed_views = self._views.on_epoch(done)
        before, self._datasets = self._datasets, _datasets(done.views)
        for name in (*done.stopped, *(name for name, each in self._datasets.items() if each != before.get(name))):
            self._changed.setdefault(declared_name(name), epoch.epoch)
        expectations = self._counted(epoch, done.views, times)
        return CollectReport(
            MATERIALIZER,
            epoch.epoch,
            late_delta(done.late, self._urls, epoch.epoch),
            views=done.views,
            changed_views=changed_views,
            dropped=done.dropped,
            expectations=expectations,
            work_s=times.seconds,
            work=(*times.spans, *(replace(span, start_s=began_s + span.start_s) for span in done.work)),
            planned_queries=done.planned_queries,
        )

    def _counted(
        self, epoch: EpochBlocks, views: Mapping[str, ViewVersion], times: WorkTimes
    ) -> Mapping[str, ViewExpectations | None]:
        declared = {name: each for name, each in self._views.definitions.items() if each.expect}
        if self._expectations is None or not (declared or self._expectations.views):
            return {}
        keys = {name: view.key for name, view in self._views.known.items()}
        records = {
            name: Records(*epoch.records(self._views.known[name].sources))
            for name, view in declared.items()
            if view.view_conditions and name in self._views.known
        }
        with times.timed(_COUNTED):
            return self._expectations.after_epoch(epoch.epoch, declared, views, keys, records)

    def _passes(self, epoch: EpochBlocks) -> bool:
        """True if the epoch changes no view: the initial one, and one without rows before Spark or a schema."""
        if epoch.barrier.kind is BarrierKind.INITIAL:
            return True
        is_empty = self._materializer is None and not epoch.blocks and not epoch.corrections
        if is_empty and epoch.bad_records and self._views.known:
            return False  # a view may expect something of the records
        return is_empty and not self._shows_first_views

    @property
    def _shows_first_views(self) -> bool:
        """True if the next epoch is the first epoch of the root with a view."""
        is_first = bool(self._views.definitions) and not any(map(is_view, self._views.known))
        return is_first and any(schema is not None for schema in self._schemas().values())

    def _is_ready(self, epoch: EpochBlocks) -> bool:
        return self._passes(epoch) or (self._spark_is_up() and self._is_known(epoch))

    def _is_known(self, epoch: EpochBlocks) -> bool:
        """True if the schemas in this process have every column of the epoch."""
        schemas = self._schemas()
        stored = [(each.source, block.schema.names) for each in epoch.corrections for block in each.stored]
        blocks = [(source, block.columns) for source, each in epoch.blocks.items() for block in each]
        for source, columns in (*blocks, *stored):
            schema = schemas[source]
            if schema is None or any(name not in schema.names for name in columns if not hidden(name)):
                return False
        return True


def _datasets(views: Mapping[str, ViewVersion]) -> dict[str, tuple[Mapping[str, int], str | None]]:
    """Recorded name → the datasets of a view, and its progress."""
    return {name: (view.datasets, view.progress) for name, view in views.items()}


def _with_expectations(view: ViewStatus, expected: ViewExpectations | None) -> ViewStatus:
    """The status with the rows that violate expectations."""
    if expected is None:
        return view
    violations = {name: each.rows for name, each in expected.expectations.items()}
    return replace(view, violations=violations, held_since=expected.held_since)


def _failed(view: CatalogView) -> ViewStatus:
    return ViewStatus(view.view_class, stale_epoch=view.stopped_epoch or None, error=view.error)
