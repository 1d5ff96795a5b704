"""Each epoch records the views that it creates, shows and ends, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews, Stopped
from spark_bridge.ingest.history import NotResumableError
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration, Start
from spark_bridge.maintenance.derived_views import DerivedViews, Work
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.recorded_views import RecordedViews
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import Closing, ViewPlan
from state.clock import ManualClock
from state.errors import ViewFailedError
from state.tables.records import CatalogView, ViewClass, ViewVersion
from tests.spark_bridge.maintenance.scripted_views import SCHEMA, AtOnce, Dataset, NoHistory, empty, plan_of


class Views:
    """Recorded views, whose epochs are committed at once."""

    def __init__(self) -> None:
        clock = ManualClock()
        make: Any = Dataset
        rows = EpochRows({}, 0, 1, 0)
        self.backfills = Backfills(make, lambda *_: NoHistory(), lambda *_: rows, clock, AtOnce())
        self.full = FullViews(make, lambda _, refresh: refresh(), AtOnce())
        self.adopted: list[str] = []
        rows_of: Any = lambda *_: None  # noqa: E731 - there are no views over views
        derived = DerivedViews(make, rows_of, lambda _, work: work(), AtOnce())
        self.recorded = RecordedViews(
            self.backfills, self.full, derived, lambda plan, _: self.adopted.append(plan.name), empty, clock
        )
        self.known: dict[str, CatalogView] = {}
        self.maintained: dict[str, Dataset] = {}
        self.failing: set[str] = set()
        self.epoch = 0

    def declare(
        self,
        classes: Mapping[str, ViewClass],
        refresh_interval_s: float = 0.0,
        *,
        identity: str = "",
        waiting: Collection[str] = (),
    ) -> None:
        options: Any = {"on_missing": "allow", "refresh_interval_s": refresh_interval_s, "replace": True}
        definitions = {name: ViewDefinition(name, "SELECT * FROM s", **options) for name in classes}
        planned = {
            name: PlannedView(definitions[name], plan_of(name, each, identity), {"s": SCHEMA})
            for name, each in classes.items()
            if name not in waiting
        }
        plans = {name: each.plan for name, each in planned.items()}
        declaration = Declaration.of(definitions, plans, self.known, self.recorded.ingested)
        maintained = self.recorded.declare(definitions, planned, declaration)
        self.maintained = {name: self.maintained.get(name, Dataset(plan)) for name, plan in maintained.items()}

    def run(self, *sources: str, corrected: frozenset[str] = frozenset()) -> EpochViews:
        self.epoch += 1
        done = self.recorded.run_epoch(
            self.epoch, {*sources}, lambda: self._apply(sources), lambda: corrected, dict, self._run
        )
        self.known = done.catalog(self.known)
        return done

    def _apply(self, sources: tuple[str, ...]) -> list[CatalogView]:
        frames: Any = dict.fromkeys(sources)
        work = {
            name: view.apply if name in self.recorded.versions else lambda view=view: view.create(self.epoch)
            for name, view in self.maintained.items()
        }
        return self.recorded.write(self.epoch, EpochRows(frames, 0, 1, 0), {}, work, self._run)

    def _run(self, work: Work) -> dict[str, ViewVersion]:
        done = {}
        for name, each in work.items():
            if name in self.failing:
                for ended in self.recorded.fail(ViewFailedError(name, "over rows", "too wet")):
                    self.maintained.pop(ended, None)
            else:
                done[name] = each()
        return done


@pytest.fixture
def views() -> Views:
    return Views()


def test_an_epoch_creates_a_new_view_and_a_later_one_ends_it(views: Views) -> None:
    views.declare({"a": "append"})
    news = [views.recorded.has_news]
    done = views.run("s")
    assert [each.name for each in done.created] == ["a"] and done.views["a"].version == 1
    news.append(views.recorded.has_news)

    views.recorded.drop("a")
    views.maintained.clear()
    assert [*news, views.recorded.has_news] == [True, False, True]
    done = views.run()
    assert done.dropped == ("a", "a.next") and done.views == {}


def test_a_view_that_is_dropped_and_declared_again_is_another_one(views: Views) -> None:
    views.declare({"a": "append"})
    views.run()
    views.recorded.drop("a")
    views.maintained.clear()
    views.known.clear()
    views.declare({"a": "append"})
    done = views.run()
    assert done.dropped == ("a", "a.next") and [each.created_epoch for each in done.created] == [2]
    assert done.views["a"].path == "views/a-2.lance"


def test_a_backfill_is_hidden_until_it_is_complete(views: Views) -> None:
    views.run("s")
    views.declare({"a": "append"})
    done = views.run()
    assert [*done.views] == ["a.next"] == [each.name for each in done.created]
    assert done.views["a.next"].pinned_epoch == 1

    due = views.recorded.next_due()
    assert due is not None and views.backfills.take_piece(due)
    done = views.run()
    assert [*done.views] == ["a"] and done.dropped == ("a.next",) and views.adopted == ["a"]
    assert [(each.name, each.missing) for each in done.created] == [("a", ("s3://b/lost",))]


def test_a_source_whose_only_rows_came_by_a_correction_has_history(views: Views) -> None:
    views.run(corrected=frozenset("s"))
    views.declare({"a": "append"})
    assert [*views.run().views] == ["a.next"]


def test_a_backfill_that_a_correction_restarts_in_the_epoch_of_its_creation_is_not_created(views: Views) -> None:
    views.run("s")
    views.declare({"a": "append"})
    done = views.run(corrected=frozenset("s"))
    assert (done.views, done.created, done.dropped) == ({}, (), ("a.next",))
    assert [each.name for each in views.run().created] == ["a.next"]


def test_a_recomputation_without_rows_does_not_begin_the_interval_of_a_full_view(views: Views) -> None:
    views.declare({"f": "full"}, refresh_interval_s=3_600.0)
    views.run()
    views.run()
    assert views.recorded.versions["f"].reflects_epoch == 1
    views.run("s")
    assert views.full.behind == {"f"}
    assert views.run().views["f"].reflects_epoch == 3
    views.run("s")
    assert views.full.behind == set()
    assert views.run().views["f"].reflects_epoch == 3, "from now on it waits"


def test_a_full_view_is_hidden_until_its_first_recomputation(views: Views) -> None:
    views.declare({"f": "full"})
    done = views.run("s")
    assert [*done.views] == ["f.next"] == [each.name for each in done.created]
    done = views.run()
    assert [*done.views] == ["f"] and done.dropped == ("f.next",) and done.views["f"].reflects_epoch == 1
    views.run(corrected=frozenset("s"))
    done = views.run()
    assert done.views["f"].reflects_epoch == 3 and not (done.created or done.dropped), "readers see it already"
    assert [(each.name, each.view_class) for each in views.recorded.shown({"f": 0})] == [("f", "full")]


def test_a_view_that_fails_stops_at_the_epoch_before_and_the_others_go_on(views: Views) -> None:
    views.declare({"a": "append", "b": "aggregate"})
    before = views.run("s")
    views.failing = {"a"}
    done = views.run("s")
    assert done.views["a"] == before.views["a"]
    assert done.views["b"].version == before.views["b"].version + 1
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, "too wet")
    assert (views.known["b"].stopped_epoch, views.known["b"].error) == (None, None)
    assert not views.recorded.has_news

    views.declare({"a": "append", "b": "aggregate"})
    assert [*views.maintained] == ["b"], "it is stale until it is retried"
    assert views.run("s").views["a"] == before.views["a"]
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, "too wet")


def test_a_view_that_fails_over_a_correction_has_no_rows_of_the_epoch(views: Views) -> None:
    views.declare({"a": "append", "b": "append"})
    before = views.run("s")

    def correct() -> frozenset[str]:
        views.recorded.fail(ViewFailedError("a", "over corrected rows", "too wet"))
        return frozenset({"s"})

    views.epoch += 1
    done = views.recorded.run_epoch(2, {"s"}, lambda: views._apply(("s",)), correct, dict, views._run)
    assert done.views["a"] == before.views["a"] and done.views["b"].version == 2
    assert done.stopped == {"a": Stopped(1, "too wet")}


def test_a_view_that_fails_in_its_first_epoch_is_empty(views: Views) -> None:
    views.declare({"a": "append", "b": "aggregate"})
    views.failing = {"a"}
    done = views.run("s")
    assert done.views["a"].path == "views/a-1-empty.lance"
    assert (views.known["a"].created_epoch, views.known["a"].stopped_epoch, views.known["a"].error) == (1, 0, "too wet")
    assert done.views["b"].path == "views/b-1.lance"


def test_a_failed_view_resumes_from_its_own_epoch_when_it_is_retried(views: Views) -> None:
    views.declare({"a": "append"})
    before = views.run("s")
    views.failing = {"a"}
    views.run("s")
    views.failing = set()

    views.known["a"] = replace(views.known["a"], error=None)
    views.declare({"a": "append"})
    done = views.run("s")
    assert [*done.views] == ["a", "a.next"] and done.views["a"] == before.views["a"], "readers see the old rows"
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, None), "a restart builds it, too"
    assert (done.views["a.next"].noted["since"], done.views["a.next"].pinned_epoch) == (1, 2), "the rows of epoch 2"
    due = views.recorded.next_due()
    assert due is not None
    views.backfills.take_piece(due)
    done = views.run()
    assert done.views["a"].path == "views/a-3.lance" and done.dropped == ("a.next",)
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (None, None)


def test_a_view_that_cannot_resume_is_rebuilt(views: Views) -> None:
    views.declare({"a": "append"})
    views.run("s")
    views.recorded.fail(ViewFailedError("a", "over rows", "too wet"))
    views.run("s")
    views.known["a"] = replace(views.known["a"], error=None)
    views.declare({"a": "append"})
    views.run("s")

    def open_history(plan: ViewPlan, since: int, epoch: int, progress: str | None) -> NoHistory:
        if since:
            raise NotResumableError("its last epoch is no longer retained")
        return NoHistory()

    views.backfills._open_history = open_history
    due = views.recorded.next_due()
    assert due is not None and views.backfills.take_piece(due)
    done = views.run("s")
    assert "a.next" in done.dropped
    assert (done.views["a.next"].noted["since"], done.views["a.next"].path) == (0, "views/a-4.lance")


_STOPPED = CatalogView("a", "append", "SELECT 1", "a", ("s",), (), 1, stopped_epoch=3)
_PLAN = plan_of("a", "append")
_TIME: Any = "a time"
_USED: Any = SimpleNamespace(are_used=True)


@pytest.mark.parametrize(
    ("stored", "plan", "resumable"),
    [
        pytest.param(_STOPPED, _PLAN, {"a": 3}, id="append"),
        pytest.param(_STOPPED, replace(_PLAN, view_class="aggregate"), {"a": 3}, id="aggregate"),
        pytest.param(_STOPPED, replace(_PLAN, view_class="full"), {}, id="full"),
        pytest.param(_STOPPED, replace(_PLAN, parents=("b",)), {}, id="over another view"),
        pytest.param(_STOPPED, replace(_PLAN, closing=Closing("s", 0)), {}, id="windows that close"),
        pytest.param(_STOPPED, replace(_PLAN, expiry=_TIME), {}, id="rows that expire"),
        pytest.param(_STOPPED, replace(_PLAN, timestamps=_USED), {}, id="the time of epochs"),
        pytest.param(_STOPPED, replace(_PLAN, identity="b"), {}, id="another definition"),
        pytest.param(replace(_STOPPED, missing=("f",)), _PLAN, {}, id="missing files"),
        pytest.param(replace(_STOPPED, stopped_epoch=0), _PLAN, {}, id="no rows"),
        pytest.param(replace(_STOPPED, stopped_epoch=None), _PLAN, {}, id="not stopped"),
        pytest.param(replace(_STOPPED, error="too wet"), _PLAN, {}, id="not retried"),
    ],
)
def test_a_stopped_view_over_sources_without_time_can_resume(
    stored: CatalogView, plan: ViewPlan, resumable: Mapping[str, int]
) -> None:
    definition = ViewDefinition("a", "SELECT 1", replace=True)
    assert Declaration.of({"a": definition}, {"a": plan}, {"a": stored}, ["s"]).resumable == resumable


def test_a_begun_backfill_continues_and_does_not_resume_again() -> None:
    known = {"a": _STOPPED, "a.next": replace(_STOPPED, name="a.next", stopped_epoch=None)}
    declaration = Declaration.of({"a": ViewDefinition("a", "SELECT 1")}, {"a": _PLAN}, known, ["s"])
    assert (declaration.starts["a"], declaration.resumable) == (Start.BACKFILLS, {})


@pytest.mark.parametrize("during", ["rows", "history"])
def test_a_backfill_that_fails_leaves_the_shown_rows(views: Views, during: str) -> None:
    views.declare({"a": "append"})
    before = views.run("s")
    views.declare({"a": "append"}, identity="another")
    views.run("s")
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, None), "only the new one gets rows"
    if during == "rows":
        views.failing = {"a.next"}
    else:
        views.recorded.fail(ViewFailedError("a", "over rows", "too wet"))
        assert views.recorded.has_news
        views.declare({"a": "append"}, identity="another")
        assert not views.backfills.plans, "the next epoch records the failure first"
    done = views.run("s")
    assert [*done.views] == ["a"] and done.views["a"] == before.views["a"] and "a.next" in done.dropped
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, "too wet")


def test_a_replaced_view_that_comes_back_lacks_the_rows_since_then(views: Views) -> None:
    """While another definition was built beside it, epochs with rows went by."""
    views.declare({"a": "append"})
    views.run("s")
    views.declare({"a": "append"}, identity="another")
    views.run("s")
    views.declare({"a": "append"})
    assert not views.maintained
    done = views.run("s")
    assert [*done.views] == ["a", "a.next"] and done.views["a.next"].path == "views/a-3.lance"


def test_a_view_that_was_replaced_by_one_that_waits_lacks_the_rows_since_then(views: Views) -> None:
    """A source of the other definition has no schema yet, and epochs with rows went by."""
    views.declare({"a": "append"})
    before = views.run("s")
    views.declare({"a": "append"}, waiting="a")
    done = views.run("s")
    assert done.views["a"] == before.views["a"]
    assert (views.known["a"].stopped_epoch, views.known["a"].error) == (1, None)
    views.declare({"a": "append"})
    assert not views.maintained
    done = views.run("s")
    assert [*done.views] == ["a", "a.next"] and done.views["a.next"].path == "views/a-3.lance"


def test_a_view_that_was_replaced_by_one_that_waits_continues_if_no_epoch_went_by(views: Views) -> None:
    views.declare({"a": "append"})
    views.run("s")
    views.declare({"a": "append"}, waiting="a")
    views.declare({"a": "append"})
    assert [*views.maintained] == ["a"] and not views.backfills.plans
    views.maintained.clear()
    assert views.run().stopped == {}


def test_common_rows_end_when_the_last_view_with_them_has_failed(views: Views) -> None:
    definitions = {name: ViewDefinition(name, "SELECT * FROM s") for name in ("a", "b")}
    plans = {name: plan_of(name, "append") for name in ("a.1", "a", "b.1", "b")}
    plans |= {name: replace(plans[name], content="the same rows") for name in ("a.1", "b.1")}
    planned = {name: PlannedView(definitions[name[0]], plan, {"s": SCHEMA}) for name, plan in plans.items()}
    declaration = Declaration.of(definitions, plans, {}, ())
    views.maintained = {
        name: Dataset(plan) for name, plan in views.recorded.declare(definitions, planned, declaration).items()
    }
    assert {*views.run("s").views} == {"a", "a.1", "b", "b.1"}
    for failed, left in (("a", {"a", "b", "b.1"}), ("b", {"a", "b"})):
        views.failing = {failed}
        assert {*views.run("s").views} == left
    assert {*views.run("s").views} == {"a", "b"}


def test_a_full_view_that_fails_stops_at_its_last_recomputation(views: Views) -> None:
    views.declare({"f": "full"})
    views.run("s")
    views.run()
    assert views.run().views["f"].reflects_epoch == 1
    views.full._run = _fails
    views.run("s")
    done = views.run("s")
    assert done.views["f"].reflects_epoch == 1
    assert (views.known["f"].stopped_epoch, views.known["f"].error) == (1, "too wet")
    views.declare({"f": "full"})
    assert not views.full.plans and not views.recorded.has_news


def test_a_full_view_that_fails_at_once_is_empty(views: Views) -> None:
    views.full._run = _fails
    views.declare({"f": "full"})
    views.run("s")
    done = views.run("s")
    assert done.views["f"].path == "views/f-2-empty.lance" and done.dropped == ("f.next",)
    assert (views.known["f"].created_epoch, views.known["f"].stopped_epoch, views.known["f"].error) == (2, 0, "too wet")


def _fails(view: str, refresh: object) -> ViewVersion:
    raise ViewFailedError(view, "over all rows", "too wet")


def test_a_stale_view_is_declared_again_after_its_replacement_failed_at_once(views: Views) -> None:
    own: dict[str, ViewClass] = {"a": "append"}

    def declare(identity: str) -> None:
        definition = ViewDefinition("a", "SELECT * FROM s", replace=True)
        planned = {
            name: PlannedView(definition, plan_of(name, "append", identity), {"s": SCHEMA}) for name in ("a.1", *own)
        }
        plans = {name: each.plan for name, each in planned.items()}
        recorded = views.recorded
        declaration = Declaration.of({"a": definition}, plans, views.known, recorded.ingested, recorded.ending)
        maintained = recorded.declare({"a": definition}, planned, declaration)
        views.maintained = {name: views.maintained.get(name, Dataset(plan)) for name, plan in maintained.items()}

    too_wet = ViewFailedError("a", "over rows", "too wet")
    declare("first")
    views.run("s")
    views.recorded.fail(too_wet)
    views.run()
    declare("second")
    views.recorded.fail(too_wet)
    declare("first")
    assert "a.1" in views.run().dropped
    assert views.known["a"].identity == "first" and views.known["a"].error
