"""A view with a time to live: at every epoch Spark's answer over the rows that are young enough, in any order."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from actors.sources.event_time import duration_text, event_times_us, microseconds
from actors.sources.row_key import Key
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.ingest.followed_watermarks import followed_watermarks
from spark_bridge.maintenance import parents_backfill
from spark_bridge.maintenance.derived_views import aged_to
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.removal import removal_text
from state.errors import ViewError
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.stored_rows import is_internal_view
from tests.spark_bridge.corrected_view import CorrectedView, Files
from tests.spark_bridge.earlier_rows import EarlierRows
from tests.spark_bridge.followed_view import FollowedView, blocks

_START = datetime(2024, 1, 1, tzinfo=UTC)
_TIMES = {"zoned": pa.timestamp("us", tz="UTC"), "plain": pa.timestamp("us"), "days": pa.date32()}
_GROUPS = (
    "SELECT k, count(*) AS n, sum(x) AS s, min(x) AS lo, max(at) AS latest, count(DISTINCT x) AS d, "
    "sort_array(collect_list(x)) AS xs FROM t WHERE x IS NOT NULL GROUP BY k"
)
_QUERIES = {
    "groups": _GROUPS,
    "all": "SELECT count(*) AS n, avg(x) AS a FROM t",
    "having": "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING count(*) > 2",
    "of_groups": f"SELECT n, count(*) AS ks FROM ({_GROUPS}) GROUP BY n",
    "windows": "SELECT window.start AS since, count(*) AS n FROM t GROUP BY window(at, '10 minutes')",
    "distinct": "SELECT DISTINCT k, x FROM t",
    "rows": "SELECT k, at, x FROM t WHERE x > 1",
    "numbered": "SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY at, x) AS place FROM t",
    "first": "SELECT k, at, x FROM t ORDER BY at, k, x LIMIT 5",
}
_TTL = timedelta(minutes=30)


def _schema(kind: str) -> pa.Schema:
    return pa.schema([("at", _TIMES[kind]), ("k", pa.string()), ("x", pa.int64())])


def _us(minute: float) -> int:
    return (_START + timedelta(minutes=minute) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _rows(chance: random.Random, count: int, minutes: range, kind: str = "zoned") -> pa.Table:
    times = pa.array([_us(chance.choice(minutes)) for _ in range(count)], pa.int64()).cast(_TIMES["plain"])
    columns = [
        times.cast(_TIMES[kind], safe=False),
        pa.array([chance.choice(["a", "b", "c", None]) for _ in range(count)]),
        pa.array([chance.choice([1, 2, 3, None]) for _ in range(count)], pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=_schema(kind))


class Aged(CorrectedView):
    """A view with a time to live.

    Args:
        is_corrected: whether its source is materialized, so that files can be replaced and forgotten.
        is_late: whether it is declared after another view, by `declare`.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        query: str,
        *,
        kind: str = "zoned",
        ttl: timedelta = _TTL,
        is_corrected: bool = False,
        is_late: bool = False,
    ) -> None:
        self._is_corrected, self._ttl_us = is_corrected, ttl // timedelta(microseconds=1)
        self.watermark: int | None = None
        self._term = 1
        self._ingested: dict[int, pa.Table] = {}
        definition = ViewDefinition("v", query, ttl=ttl)
        early = ViewDefinition("early", "SELECT count(*) AS n FROM t")
        self._declared = [early] if is_late else [definition]
        super().__init__(spark, root, definition, ["t"], _schema(kind))

    def new_materializer(self) -> Materializer:
        stored = ["t"] if self._is_corrected else []
        made = Materializer(
            self.spark,
            self.root,
            materialized=stored,
            replacing=stored,
            open_history=self._history,
            backfill_weight=1,
            event_times={"t": "at"},
        )
        if self.epoch:
            made.open(self.views, self.epoch, {"t"})
        self._declare(made)
        return made

    def _declare(self, materializer: Materializer) -> None:
        plans = materializer.declare(self._declared, self.schemas, getattr(self, "catalog", {})).plans
        if "v" in plans:
            self.plan = plans["v"]

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> EarlierRows:
        columns = [name for name in self.schemas["t"].names if name in plan.columns["t"]]
        return EarlierRows("t", self._ingested[epoch].select(columns), progress)

    def declare(self) -> None:
        """Declares the view, which lacks the rows so far."""
        self._declared.append(self.definition)
        self._declare(self.materializer)

    def change(self, query: str) -> None:
        """Declares another query in place of the view."""
        self.definition = replace(self.definition, query=query, replace=True)
        self._declared = [self.definition]
        self._declare(self.materializer)

    @property
    def is_shown(self) -> bool:
        """Whether readers see the view as it is declared; a changed one shows what it did until then."""
        return "v" in self.views and self.catalog["v"].identity == self.plan.identity

    def reopen(self) -> None:
        """Ends the attempt; the next one continues from the last epoch."""
        self.materializer.close()
        self._term += 1
        self.views = restored_views(self.views, lambda view: restore(self.root, view, self._term))
        self.materializer = self.new_materializer()

    def lose(self, rows: pa.Table, minute: int) -> None:
        """Runs an epoch that is never committed, and ends the attempt."""
        given = {"t": blocks(rows, 2, self.materializer.columns()["t"])}
        self.materializer.run_epoch(self.epoch + 1, given, (), {"t": _us(minute)})
        self.reopen()

    def step(
        self, new: pa.Table | None, minute: int | None, replaced: Mapping[str, pa.Table | None] = MappingProxyType({})
    ) -> None:
        """Runs an epoch, in which a watermark comes into force, in minutes."""
        watermarks = {} if minute is None else {"t": _us(minute)}
        if self._is_corrected:
            files: Files = {} if new is None else {("t", f"f{self.epoch}"): new}
            self.watermarks = watermarks
            self.correct(files, {("t", path): rows for path, rows in replaced.items()})
        else:
            self.epoch += 1
            given = {} if new is None else {"t": blocks(new, 2, self.materializer.columns()["t"])}
            self.rows["t"] = pa.concat_tables([self.rows["t"], *([] if new is None else [new])])
            self._ingested[self.epoch] = self.rows["t"]
            done = self.materializer.run_epoch(self.epoch, given, (), watermarks)
            self.views = done.views
            self.catalog = done.catalog(self.catalog)
        if minute is not None:
            self.watermark = max(_us(minute), self.watermark or _us(minute))
        assert not self.is_shown or aged_to("v", self.views) == self.watermark

    def young(self, watermark: int | None) -> pa.Table:
        """The rows that count at a watermark."""
        rows = self.rows["t"]
        if watermark is None:
            return rows
        return rows.filter(pc.greater_equal(event_times_us(rows["at"]), watermark - self._ttl_us))

    def num_young(self, watermark: int) -> int:
        """The number of these rows, of those that `_GROUPS` uses."""
        rows = self.young(watermark)
        return int(rows.num_rows - rows["x"].null_count)

    def check(self) -> None:
        """Compares the view with Spark's answer over the rows that count."""
        every = self.rows
        self.rows = {"t": self.young(self.watermark)}
        super().check()
        self.rows = every

    @property
    def num_kept(self) -> int:
        """The number of rows that are kept below the view."""
        hidden = [each for name, each in self.views.items() if is_internal_view(name)]
        [rows] = [each for each in hidden if followed_watermarks(each)]
        return int(FollowedView.open(self.root, rows).count_rows())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "groups" else pytest.mark.more) for name in _QUERIES]
)
def test_a_view_is_sparks_answer_over_the_rows_that_are_young_enough(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(f"ttl {name}")
    view = Aged(local_spark, tmp_path, _QUERIES[name])
    for epoch in range(14):
        now = 10 * epoch
        if epoch in (4, 9):
            view.reopen()
        if epoch == 7:
            view.lose(_rows(chance, 9, range(now)), now)
        # Rows come in any order: some are older than the time to live when they come.
        rows = None if epoch in (5, 11) else _rows(chance, 12, range(max(0, now - 60), now + 5))
        view.step(rows, None if epoch < 2 or epoch == 8 else now - 5)
        view.check()
    assert view.young(view.watermark).num_rows < view.rows["t"].num_rows
    view.step(None, 1_000)
    view.check()
    view.step(None, 1_001)
    assert view.num_kept == 0
    view.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("kind", [pytest.param("plain", marks=pytest.mark.more), "days"])
def test_event_times_without_a_zone_and_days_age_too(local_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    chance, day = random.Random(kind), 24 * 60
    view = Aged(local_spark, tmp_path, _GROUPS, kind=kind, ttl=timedelta(days=3))
    for epoch in range(8):
        view.step(_rows(chance, 9, range(max(0, (epoch - 5) * day), epoch * day + 1), kind), epoch * day)
        view.check()
    assert 0 < view.young(view.watermark).num_rows < 40
    view.step(None, 8 * day)
    assert view.num_kept == view.num_young(_us(7 * day))
    view.materializer.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.more) for name in ("groups", "windows", "rows", "of_groups")]
)
def test_files_are_replaced_and_forgotten_below_a_time_to_live(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(f"corrected {name}")
    view = Aged(local_spark, tmp_path, _QUERIES[name], is_corrected=True)
    for epoch in range(14):
        now, replaced = 10 * epoch, dict[str, pa.Table | None]()
        if epoch in (5, 9):
            view.reopen()
        if epoch > 2 and epoch % 2:
            path = f"f{chance.randrange(epoch - 2)}"
            if ("t", path) in view.files:
                # The rows of an old file may be young, and those of a young one old.
                new = _rows(chance, 7, range(max(0, now - 70), now + 5))
                replaced[path] = None if epoch % 4 == 1 else new
        rows = None if epoch in (6, 11) else _rows(chance, 12, range(max(0, now - 60), now + 5))
        view.step(rows, None if epoch < 2 or epoch == 8 else now - 5, replaced)
        view.check()
    view.step(None, 1_000)
    view.check()
    view.step(None, 1_001)
    assert view.num_kept == 0
    view.materializer.close()


@pytest.mark.more
def test_a_view_that_is_declared_late_counts_the_young_rows_of_its_history(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(4)
    view = Aged(local_spark, tmp_path, _GROUPS, is_late=True)
    for epoch in range(4):
        view.step(_rows(chance, 12, range(10 * epoch, 10 * epoch + 20)), 10 * epoch)
    view.declare()
    for epoch in range(4, 60):
        if "v" in view.views:
            break
        if epoch == 6:
            view.reopen()
        if not view.materializer.backfill():
            view.step(_rows(chance, 3, range(60)), 50)
    view.check()
    assert 0 < view.young(view.watermark).num_rows < view.rows["t"].num_rows
    for minute in (200, 205, 210):
        view.step(_rows(chance, 9, range(150, 200)), minute)
        view.check()
    assert view.watermark is not None
    assert view.num_kept == view.num_young(_us(205))
    view.materializer.close()


@pytest.mark.more
def test_the_state_is_bounded_by_the_time_to_live(local_spark: SparkSession, tmp_path: Path) -> None:
    chance, before = random.Random(3), None
    view = Aged(local_spark, tmp_path, _GROUPS)
    for epoch in range(60):
        view.step(_rows(chance, 10, range(10 * epoch, 10 * epoch + 10)), 10 * epoch)
        if before is not None:
            assert view.num_kept == view.num_young(before) <= 60
        before = view.watermark
    view.check()
    view.materializer.close()


@pytest.mark.more
def test_the_order_of_files_changes_no_answer(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(9)
    files = [_rows(chance, 8, range(10 * each, 10 * each + 40)) for each in range(8)]
    answers = []
    for name, order in enumerate((range(8), range(7, -1, -1), chance.sample(range(8), 8))):
        view = Aged(local_spark, tmp_path / str(name), _GROUPS)
        for number, at in enumerate(order):
            view.step(files[at], 30 if number == 2 else None)
        view.step(None, 80)
        answers.append(sorted(map(str, view.stored().to_pylist())))
        view.materializer.close()
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT k, count(*) AS n FROM g GROUP BY k", "it reads view g: declare it over the source"),
        ("SELECT k FROM t UNION ALL SELECT k FROM u", "it reads t and u"),
        ("SELECT k, count(*) AS n FROM n GROUP BY k", "source n has no event time"),
        ("SELECT k, count(*) AS n FROM keyed GROUP BY k", "source keyed has a key"),
        ("SELECT k FROM t WHERE x > (SELECT avg(x) FROM t)", "it compares rows with the value of a subquery"),
        ("SELECT k FROM t WHERE at < now()", "it uses the time of the epoch"),
        ("SELECT k FROM t UNION ALL VALUES ('a')", None),
    ],
)
def test_a_view_without_a_join_that_cannot_have_a_time_to_live_is_refused(
    local_spark: SparkSession, tmp_path: Path, query: str, what: str | None
) -> None:
    keys = {"keyed": Key("k", order_by="x")}
    event_times = {**dict.fromkeys("tu", "at"), "keyed": "at"}
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times=event_times, keys=keys)
    groups = ViewDefinition("g", "SELECT k, count(*) AS n FROM t GROUP BY k")
    places = [pa.field("_path", pa.string()), pa.field("_row", pa.int64())]
    schemas = dict.fromkeys(["t", "u", "n", "keyed"], pa.schema([*_schema("zoned"), *places]))
    refusal = f"view 'v' cannot have ttl=\"7 days\", as {what}" if what else "because of LocalRelation"
    with pytest.raises(ViewError, match=refusal):
        materializer.declare([groups, ViewDefinition("v", query, ttl="7 days")], schemas, {})
    materializer.close()


