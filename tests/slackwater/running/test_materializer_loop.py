"""Tests of the materializer's loop, turn by turn: no turn waits for Spark, a schema or an epoch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from actors.protocol.barrier import Barrier, BarrierKind, Stop
from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import MaterializerCounts
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered
from slackwater.expectations.expectation_counts import Conditions, ExpectationCounts
from slackwater.expectations.release import Release
from slackwater.expectations.view_rows import StoredRows
from slackwater.running.loop_thread import Turn
from slackwater.running.materializer_loop import MaterializerLoop
from slackwater.status.run_status import BackfillStatus, RowsInMemory, ViewStatus
from spark_bridge.changes.memory_tier import KeptSize
from spark_bridge.changes.view import ShownView
from spark_bridge.ingest.epoch_rows import EpochViews, Stopped
from spark_bridge.maintenance.declaration import Declaration, Start
from spark_bridge.plans.view_definition import ON_CLOSE, ViewDefinition
from state.clock import ManualClock
from state.epoch import EpochPair
from state.errors import CommandRefusedError, RunFailedError, ViewError, ViewNotFoundError
from state.location import Location
from state.tables.epoch_trace import Span
from state.tables.expectations import Expectation, ViewExpectations
from state.tables.records import CatalogView, ViewVersion

SCHEMA = pa.schema([("x", pa.int64())])
ROWS = Block("fetch-0", "s", None, 1, 8, ("x",))
VIEW = ViewDefinition("v", query="SELECT x FROM s")
CREATED = CatalogView("v", "append", "SELECT x FROM s", "v", ("s",), (), 2)


class ScriptedMaterializer:
    """A materializer that notes its calls; the test sets its progress."""

    failing = frozenset[str]()
    behind = frozenset[str]()

    def __init__(self, calls: list[str], clock: ManualClock) -> None:
        self.calls, self._clock = calls, clock
        self.pieces, self.rows = 0, 7
        self.closed: Mapping[str, int] = {}
        self.backfilling: dict[str, float] = {}
        self.blocked: dict[str, tuple[str, ...]] = {}
        self.in_memory: dict[str, KeptSize] = {}
        self.counts = MaterializerCounts()
        self.known: Mapping[str, CatalogView] = {}
        self.error: ViewError | None = None
        self.broken: dict[str, str] = {}
        self.stopped: dict[str, Stopped] = {}
        self.created: tuple[CatalogView, ...] = (CREATED,)

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        self.calls.append("open")

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str],
    ) -> Declaration:
        if self.error is not None:
            raise self.error
        self.known = known
        self.calls += [f"drop {each}" for each in dropped]
        self.calls.append(f"declare {' '.join(each.name for each in definitions)}".rstrip())
        plans: Any = {
            each.name: SimpleNamespace(view_class="append", views=(), identity="i")
            for each in definitions
            if each.name not in self.broken
        }
        starts = {each.name: Start.FAILS if each.name in self.broken else Start.CONTINUES for each in definitions}
        return Declaration(plans, starts, broken=self.broken)

    def run_epoch(
        self,
        epoch: int,
        blocks: Mapping[str, Sequence[Block]],
        corrections: Sequence[Correction],
        watermarks: Mapping[str, int],
    ) -> EpochViews:
        self.calls.append(f"views of {epoch}")
        self.closed = watermarks
        self._clock.advance(0.5)
        return EpochViews({"v": ViewVersion("v", "v", epoch)}, self.created, (), (), self.stopped)

    def has_news(self, watermarks: Mapping[str, int]) -> bool:
        return watermarks != self.closed

    def backfill(self) -> bool:
        self.pieces -= self.pieces > 0
        self.calls.append("piece")
        return self.pieces > 0

    def tidy(self) -> None:
        self.calls.append("tidy")

    def close(self) -> None:
        self.calls.append("close")

    def shown(self) -> list[ShownView]:
        return [] if self.stopped else [ShownView("append", self.rows, name="v")]

    def columns(self) -> dict[str, tuple[str, ...]]:
        return {"s": ("x",)}


HELD = ViewExpectations("v", "hold", {"positive": Expectation("x > 0", rows=2)}, held_since=1)


def no_conditions(view: str, schema: pa.Schema, conditions: Mapping[str, str]) -> Conditions:
    raise AssertionError(f"rows of view {view} are read")


class Looped:
    """A loop with everything around it, and its calls in their order."""

    def __init__(
        self,
        *,
        spark_is_up: bool = True,
        schema: pa.Schema | None = SCHEMA,
        known: tuple[CatalogView, ...] = (),
        dropped: Mapping[str, int] = MappingProxyType({}),
        retried: frozenset[str] = frozenset(),
        expected: tuple[ViewExpectations, ...] = (),
    ) -> None:
        self.retried = {*retried}
        counts = ExpectationCounts(
            partial(StoredRows, Location("/nowhere")),
            {each.view: each for each in expected},
            {each.view: ViewVersion(each.view, each.view, 1) for each in expected},
            no_conditions,
            Release(),
        )
        self.clock = ManualClock()
        self.calls: list[str] = []
        self.analysed: list[tuple[list[str], Mapping[str, str], Sequence[str]]] = []
        self.epochs: list[EpochBlocks] = []
        self.reports: list[CollectReport] = []
        self.told: list[tuple[bool, bool]] = []
        self.waits: list[float] = []
        self.wakes = 0
        self.on_report: Callable[[], None] = lambda: None
        self.spark_is_up, self.schema, self.has_files = spark_is_up, schema, False
        self.materializer = ScriptedMaterializer(self.calls, self.clock)
        self.loop = MaterializerLoop(
            client=self,
            definitions=[VIEW],
            dropped=dropped,
            retried=self.retried,
            recovered=Recovered(1, 1, None, {}, {view.name: view for view in known}, {}, frozenset(), {}),
            schemas=lambda: {"s": self.schema},
            has_files=lambda: self.has_files,
            spark_is_up=lambda: self.spark_is_up,
            make_materializer=lambda: self.materializer,
            clock=self.clock,
            on_analysed=lambda *analysed: self.analysed.append(([*analysed[0]], *analysed[1:])),
            expectations=counts,
        )

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None:
        self.waits.append(timeout_s)
        return self.epochs.pop(0) if self.epochs else None

    def wake(self) -> None:
        self.wakes += 1

    def collect(self, report: CollectReport) -> None:
        self.calls.append(f"report of {report.epoch}")
        self.reports.append(report)
        self.on_report()

    def views_declared(
        self, *, sources: Set[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None:
        self.told.append((new_views, backfilling))

    def turns(self) -> list[Turn]:
        """Takes turns while each brings something forward; returns their outcomes."""
        outcomes = [self.loop.turn()]
        while outcomes[-1] is Turn.BUSY:
            outcomes.append(self.loop.turn())
        return outcomes

    def done(self, change: Future[None]) -> BaseException | None:
        """The error of a change that the next turn carries out."""
        self.loop.turn()
        return change.exception(timeout=0)


def epoch(
    number: int,
    *blocks: Block,
    kind: BarrierKind = BarrierKind.CHECKPOINT,
    stops: bool = False,
    watermarks: Mapping[str, int] = MappingProxyType({}),
    bad: int = 0,
) -> EpochBlocks:
    barrier = Barrier(EpochPair(number, number + 1), kind, Stop() if stops else None, watermarks=watermarks)
    return EpochBlocks(barrier, {"s": blocks} if blocks else {}, bad_records={"s": bad} if bad else {})


def test_an_epoch_is_reported_when_its_views_are_written() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS)]
    assert looped.turns() == [Turn.BUSY, Turn.IDLE]
    assert looped.calls == ["open", "declare v", "views of 2", "report of 2", "tidy", "piece"]
    (report,) = looped.reports
    assert (report.views, report.changed_views, report.work_s) == ({"v": ViewVersion("v", "v", 2)}, (CREATED,), 0.5)
    assert looped.loop.status.views == {"v": ViewStatus("append", 7)}


def test_the_loop_names_the_views_that_epochs_up_to_the_last_committed_one_have_changed() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS), epoch(3, ROWS)]
    looped.turns()
    assert [looped.loop.changed_by(number) for number in (1, 2, 3)] == [frozenset(), {"v"}, {"v"}]
    looped.materializer.stopped = {"w": Stopped(3, "it ended 3 attempts")}
    looped.materializer.created = (CREATED, replace(CREATED, name="w"))
    looped.epochs = [epoch(4)]
    looped.turns()
    assert looped.loop.changed_by(4) == {"v", "w"}, "a failure is recorded"


@pytest.mark.parametrize(
    "options", [{"schema": None}, {"known": (CREATED,)}], ids=["without a schema", "with its views"]
)
def test_the_first_epoch_and_epochs_without_rows_pass_before_spark_is_up(options: dict[str, Any]) -> None:
    looped = Looped(spark_is_up=False, **options)
    looped.epochs = [epoch(2, kind=BarrierKind.INITIAL), epoch(3)]
    assert looped.turns() == [Turn.BUSY, Turn.BUSY, Turn.IDLE]
    assert looped.calls == ["report of 2", "report of 3"]
    assert looped.reports[-1].views is None


def test_an_epoch_of_bad_records_waits_for_spark_since_a_view_may_expect_few_of_them() -> None:
    looped = Looped(spark_is_up=False, known=(CREATED,))
    looped.epochs = [epoch(2, bad=3)]
    assert looped.turns() == [Turn.WAITS]
    looped.spark_is_up = True
    looped.turns()
    assert "views of 2" in looped.calls


@pytest.mark.parametrize("kind", [BarrierKind.INITIAL, BarrierKind.CHECKPOINT], ids=["initial", "empty"])
def test_a_watermark_that_passes_before_spark_is_up_closes_windows_in_the_next_epoch(kind: BarrierKind) -> None:
    looped = Looped(spark_is_up=False, known=(CREATED,))
    looped.epochs = [epoch(2, kind=kind, watermarks={"s": 5})]
    looped.turns()
    assert looped.calls == ["report of 2"] and looped.told == []
    looped.spark_is_up = True
    looped.turns()
    assert looped.told == [(True, False)], "an epoch is requested, since no rows may ever come"
    looped.epochs = [epoch(3, watermarks={"s": 5})]
    looped.turns()
    looped.clock.advance(1.0)
    looped.turns()
    assert looped.told[1:] == [], "it has closed them"


def test_the_first_epoch_of_a_known_schema_waits_for_spark_and_shows_the_views() -> None:
    looped = Looped(spark_is_up=False)
    looped.epochs = [epoch(2, kind=BarrierKind.INITIAL), epoch(3)]
    assert looped.turns() == [Turn.BUSY, Turn.WAITS]
    assert looped.calls == ["report of 2"]
    looped.spark_is_up = True
    assert looped.loop.turn() is Turn.BUSY
    assert looped.calls == ["report of 2", "open", "declare v", "views of 3", "report of 3", "tidy"]
    assert looped.reports[-1].changed_views == (CREATED,)


def test_an_epoch_with_rows_waits_for_spark_and_says_how_long() -> None:
    looped = Looped(spark_is_up=False)
    looped.epochs = [epoch(2, ROWS), epoch(3)]
    for _ in range(3):
        assert looped.loop.turn() is Turn.WAITS
        looped.clock.advance(1.0)
    assert looped.calls == []
    looped.spark_is_up = True
    assert looped.loop.turn() is Turn.BUSY
    assert looped.calls == ["open", "declare v", "views of 2", "report of 2", "tidy"]
    assert looped.reports[0].work == (Span("spark", "start of Spark", 0.0, 3.0),)


@pytest.mark.parametrize("known", [None, pa.schema([("y", pa.int64())])], ids=["no schema", "another column"])
def test_an_epoch_waits_for_the_columns_of_its_rows(known: pa.Schema | None) -> None:
    looped = Looped(schema=known)
    looped.epochs = [epoch(2, ROWS)]
    assert [looped.loop.turn(), looped.loop.turn()] == [Turn.WAITS, Turn.WAITS]
    looped.schema = SCHEMA
    assert looped.loop.turn() is Turn.BUSY
    assert looped.calls[-4:] == ["declare v", "views of 2", "report of 2", "tidy"]


def test_a_full_view_that_lacks_the_rows_of_an_epoch_is_told_before_the_epoch_is_reported() -> None:
    looped = Looped()
    looped.turns()
    looped.materializer.behind = frozenset({"v"})
    looped.epochs = [epoch(2, ROWS)]
    reported_at_once: list[bool] = []
    looped.on_report = lambda: reported_at_once.append(looped.told[-1][1])
    looped.turns()
    assert reported_at_once == [True], "else a run would count as caught up between the two"
    looped.materializer.behind = frozenset()
    looped.epochs = [epoch(3)]
    looped.turns()
    assert reported_at_once == [True, True], "it is up to date with the epoch that is reported, and not before"
    assert looped.told[-1][1] is False


def test_a_later_schema_is_declared_with_the_views_that_epochs_have_created() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS)]
    looped.turns()
    looped.schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    looped.turns()
    assert looped.calls.count("declare v") == 2
    assert looped.materializer.known == {"v": CREATED}


def test_the_epoch_of_a_stop_is_the_last() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, stops=True), epoch(3)]
    assert looped.loop.turn() is Turn.OVER
    assert [report.epoch for report in looped.reports] == [2]


def test_the_last_status_has_the_rows_of_the_last_epoch_however_soon_it_comes() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS)]
    looped.turns()
    looped.materializer.rows = 9
    looped.epochs = [epoch(3, stops=True)]
    assert looped.loop.turn() is Turn.OVER
    assert looped.loop.status.views == {"v": ViewStatus("append", 9)}


def test_the_rows_in_memory_are_told_with_the_views() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS)]
    looped.turns()
    assert looped.loop.status.in_memory == {}
    looped.materializer.in_memory = {"views/v.1-2.lance": KeptSize(7, 300)}
    looped.epochs = [epoch(3, stops=True)]
    assert looped.loop.turn() is Turn.OVER
    assert looped.loop.status.in_memory == {"views/v.1-2.lance": RowsInMemory(7, 300)}


def test_wrong_indexes_are_reported_with_the_views() -> None:
    looped = Looped()
    looped.epochs = [epoch(2, ROWS), epoch(3, stops=True)]
    looped.turns()
    assert looped.loop.status.rebuilt_indexes == {}
    looped.materializer.counts = MaterializerCounts(rebuilt_indexes={"v": 1})
    looped.epochs = [epoch(4, stops=True)]
    looped.turns()
    assert looped.loop.status.rebuilt_indexes == {"v": 1}


def test_a_turn_waits_for_an_epoch_only_without_history() -> None:
    looped = Looped()
    looped.materializer.pieces = 3
    assert looped.turns() == [Turn.BUSY, Turn.BUSY, Turn.IDLE]
    looped.turns()
    assert [wait > 0 for wait in looped.waits] == [True, False, False, True]


def test_a_turn_waits_long_for_an_epoch_only_when_nothing_else_can_come() -> None:
    looped = Looped()
    looped.turns()
    looped.turns()
    assert looped.waits[-1] == 1.0
    looped.epochs = [epoch(2, ROWS), epoch(3, kind=BarrierKind.INITIAL)]
    looped.turns()
    # The views were looked at after the first epoch; after the second, the next turn looks.
    assert looped.waits[-1] < 0.1
    looped.turns()
    assert looped.waits[-1] == 1.0
    looped.materializer.backfilling = {"v": 0.5}
    looped.turns()
    looped.turns()
    assert looped.waits[-1] < 0.1


def test_a_change_of_the_views_ends_the_wait_for_an_epoch() -> None:
    looped = Looped()
    looped.turns()
    change = looped.loop.retry_view("v")
    assert looped.wakes == 1
    looped.loop.turn()
    assert change.done()


def test_an_epoch_for_progress_alone_is_requested_once_a_second() -> None:
    looped = Looped()
    looped.materializer.pieces, looped.materializer.backfilling = 9, {"v": 0.5}
    looped.loop.turn()
    # The first turn declares, and then records the first piece.
    assert looped.told == [(False, True), (True, True)]
    looped.loop.turn()
    assert len(looped.told) == 2
    looped.clock.advance(1.0)
    looped.loop.turn()
    assert looped.told[2:] == [(True, True)]
    assert looped.loop.status.backfills == {"v": BackfillStatus(0.5)}
    looped.materializer.pieces, looped.materializer.backfilling = 1, {}
    looped.loop.turn()
    assert looped.told[3:] == [(False, False)]


def test_a_backfill_that_waits_for_missing_files_does_not_catch_up() -> None:
    looped = Looped()
    looped.materializer.backfilling, looped.materializer.blocked = {"v": 0.5}, {"v": ("s3://raw/a",)}
    looped.loop.turn()
    assert looped.told[-1] == (False, False)


def test_no_piece_of_history_delays_files_for_longer_than_a_record() -> None:
    looped = Looped()
    looped.epochs, looped.has_files = [epoch(2, ROWS)], True
    assert looped.turns() == [Turn.BUSY, Turn.IDLE]
    assert "piece" not in looped.calls
    looped.clock.advance(1.0)
    looped.loop.turn()
    assert looped.calls[-1] == "piece"


def test_views_change_between_two_turns() -> None:
    looped = Looped()
    looped.loop.turn()
    assert looped.done(looped.loop.add_view(ViewDefinition("w", query="SELECT x FROM s"))) is None
    assert looped.done(looped.loop.drop_view("v")) is None
    assert [call for call in looped.calls if call != "piece"] == [
        "open", "declare v", "declare v w", "drop v", "declare w",
    ]  # fmt: skip


def test_the_loop_reports_the_identities_of_the_views_that_it_has_analysed() -> None:
    looped = Looped(spark_is_up=False)
    looped.loop.turn()
    assert looped.analysed == [], "not before Spark has started"
    looped.spark_is_up = True
    looped.loop.turn()
    assert looped.analysed == [(["v"], {"v": "i"}, [])]
    looped.done(looped.loop.add_view(ViewDefinition("w", query="SELECT x FROM s")))
    assert looped.analysed[1:] == [(["v", "w"], {"v": "i", "w": "i"}, [])]
    looped.materializer.error = ViewError("no")
    looped.done(looped.loop.add_view(ViewDefinition("x", query="SELECT x FROM s")))
    assert len(looped.analysed) == 2, "a refused view changes nothing"


def test_a_view_whose_drop_no_epoch_has_committed_is_dropped_again() -> None:
    looped = Looped(known=(CREATED, replace(CREATED, name="w")), dropped={"w": 1, "gone already": 1})
    looped.loop.turn()
    assert looped.calls[:3] == ["open", "drop w", "declare v"]


@pytest.mark.parametrize(("dropped_at", "calls"), [(CREATED.created_epoch, ["drop v"]), (1, [])])
def test_a_view_that_was_added_after_the_drop_stays(dropped_at: int, calls: list[str]) -> None:
    looped = Looped(known=(CREATED,), dropped={"v": dropped_at})
    looped.loop.turn()
    assert looped.calls[:-1] == ["open", *calls, "declare v"]


def test_a_view_that_is_dropped_and_added_again_is_another_one() -> None:
    looped = Looped(known=(CREATED,))
    looped.loop.turn()
    assert set(looped.materializer.known) == {"v"}
    assert looped.done(looped.loop.drop_view("v")) is None
    assert looped.done(looped.loop.add_view(VIEW)) is None
    assert looped.materializer.known == {}


def test_a_change_that_is_refused_does_not_end_the_loop() -> None:
    looped = Looped()
    looped.loop.turn()
    other = ViewDefinition("v", query="SELECT x + 1 FROM s")
    assert isinstance(looped.done(looped.loop.add_view(other)), ViewError)
    assert isinstance(looped.done(looped.loop.drop_view("w")), ViewNotFoundError)
    looped.materializer.error = ViewError("no")
    assert looped.done(looped.loop.add_view(ViewDefinition("w", query="SELECT x FROM s"))) is looped.materializer.error


def test_changes_that_wait_for_spark_end_with_the_attempt() -> None:
    looped = Looped(spark_is_up=False)
    change = looped.loop.drop_view("v")
    looped.loop.turn()
    assert not change.done()
    looped.loop.close()
    assert isinstance(change.exception(timeout=0), RunFailedError)


FAILED = replace(CREATED, stopped_epoch=2, error="[DIVIDE_BY_ZERO] Division by zero.")


def test_a_view_that_fails_is_told_with_its_epoch_and_reason() -> None:
    looped = Looped(known=(CREATED,))
    looped.materializer.created = ()
    looped.epochs = [epoch(3, ROWS)]
    looped.materializer.stopped = {"v": Stopped(2, FAILED.error)}
    looped.turns()
    assert looped.reports[0].changed_views == (FAILED,)
    assert looped.loop.status.views == {"v": ViewStatus("append", stale_epoch=2, error=FAILED.error)}
    looped.epochs, looped.materializer.stopped = [epoch(4, ROWS)], {}
    looped.turns()
    assert looped.reports[1].changed_views == (), "the catalog has it already"


def test_a_retried_view_is_declared_without_its_error() -> None:
    looped = Looped(known=(FAILED,))
    looped.turns()
    assert looped.materializer.known["v"].error is not None
    assert looped.done(looped.loop.retry_view("v")) is None
    assert looped.materializer.known["v"] == replace(FAILED, error=None)
    assert looped.retried == {"v"}

    again = Looped(known=(FAILED,), retried=frozenset(looped.retried))
    again.turns()
    assert again.materializer.known["v"].error is None, "the attempt before ended before an epoch recorded it"
    again.epochs = [epoch(4, ROWS)]
    again.materializer.created, again.materializer.stopped = (), {"v": Stopped(2, "it fails again")}
    again.turns()
    assert again.retried == set() and again.reports[0].changed_views == (replace(FAILED, error="it fails again"),)


def test_a_view_that_closes_windows_is_rebuilt_to_accept_late_rows() -> None:
    closing = replace(CREATED, definition=f"SELECT 1\n{ON_CLOSE}")
    looped = Looped(known=(closing,))
    looped.turns()
    assert looped.done(looped.loop.retry_view("v")) is None
    assert looped.materializer.known["v"] == replace(closing, stopped_epoch=0), "it is declared as a stale view"
    assert looped.analysed[-1][2] == [closing.version_name], "its files are needed again"
    looped.epochs = [epoch(4, ROWS)]
    looped.materializer.created, looped.materializer.stopped = (), {"v": Stopped(3)}
    looped.turns()
    assert looped.reports[0].changed_views == (replace(closing, stopped_epoch=3),), "the catalog says so from now on"

    again = Looped(known=(closing,), retried=frozenset(looped.retried))
    again.turns()
    assert again.materializer.known["v"].stopped_epoch == 0, "the attempt before ended before an epoch recorded it"
    built = replace(closing, created_epoch=closing.created_epoch + 9)
    done = Looped(known=(built,), retried=frozenset(looped.retried))
    done.turns()
    assert done.materializer.known["v"] == built, "it was rebuilt"


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("v", (CREATED,), "view 'v' has not failed: `status` shows the views that have"),
        ("v", (), "view 'v' has not failed"),
        ("w", (FAILED,), "there is no view 'w' to retry; the views are: v"),
    ],
)
def test_a_view_that_has_not_failed_is_not_retried(name: str, known: tuple[CatalogView, ...], said: str) -> None:
    looped = Looped(known=known)
    looped.turns()
    assert said in str(looped.done(looped.loop.retry_view(name)))
    assert looped.retried == set()


def test_a_retry_that_cannot_be_declared_changes_nothing() -> None:
    looped = Looped(known=(FAILED,))
    looped.turns()
    looped.materializer.error = ViewError("no")
    assert str(looped.done(looped.loop.retry_view("v"))) == "no"
    looped.materializer.error = None
    assert looped.done(looped.loop.add_view(ViewDefinition("w", query="SELECT x FROM s"))) is None
    assert looped.materializer.known["v"] == FAILED and looped.retried == set()


def test_a_view_that_cannot_be_analysed_any_more_is_shown_as_failed_and_a_retry_says_why() -> None:
    looped = Looped(known=(CREATED,))
    looped.materializer.broken = {"v": "its function raised KeyError: 'region'"}
    looped.materializer.created = ()
    looped.materializer.stopped = {"v": Stopped(2, looped.materializer.broken["v"])}
    looped.epochs = [epoch(3, ROWS)]
    looped.turns()
    assert looped.loop.status.views["v"] == ViewStatus(
        "append", stale_epoch=2, error="its function raised KeyError: 'region'"
    )
    refused = looped.done(looped.loop.retry_view("v"))
    assert isinstance(refused, CommandRefusedError) and "KeyError: 'region'; correct it first" in str(refused)
    assert looped.materializer.known["v"].error == "its function raised KeyError: 'region'"
    assert looped.retried == set()
    looped.materializer.broken, looped.materializer.stopped = {}, {}
    assert looped.done(looped.loop.retry_view("v")) is None
    assert looped.retried == {"v"}


def test_expectations_that_are_not_declared_any_more_end_with_an_epoch_that_is_asked_for() -> None:
    looped = Looped(known=(CREATED,), expected=(HELD,))
    looped.turns()
    looped.clock.advance(1.0)
    looped.turns()
    assert looped.told[-1] == (True, False), "no rows may ever come"
    looped.epochs = [epoch(2)]
    looped.turns()
    assert [report.expectations for report in looped.reports] == [{"v": None}]
    told = len(looped.told)
    looped.clock.advance(1.0)
    looped.turns()
    assert looped.told[told:] == []


def test_a_view_that_is_held_back_is_in_the_status_and_is_released_by_an_epoch_that_is_asked_for() -> None:
    looped = Looped(known=(CREATED,), expected=(HELD,))
    looped.turns()
    assert (looped.loop.status.views["v"].violations, looped.loop.status.views["v"].held_since) == ({"positive": 2}, 1)
    assert looped.done(looped.loop.release()) is None
    assert looped.told[-1] == (True, False)


def test_nothing_is_released_where_no_view_is_held_back() -> None:
    looped = Looped()
    looped.turns()
    assert "no view is held back" in str(looped.done(looped.loop.release()))
