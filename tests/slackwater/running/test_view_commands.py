"""The outcome of each command of users, for a view in each state: the real loop over the real records of views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from actors.protocol.barrier import Barrier, BarrierKind
from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import MaterializerCounts
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered
from slackwater.running.materializer_loop import MaterializerLoop
from spark_bridge.changes.memory_tier import KeptSize
from spark_bridge.changes.view import ShownView
from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration
from spark_bridge.maintenance.derived_views import DerivedViews, Work
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.recorded_views import RecordedViews
from spark_bridge.maintenance.view_life import ViewState
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ON_CLOSE, ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import ManualClock
from state.epoch import EpochPair
from state.errors import (
    CommandRefusedError,
    DefinitionChangedError,
    SlackwaterError,
    StorageUnavailableError,
    ViewError,
    ViewFailedError,
    ViewNotFoundError,
)
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import inner_name
from tests.repository import REPOSITORY
from tests.spark_bridge.maintenance.scripted_views import SCHEMA, AtOnce, Dataset, NoHistory, empty, plan_of

ROWS = Block("fetch-0", "s", None, 1, 8, ("x",))
TEXT = "SELECT 1 FROM s"
VIEW = ViewDefinition("v", TEXT)
OTHER = ViewDefinition("v", "SELECT 2 FROM s")
WAITING = ViewDefinition("v", "SELECT 1 FROM no_schema")
STORED = CatalogView("v", "append", TEXT, TEXT, ("s",), (), 1, stopped_epoch=1)


class RecordedMaterializer:
    """A materializer of views over one source each, whose datasets have versions and no rows."""

    behind = frozenset[str]()
    in_memory: Mapping[str, KeptSize] = MappingProxyType({})
    counts = MaterializerCounts()

    def __init__(self, clock: ManualClock) -> None:
        make: Any = Dataset
        rows_of: Any = lambda *_: FewRows()  # noqa: E731
        self.states: dict[str, ViewState] = {}
        self.refusal: SlackwaterError | None = None
        self._broken: dict[str, str] = {}
        self._backfills = Backfills(make, lambda *_: NoHistory(), lambda *_: EpochRows({}, 0, 1, 0), clock, AtOnce())
        self.recorded = RecordedViews(
            self._backfills,
            FullViews(make, lambda _, refresh: refresh(), AtOnce()),
            DerivedViews(make, rows_of, lambda _, work: work(), AtOnce()),
            self._adopt,
            empty,
            clock,
            lambda each: self.states.update({each.view: each.after}),
        )
        self._maintained: dict[str, Any] = {}

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        self.recorded.open(views, epoch, ingested)

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str],
    ) -> Declaration:
        if self.refusal is not None:
            raise self.refusal
        by_name = {each.name: each for each in definitions}
        planned = {
            plan.name: PlannedView(each, plan, schemas)
            for name, each in by_name.items()
            for plan in _plans_of(each)
            if schemas[plan.sources[0]] is not None and name not in self._broken
        }
        plans = {name: each.plan for name, each in planned.items()}
        recorded, broken = self.recorded, {name: each for name, each in self._broken.items() if name in by_name}
        declaration = Declaration.of(by_name, plans, known, recorded.ingested, recorded.ending, broken=broken)
        for each in dropped:
            self._leave(self.recorded.drop(each))
        maintained = self.recorded.declare(by_name, planned, declaration)
        self._maintained = {name: self._maintained.get(name) or self._opened(plan) for name, plan in maintained.items()}
        return declaration

    def _opened(self, plan: ViewPlan) -> Dataset:
        view = Dataset(plan)
        if plan.name in self.recorded.versions:
            view.open(self.recorded.versions[plan.name])
        return view

    def spoil(self) -> None:
        """View `v` cannot be analysed from now on."""
        self._broken["v"] = "its function has moved"

    def fail(self) -> None:
        self._leave(self.recorded.fail(ViewFailedError("v", "over rows", "too wet")))

    def _leave(self, names: Sequence[str]) -> None:
        for each in names:
            self._maintained.pop(each, None)

    def run_epoch(
        self,
        epoch: int,
        blocks: Mapping[str, Sequence[Block]],
        corrections: Sequence[Correction],
        watermarks: Mapping[str, int],
    ) -> EpochViews:
        def apply() -> list[CatalogView]:
            frames: Any = dict.fromkeys(blocks)
            work = {
                name: view.apply if name in self.recorded.versions else lambda view=view: view.create(epoch)
                for name, view in self._maintained.items()
            }
            return self.recorded.write(epoch, EpochRows(frames, 0, 1, 0), {}, work, _run)

        return self.recorded.run_epoch(epoch, blocks.keys(), apply, frozenset, dict, _run)

    def backfill(self) -> bool:
        due = self.recorded.next_due()
        return due is not None and self._backfills.take_piece(due)

    def tidy(self) -> None:
        pass

    def close(self) -> None:
        pass

    def shown(self) -> list[ShownView]:
        return []

    def columns(self) -> dict[str, tuple[str, ...]]:
        return {}

    def has_news(self, watermarks: Mapping[str, int]) -> bool:
        return self.recorded.has_news

    @property
    def failing(self) -> frozenset[str]:
        return self.recorded.failing

    @property
    def backfilling(self) -> dict[str, float]:
        return self._backfills.fractions

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        return {}

    def _adopt(self, plan: Any, view: Any) -> None:
        self._maintained[plan.name] = view


def _run(work: Work) -> dict[str, ViewVersion]:
    return {name: each() for name, each in work.items()}


class FewRows:
    """Rows of parents without rows in any epoch."""

    def since(self, begun_us: int | None) -> FewRows:
        return self

    def are_changed(self, plan: ViewPlan) -> bool:
        return False

    def count(self, plan: ViewPlan) -> int:
        return 0

    def all(self, plan: ViewPlan) -> EpochRows:
        return EpochRows({}, 0, 1, 0)


def _plans_of(definition: ViewDefinition) -> list[ViewPlan]:
    """The plans of a view `FROM s`, or `FROM (s)`: with an internal view, whose rows others share."""
    text, name = definition.query or "", definition.name
    source = text.removesuffix(ON_CLOSE).rpartition(" ")[2]
    plan = replace(plan_of(name, "append", text, source.strip("()")), definition=text)
    if source == plan.sources[0]:
        return [plan]
    inner = replace(plan_of(inner_name(name, 1), "append", text, plan.sources[0]), content="the same rows")
    return [inner, replace(plan, view_class="aggregate", parents=(inner.name,), inner=(inner,))]


class Commanded:
    """The loop, its materializer, and the state of view `v`."""

    def __init__(self, *definitions: ViewDefinition, stored: CatalogView | None = None, ingested: bool = False) -> None:
        clock = ManualClock()
        self.materializer = RecordedMaterializer(clock)
        self._epochs: list[EpochBlocks] = []
        self._last = 1
        self._stored = {} if stored is None else {"v": stored}
        self.reports: list[CollectReport] = []
        self.loop = MaterializerLoop(
            client=self,
            definitions=definitions,
            recovered=Recovered(
                1,
                1,
                None,
                {} if stored is None else {"v": ViewVersion("v", "views/v-1.lance", 1)},
                self._stored,
                {},
                frozenset({"s"} if ingested else ()),
                {},
            ),
            schemas=lambda: {"s": SCHEMA, "no_schema": None},
            has_files=lambda: True,  # without pieces of history between the epochs
            spark_is_up=lambda: True,
            make_materializer=lambda: self.materializer,
            clock=clock,
        )
        self.loop.turn()

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None:
        return self._epochs.pop() if self._epochs else None

    def wake(self) -> None:
        pass

    def collect(self, report: CollectReport) -> None:
        self.reports.append(report)

    def views_declared(self, **_: object) -> None:
        pass

    def epoch(self) -> None:
        """Takes an epoch with rows to the views."""
        self._last += 1
        barrier = Barrier(EpochPair(self._last, self._last + 1), BarrierKind.CHECKPOINT)
        self._epochs.append(EpochBlocks(barrier, {"s": (ROWS,)}))
        self.loop.turn()

    def fail(self) -> None:
        self.materializer.fail()

    def refuse(self, command: str, refusal: SlackwaterError) -> None:
        """A command whose declaration is refused, or fails."""
        self.materializer.refusal = refusal
        assert self.command(command) is not None
        self.materializer.refusal = None

    def command(self, command: str) -> type[SlackwaterError] | None:
        """The error of a command, which the next turn carries out."""
        change = {
            "drop": lambda: self.loop.drop_view("v"),
            "add": lambda: self.loop.add_view(OTHER),
            "replace by the same": lambda: self.loop.add_view(replace(VIEW, replace=True)),
            "replace": lambda: self.loop.add_view(replace(OTHER, replace=True)),
            "retry": lambda: self.loop.retry_view("v"),
        }[command]()
        self.loop.turn()
        error = change.exception(timeout=0)
        assert error is None or isinstance(error, SlackwaterError)
        return None if error is None else type(error)

    @property
    def views(self) -> Mapping[str, ViewVersion]:
        """The versions of the last report."""
        return self.reports[-1].views or {}

    @property
    def catalog(self) -> dict[str, CatalogView]:
        """The catalog after all reports."""
        catalog = {**self._stored}
        for report in self.reports:
            catalog = {name: each for name, each in catalog.items() if name not in report.dropped}
            catalog |= {each.name: each for each in report.changed_views}
        return catalog

    @property
    def state(self) -> ViewState:
        return self.materializer.states.get("v", ViewState.ABSENT)


def _live(view: ViewDefinition = VIEW) -> Commanded:
    commanded = Commanded(view)
    commanded.epoch()
    return commanded


def _backfilling(view: ViewDefinition = VIEW) -> Commanded:
    commanded = Commanded(view, ingested=True)
    commanded.epoch()
    return commanded


def _failing(view: ViewDefinition = VIEW) -> Commanded:
    commanded = _live(view)
    commanded.fail()
    return commanded


def _stale(view: ViewDefinition = VIEW) -> Commanded:
    commanded = _failing(view)
    commanded.epoch()
    return commanded


def _dropping(view: ViewDefinition = VIEW) -> Commanded:
    commanded = _live(view)
    assert commanded.command("drop") is None
    return commanded


STATES: dict[str, Callable[[ViewDefinition], Commanded]] = {
    "absent": lambda _: Commanded(),
    "left out": lambda _: Commanded(stored=STORED, ingested=True),
    "waiting": lambda _: Commanded(WAITING),
    "declared": Commanded,
    "backfilling": _backfilling,
    "live": _live,
    "failing": _failing,
    "stale": _stale,
    "dropping": _dropping,
}

_ABSENT, _WAITING, _DECLARED = ViewState.ABSENT, ViewState.WAITING, ViewState.DECLARED
_BACKFILLING, _LIVE, _STALE = ViewState.BACKFILLING, ViewState.LIVE, ViewState.STALE
_DROPPING, _FAILING = ViewState.DROPPING, ViewState.FAILING
_IS_CREATED, _IS_FILLED, _ENDS = (
    (None, _DECLARED, _LIVE),
    (None, _BACKFILLING, _BACKFILLING),
    (None, _DROPPING, _ABSENT),
)
Outcome = tuple[type[SlackwaterError] | None, ViewState, ViewState]
"""The error, the state after the command, and the state after the next epoch."""

OUTCOMES: dict[str, dict[str, Outcome]] = {
    "absent": {
        "drop": (ViewNotFoundError, _ABSENT, _ABSENT),
        "add": _IS_CREATED,
        "replace by the same": _IS_CREATED,
        "replace": _IS_CREATED,
        "retry": (ViewNotFoundError, _ABSENT, _ABSENT),
    },
    "left out": {
        "drop": _ENDS,
        "add": (DefinitionChangedError, _ABSENT, _ABSENT),
        "replace by the same": _IS_FILLED,
        "replace": _IS_FILLED,
        "retry": (ViewNotFoundError, _ABSENT, _ABSENT),
    },
    "waiting": {
        "drop": _ENDS,
        "add": (ViewError, _WAITING, _WAITING),
        "replace by the same": _IS_CREATED,
        "replace": _IS_CREATED,
        "retry": (CommandRefusedError, _WAITING, _WAITING),
    },
    "declared": {
        "drop": _ENDS,
        "add": (ViewError, _DECLARED, _LIVE),
        "replace by the same": _IS_CREATED,
        "replace": _IS_CREATED,
        "retry": (CommandRefusedError, _DECLARED, _LIVE),
    },
    "backfilling": {
        "drop": _ENDS,
        "add": (ViewError, _BACKFILLING, _BACKFILLING),
        "replace by the same": _IS_FILLED,
        "replace": _IS_FILLED,
        "retry": (CommandRefusedError, _BACKFILLING, _BACKFILLING),
    },
    "live": {
        "drop": _ENDS,
        "add": (ViewError, _LIVE, _LIVE),
        "replace by the same": (None, _LIVE, _LIVE),
        "replace": _IS_FILLED,
        "retry": (CommandRefusedError, _LIVE, _LIVE),
    },
    "failing": {
        "drop": _ENDS,
        "add": (ViewError, _FAILING, _STALE),
        "replace by the same": (None, _FAILING, _STALE),
        "replace": _IS_FILLED,
        "retry": (CommandRefusedError, _FAILING, _STALE),
    },
    "stale": {
        "drop": _ENDS,
        "add": (ViewError, _STALE, _STALE),
        "replace by the same": (None, _STALE, _STALE),
        "replace": _IS_FILLED,
        "retry": _IS_FILLED,
    },
    "dropping": {
        "drop": (ViewNotFoundError, _DROPPING, _ABSENT),
        "add": _IS_FILLED,
        "replace by the same": _IS_FILLED,
        "replace": _IS_FILLED,
        "retry": (ViewNotFoundError, _DROPPING, _ABSENT),
    },
}


@pytest.mark.parametrize(
    ("state", "command", "outcome"),
    [
        pytest.param(state, command, outcome, id=f"{command}, {state}")
        for state, outcomes in OUTCOMES.items()
        for command, outcome in outcomes.items()
    ],
)
def test_each_command_has_one_outcome_in_each_state(state: str, command: str, outcome: Outcome) -> None:
    commanded = STATES[state](VIEW)
    assert commanded.state is _STATE_OF.get(state, _ABSENT)
    error, after, after_epoch = outcome
    assert (commanded.command(command), commanded.state) == (error, after)
    commanded.epoch()
    assert commanded.state is after_epoch
    _check_record(commanded)


_STATE_OF = {state.value.partition(" ")[0]: state for state in ViewState}


def _check_record(commanded: Commanded) -> None:
    """The record of the last epoch has the rows that the state promises: of stopped rows, the catalog has the epoch."""
    state, views, catalog = commanded.state, commanded.views, commanded.catalog
    if state is _LIVE:
        assert {*views} == {"v"} and catalog["v"].stopped_epoch is None
    elif state is _STALE:
        assert {*views} == {"v"} and (catalog["v"].stopped_epoch, catalog["v"].error) == (2, "too wet")
    elif state is _BACKFILLING:
        assert "v.next" in views and views["v.next"].pinned_epoch is not None
        assert "v" not in views or (catalog["v"].stopped_epoch is not None and catalog["v"].error is None)
    else:
        assert "v.next" not in views
    assert "v" not in catalog or "v" in views


def test_a_pair_of_state_and_command_is_tested_once() -> None:
    commands = {command for outcomes in OUTCOMES.values() for command in outcomes}
    assert all(outcomes.keys() == commands for outcomes in OUTCOMES.values()) and OUTCOMES.keys() == STATES.keys()
    assert {_STATE_OF.get(state, _ABSENT) for state in STATES} == {*ViewState}


def test_the_page_has_the_outcomes_of_commands() -> None:
    """A cell names the state after the command, or the error."""
    header = (
        "| state | `drop` | `add` | `replace`, same definition | `replace` | `retry` |\n|---|---|---|---|---|---|\n"
    )
    table = (REPOSITORY / "docs" / "design" / "view-life.md").read_text().partition(header)[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    shown = {row[0]: row[1:] for row in rows}
    assert shown == {
        state: [after.value if error is None else error.__name__ for error, after, _ in outcomes.values()]
        for state, outcomes in OUTCOMES.items()
    }


_CLOSING = ViewDefinition("v", TEXT + ON_CLOSE)
_LATE_RETRIES: dict[str, type[SlackwaterError] | ViewState] = {
    "absent": ViewNotFoundError,
    "left out": ViewNotFoundError,
    "waiting": CommandRefusedError,
    "declared": CommandRefusedError,
    "backfilling": CommandRefusedError,
    "live": _BACKFILLING,
    "failing": CommandRefusedError,
    "stale": _BACKFILLING,
    "dropping": ViewNotFoundError,
}
"""The error of the retry of a view that can have late rows, or its state after it."""


@pytest.mark.parametrize("state", STATES)
def test_a_retry_of_a_view_that_can_have_late_rows_has_one_outcome_in_each_state(state: str) -> None:
    commanded, outcome = STATES[state](_CLOSING), _LATE_RETRIES[state]
    before, error = commanded.state, commanded.command("retry")
    if isinstance(outcome, ViewState):
        assert error is None and commanded.state is outcome
    else:
        assert error is outcome and commanded.state is before
    commanded.epoch()
    _check_record(commanded)
    if state == "failing":
        assert commanded.state is _STALE
        assert commanded.command("retry") is None


@pytest.mark.parametrize("times", [1, 2])
def test_a_live_view_that_closes_windows_is_rebuilt_by_a_retry_and_another_one_changes_nothing(times: int) -> None:
    commanded = Commanded(_CLOSING)
    commanded.epoch()
    for _ in range(times):
        assert commanded.command("retry") is None
        assert commanded.state is _BACKFILLING
        commanded.epoch()
    assert commanded.state is _BACKFILLING
    assert commanded.views["v.next"].path == "views/v-3.lance"
    _check_record(commanded)


WITHIN = ViewDefinition("v", "SELECT 1 FROM (s)")


def _with_internal_views(*definitions: ViewDefinition) -> Commanded:
    commanded = Commanded(*definitions)
    commanded.epoch()
    assert {*commanded.views} == {name for each in definitions for name in (each.name, inner_name(each.name, 1))}
    return commanded


_INTERNAL: dict[str, Callable[[ViewDefinition], Commanded]] = {
    "with an internal view": lambda _: _with_internal_views(WITHIN),
    "with a shared internal view": lambda _: _with_internal_views(WITHIN, replace(WITHIN, name="w")),
    "with the internal view of another view": lambda _: _with_internal_views(replace(WITHIN, name="u"), WITHIN),
}


@pytest.mark.parametrize("state", [*STATES, *_INTERNAL])
@pytest.mark.parametrize("command", ["drop", "replace", "retry"])
def test_a_command_whose_declaration_is_refused_changes_nothing(state: str, command: str) -> None:
    """Of two runs, one has the command; every record of the two is the same."""
    runs = []
    for is_commanded in (True, False):
        commanded = {**STATES, **_INTERNAL}[state](VIEW)
        if is_commanded:
            before = commanded.catalog
            commanded.refuse(command, DefinitionChangedError("a view that reads it has changed"))
            assert commanded.catalog == before
        for _ in range(2):
            commanded.epoch()
        runs.append((commanded.state, commanded.reports))
    assert runs[0] == runs[1]


def test_a_retry_of_a_view_that_cannot_be_analysed_keeps_the_recorded_error() -> None:
    commanded = _stale()
    commanded.materializer.spoil()
    assert commanded.command("retry") is CommandRefusedError
    assert commanded.state is _STALE
    commanded.epoch()
    assert commanded.catalog["v"].error == "too wet"


def test_a_dropped_view_leaves_the_rows_that_it_shares() -> None:
    commanded = _INTERNAL["with a shared internal view"](VIEW)
    assert commanded.command("drop") is None
    for _ in range(2):
        commanded.epoch()
        assert {*commanded.views} == {*commanded.catalog} == {"w", "w.1"}
    assert commanded.views["w.1"].version == 3, "each epoch has added rows"


@pytest.mark.parametrize("command", ["drop", "replace"])
def test_an_attempt_ends_when_a_declaration_fails_halfway(command: str) -> None:
    """The next attempt continues from the last committed epoch, without the command."""
    commanded = _live()
    commanded.materializer.refusal = StorageUnavailableError("the store does not answer")
    with pytest.raises(StorageUnavailableError):
        commanded.command(command)