@pytest.mark.parametrize("option", [{"emit": "on_close"}, {"expire": "by_watermark"}])
def test_a_time_to_live_beside_another_option_by_watermark_is_refused(
    local_spark: SparkSession, tmp_path: Path, option: dict[str, Any]
) -> None:
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times={"t": "at"})
    with pytest.raises(ViewError, match='cannot have ttl="7 days", as'):
        materializer.declare([ViewDefinition("v", _GROUPS, ttl="7 days", **option)], {"t": _schema("zoned")}, {})
    materializer.close()


@pytest.mark.more
def test_it_is_explained_what_a_time_to_live_gives_up(local_spark: SparkSession, tmp_path: Path) -> None:
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times={"t": "at"})
    definitions = [ViewDefinition("v", _GROUPS, ttl="1.5 hours"), ViewDefinition("w", _GROUPS)]
    plans = materializer.declare(definitions, {"t": _schema("zoned")}, {}).plans
    materializer.close()
    text = plans["v"].explain()
    assert "rows whose at is more than 1.5 hours before the watermark of t do not count, and leave, by ttl" in text
    assert "each until the watermark of t is more than 90 minutes after it, by its at" in plans["v.1"].explain()
    assert plans["v"].definition.endswith("\n-- ttl 1.5 hours")
    assert plans["v"].identity != plans["w"].identity
    assert removal_text(Catalyst(local_spark), plans["v.1"]).startswith("one epoch after the watermark has taken")


@pytest.mark.parametrize("text", ["8 days", "1 day", "90 minutes", "1.5 milliseconds", "0.001 milliseconds"])
def test_a_duration_is_shown_as_users_write_it(text: str) -> None:
    assert duration_text(microseconds("ttl", text)) == text
    assert microseconds("ttl", duration_text(microseconds("ttl", text))) == microseconds("ttl", text)


@pytest.mark.more
@pytest.mark.parametrize("way", ["at once", "beside the epochs"])
@pytest.mark.parametrize(
    "after",
    [
        "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING sum(x) > 2",
        "SELECT k, sum(x) AS s, max(at) AS last, min(x) AS lo FROM t GROUP BY k",
    ],
    ids=["a filter above", "further measures"],
)
def test_a_changed_view_counts_the_rows_that_are_young_enough(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, way: str
) -> None:
    chance = random.Random(3)
    view = Aged(local_spark, tmp_path, "SELECT k, sum(x) AS s FROM t GROUP BY k")
    for minute in range(0, 50, 10):
        view.step(_rows(chance, 12, range(minute - 10, minute + 10)), minute)
        view.check()
    if way != "at once":
        monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    view.change(after)
    checked = 0
    for minute in range(50, 150, 10):
        view.step(_rows(chance, 12, range(minute - 10, minute + 10)), minute)
        if view.is_shown:
            view.check()
            checked += 1
        else:
            time.sleep(0.5)
    assert checked > 3
    view.materializer.close()
