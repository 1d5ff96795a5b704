"""Joins whose rows expire: at every epoch Spark's answer over the rows in time, from sides that stay small."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.ingest.followed_watermarks import followed_watermarks
from spark_bridge.maintenance import parents_backfill
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.removal import removal_text
from state.errors import ViewError
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, is_internal_view
from tests.spark_bridge.earlier_rows import EarlierRows
from tests.spark_bridge.followed_view import FollowedView, blocks
from tests.spark_bridge.ways_of_rows import as_if_many

_START = datetime(2024, 1, 1, tzinfo=UTC)
_ORIGIN = [pa.field("_path", pa.string()), pa.field("_row", pa.int64())]
_SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64()), *_ORIGIN])
_ON = "t.k = u.k AND t.at BETWEEN u.at - INTERVAL 60 MINUTES AND u.at + INTERVAL 10 MINUTES"
_JOINS: Mapping[str, tuple[str, int, int]] = {
    # query, and the minutes for which rows of t are needed after their time, and rows of u
    "inner": (f"SELECT t.k, t.at, t.x, u.at AS v, u.x AS y FROM t JOIN u ON {_ON} WHERE t.x IS NOT NULL", 60, 10),
    "other_form": (
        "SELECT t.k, t.x, u.x AS y FROM (SELECT at AS since, k, x FROM t WHERE x > 1) t, u WHERE t.k = u.k "
        "AND u.at + INTERVAL '10' MINUTE >= t.since AND u.at - t.since <= INTERVAL '1' HOUR",
        60,
        10,
    ),
    "grouped": (
        f"SELECT t.k, count(*) AS n, min(u.x) AS lo, max(t.x) AS hi, count(DISTINCT u.x) AS d, "
        f"sort_array(collect_list(t.x)) AS xs FROM t JOIN u ON {_ON} GROUP BY t.k",
        60,
        10,
    ),
    "left": (f"SELECT t.k, t.at, t.x, u.x AS y FROM t LEFT JOIN u ON {_ON} AND u.x > 1", 60, 70),
    "right": (f"SELECT u.k, u.at, u.x, t.x AS y FROM t RIGHT JOIN u ON {_ON} AND t.x > 1", 70, 10),
    "full": (f"SELECT t.k, t.at, t.x, u.k AS l, u.at AS v, u.x AS y FROM t FULL JOIN u ON {_ON}", 70, 70),
    "semi": (f"SELECT k, at, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {_ON} AND u.x > 1)", 60, 70),
    "anti": (f"SELECT k, at, x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {_ON} AND u.x > 1)", 60, 70),
}
_SELF = (
    "SELECT a.k, a.x, b.x AS y FROM t a JOIN t b ON a.k = b.k AND b.at > a.at AND b.at <= a.at + INTERVAL 30 MINUTES"
)


_Place = tuple[str, str, int]
_Uses = Callable[[str, Mapping[str, Any]], bool]


def _all(source: str, row: Mapping[str, Any]) -> bool:
    return True


def _above_one(of: str) -> _Uses:
    return lambda source, row: source != of or (row["x"] or 0) > 1


_USED: Mapping[str, _Uses] = {
    "inner": lambda source, row: source == "u" or row["x"] is not None,
    "other_form": _above_one("t"),
    "left": _above_one("u"),
    "right": _above_one("t"),
    "semi": _above_one("u"),
    "anti": _above_one("u"),
}
"""The rows that the conditions on one side alone leave."""


def _places(source: str, rows: pa.Table, uses: _Uses) -> list[_Place]:
    return [(source, row["_path"], row["_row"]) for row in rows.to_pylist() if uses(source, row)]


def _time(minute: int) -> datetime:
    return _START + timedelta(minutes=minute)


def _us(minute: int) -> int:
    return (_time(minute) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _rows(chance: random.Random, path: str, count: int, minutes: range) -> pa.Table:
    rows = [
        {
            "at": _time(chance.choice(minutes)) + timedelta(seconds=chance.choice([0, 0, 30])),
            "k": chance.choice(["a", "b", "c", None]),
            "x": chance.choice([1, 2, 3, None]),
            "_path": f"/in/{path}",
            "_row": row,
        }
        for row in range(count)
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


class Joined:
    """A view whose joins expire, one that groups its rows, and what both must show.

    Args:
        uses: whether the view uses a row: (source, row) -> answer.
        by_ttl: the declared query, if a time to live of an hour makes the given one of it.
    """

    def __init__(self, spark: SparkSession, root: Path, query: str, uses: _Uses, by_ttl: str | None = None) -> None:
        self._spark, self._root, self._query, self._uses = spark, Location(str(root)), query, uses
        self.num_late = 0
        self._sources = [name for name in "tu" if f" {name} " in query.replace(",", " ")]
        self._definitions = [
            ViewDefinition("v", by_ttl, ttl="1 hour") if by_ttl else ViewDefinition("v", query, expire="by_watermark"),
            ViewDefinition("above", "SELECT k, count(*) AS n FROM v GROUP BY k"),
        ]
        self._schemas: dict[str, pa.Schema | None] = dict.fromkeys(self._sources, _SCHEMA)
        self._epoch, self._term = 0, 1
        self._known: dict[str, CatalogView] = {}
        self.views: Mapping[str, ViewVersion] = {}
        self.watermarks: dict[str, int] = {}
        self._ingested = {0: {name: _SCHEMA.empty_table() for name in self._sources}}
        self._is_rebuilt = False
        self.in_time = {name: _SCHEMA.empty_table() for name in self._sources}
        self.materializer = self._made()

    def _made(self) -> Materializer:
        event_times = dict.fromkeys(self._sources, "at")
        made = Materializer(
            self._spark, self._root, open_history=self._history, event_times=event_times, backfill_weight=1
        )
        if self._epoch:
            made.open(self.views, self._epoch, {*self._sources})
        made.declare(self._definitions, self._schemas, self._known)
        return made

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> EarlierRows:
        [source] = plan.columns
        columns = [name for name in _SCHEMA.names if name in plan.columns[source]]
        return EarlierRows(source, self._ingested[epoch][source].select(columns), progress, 20)

    def rebuild(self) -> None:
        """Rebuilds the views from all rows, late rows too; they show their earlier rows meanwhile."""
        stand = {name: replace(view, stopped_epoch=0) for name, view in self._known.items()}
        self.materializer.declare(self._definitions, self._schemas, stand)
        self._is_rebuilt = True
        self.watermarks = {}
        self.in_time = dict(self._ingested[self._epoch])

    @property
    def is_rebuilt(self) -> bool:
        """Whether the new views are not shown yet."""
        return self._is_rebuilt

    def reopen(self) -> None:
        """Ends the attempt; the next one continues from the last epoch."""
        self.materializer.close()
        self._term += 1
        self.views = restored_views(self.views, lambda view: restore(self._root, view, self._term))
        self.materializer = self._made()

    def _given(self, rows: Mapping[str, pa.Table]) -> dict[str, Any]:
        columns = self.materializer.columns()
        return {name: blocks(each, 2, columns[name]) for name, each in rows.items() if each.num_rows}

    def lose(self, rows: Mapping[str, pa.Table], watermarks: Mapping[str, int]) -> None:
        """Runs an epoch that is never committed, and ends the attempt."""
        at = {name: _us(minute) for name, minute in watermarks.items()}
        self.materializer.run_epoch(self._epoch + 1, self._given(rows), (), at)
        self.reopen()

    def run(self, rows: Mapping[str, pa.Table], watermarks: Mapping[str, int]) -> EpochViews:
        """Runs an epoch, in which watermarks come into force, in minutes; late rows must be named."""
        self._epoch += 1
        late, is_shown = Counter[_Place](), "v" in self.views and not self._is_rebuilt
        before = self._ingested[self._epoch - 1]
        self._ingested[self._epoch] = {
            name: pa.concat_tables([each, rows.get(name, each.slice(0, 0))]) for name, each in before.items()
        }
        for name, each in rows.items():
            least = self.watermarks.get(name)
            is_late = [least is not None and at < _time(least) for at in each["at"].to_pylist()]
            late.update(_places(name, each.filter(pa.array(is_late, pa.bool_())), self._uses))
            kept = each.filter(pa.array([not is_it for is_it in is_late], pa.bool_()))
            self.in_time[name] = pa.concat_tables([self.in_time[name], kept])
        at = {name: _us(minute) for name, minute in watermarks.items()}
        done = self.materializer.run_epoch(self._epoch, self._given(rows), (), at)
        self.views = {**{name: view for name, view in self.views.items() if name not in done.dropped}, **done.views}
        if any(each.name == "v" for each in done.created):
            self._is_rebuilt = False
        self._known = done.catalog(self._known)
        found = Counter[_Place]()
        for each in done.late:
            assert each.view == "v" and each.closed == _us(self.watermarks[each.source])
            found.update(_places(each.source, each.rows, lambda source, row: True))
        assert found == late
        self.num_late += late.total()
        if is_shown:  # nothing is late for a view that lacks rows
            self.watermarks.update(watermarks)
        return done

    def check(self) -> int:
        """Compares both views with Spark's answers over the rows that came in time.  Returns the number of rows."""
        for name, rows in self.in_time.items():
            frame_of_table(self._spark, rows).createOrReplaceTempView(name)
        expected = Counter(map(str, (row.asDict() for row in self._spark.sql(self._query).collect())))
        table = FollowedView.open(self._root, self.views["v"]).to_table()
        names = [name for name in table.column_names if not name.startswith("__sw_")]
        self._spark.sql(self._query).createOrReplaceTempView("v")
        above = {row.k: row.n for row in self._spark.sql(self._definitions[1].query or "").collect()}
        for name in (*self.in_time, "v"):
            self._spark.catalog.dropTempView(name)
        shown = Counter(str(self._as_spark(row)) for row in table.select(names).to_pylist())
        assert shown == expected
        counted = FollowedView.open(self._root, self.views["above"]).to_table(columns=["k", "n"]).to_pylist()
        assert {row["k"]: row["n"] for row in counted} == above
        return int(table.num_rows)

    @staticmethod
    def _as_spark(row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value
            for name, value in row.items()
        }

    @property
    def sides(self) -> dict[str, pa.Table]:
        """Internal view → its stored rows, for internal views that follow watermarks."""
        return {
            name: FollowedView.open(self._root, version).to_table()
            for name, version in self.views.items()
            if is_internal_view(name) and declared_name(name) == "v" and followed_watermarks(version)
        }


def _follow(joined: Joined, chance: random.Random, epochs: range, *, late: bool = True) -> None:
    """Epochs with rows in time and out of order, with late ones among them, and some without rows."""
    for epoch in epochs:
        now = 5 * epoch
        rows = {"t": _rows(chance, f"t{epoch}", 8, range(now - 20, now + 5))}
        rows["u"] = _rows(chance, f"u{epoch}", 6, range(now - 35, now - 10))
        if late and epoch % 5 == 3:
            rows["t"] = pa.concat_tables([rows["t"], _rows(chance, f"late{epoch}", 4, range(-60, now - 24))])
            rows["u"] = pa.concat_tables([rows["u"], _rows(chance, f"late{epoch}", 4, range(-60, now - 39))])
        if epoch % 7 == 2:
            rows.pop(chance.choice(["t", "u"]))
        if epoch % 11 == 6:
            rows = {}
        watermarks = {"t": now - 15, "u": now - 30}
        if epoch % 6 == 4:
            watermarks.pop("u")
        rows = {name: each for name, each in rows.items() if name in joined.in_time}
        if epoch and epoch % 8 == 5:
            joined.lose(rows, watermarks)
        joined.run(rows, {name: each for name, each in watermarks.items() if name in joined.in_time and epoch > 1})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "inner" else pytest.mark.more) for name in _JOINS]
)
def test_a_join_whose_rows_expire_is_sparks_answer_over_the_rows_in_time(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    query, of_t, of_u = _JOINS[name]
    uses = _USED.get(name, _all)
    joined, chance = Joined(local_spark, tmp_path, query, uses), random.Random(f"expiring {name}")
    steps = 6 if name == "inner" else 12
    for start in range(0, 24, steps):
        with as_if_many() if start == 12 else nullcontext():
            _follow(joined, chance, range(start, start + steps))
        assert joined.check()
    assert joined.num_late > 5
    [view] = [each for each in joined.materializer.shown() if each.name == "v"]
    assert view.late_rows == joined.num_late
    before = dict(joined.watermarks)
    joined.run({}, {"t": before["t"] + 5, "u": before["u"] + 5})
    bounds = {"t": before["u"] - of_t, "u": before["t"] - of_u}
    if name in ("left", "semi", "anti", "full"):
        bounds["u"] = min(before["t"] - 10, before["u"] - of_u)
    if name in ("right", "full"):
        bounds["t"] = min(before["u"] - 60, before["t"] - of_t)
    stored = sorted(side.num_rows for side in joined.sides.values())
    joined.materializer.close()
    assert stored == sorted(
        sum(row["at"] >= _time(bounds[source]) and uses(source, row) for row in rows.to_pylist())
        for source, rows in joined.in_time.items()
    )


@pytest.mark.more
def test_late_rows_are_accepted_by_rebuilding_the_view_from_all_rows(local_spark: SparkSession, tmp_path: Path) -> None:
    joined, chance = Joined(local_spark, tmp_path, _JOINS["left"][0], _USED["left"]), random.Random(2)
    _follow(joined, chance, range(15))
    assert joined.num_late and joined.check()
    joined.rebuild()
    for epoch in range(15, 80):
        if not joined.is_rebuilt:
            break
        if not joined.materializer.backfill():
            rows = {name: _rows(chance, f"{name}{epoch}", 3, range(-60, 5 * epoch)) for name in "tu"}
            joined.run(rows, {"t": 5 * epoch, "u": 5 * epoch})
    assert not joined.is_rebuilt
    assert joined.check()
    num_late = joined.num_late
    for minute in (500, 505, 510):
        joined.run({name: _rows(chance, f"{name}{minute}", 9, range(minute)) for name in "tu"}, {"t": minute, "u": 500})
    assert joined.check() and joined.num_late > num_late
    joined.materializer.close()


@pytest.mark.more
def test_a_side_that_is_joined_with_itself_keeps_what_either_needs(local_spark: SparkSession, tmp_path: Path) -> None:
    joined, chance = Joined(local_spark, tmp_path, _SELF, _all), random.Random(5)
    _follow(joined, chance, range(18))
    assert joined.check()
    assert all(min(side["at"].to_pylist()) >= _time(joined.watermarks["t"] - 45) for side in joined.sides.values())
    joined.materializer.close()


@pytest.mark.more
def test_sides_stay_small_over_a_hundred_epochs_in_the_root_and_in_memory(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    joined, chance = Joined(local_spark, tmp_path, _JOINS["left"][0], _USED["left"]), random.Random(11)
    most, most_in_memory = Counter[str](), 0
    for epoch in range(100):
        now = 5 * epoch
        rows = {"t": _rows(chance, f"t{epoch}", 8, range(now - 20, now + 5))}
        rows["u"] = _rows(chance, f"u{epoch}", 6, range(now - 35, now - 10))
        joined.run(rows, {"t": now - 15, "u": now - 30})
        joined.materializer.tidy()
        for name, side in joined.sides.items() if epoch > 40 else ():
            most[name] = max(most[name], side.num_rows)
            most_in_memory = max(most_in_memory, *(each.rows for each in joined.materializer.in_memory.values()))
    assert joined.check() > 500
    joined.materializer.close()
    assert joined.in_time["t"].num_rows == 800
    # A row of t is needed for 60 minutes after it by the watermark of u, which is 35 minutes behind.
    assert max(most.values()) <= 8 * (60 + 35 + 10) // 5
    assert 0 < most_in_memory <= 8 * (60 + 35 + 10) // 5


@pytest.mark.more
def test_no_row_expires_before_the_view_that_joins_it_has_all(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", 0)
    joined, chance = Joined(local_spark, tmp_path, _JOINS["inner"][0], _USED["inner"]), random.Random(3)
    for epoch in range(40):
        if "above" in joined.views:
            break
        now = 30 * epoch
        rows = {name: _rows(chance, f"{name}{epoch}", 8, range(now - 60, now)) for name in "tu"}
        joined.run(rows, {"t": now, "u": now})
        if epoch == 0:
            joined.reopen()
    assert "above" in joined.views
    assert joined.check() > 0
    joined.materializer.close()


@pytest.mark.more
def test_rows_that_expire_are_not_shared_with_a_view_that_keeps_them(local_spark: SparkSession, tmp_path: Path) -> None:
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times=dict.fromkeys("tu", "at"))
    query = _JOINS["inner"][0]
    definitions = [ViewDefinition("kept", query), ViewDefinition("v", query, expire="by_watermark")]
    definitions.append(ViewDefinition("w", query.replace("t.x,", "t.x + 1 AS x,"), expire="by_watermark"))
    plans = materializer.declare(definitions, dict.fromkeys("tu", _SCHEMA), {}).plans
    materializer.close()
    sides = [plan for name, plan in plans.items() if is_internal_view(name)]
    assert [plan.content is None for plan in sides] == [plan.expiry is not None for plan in sides]
    assert len({plan.identity for plan in sides}) == len(sides) == 6, "another query would miss rows that have left"
    assert plans["kept"].identity != plans["v"].identity
    text = plans["v.1"].explain()
    assert "that of u is more than 1 hour after it" in text and "is late, and is left out" in text
    assert removal_text(Catalyst(local_spark), plans["v.1"]).startswith("when the watermarks tell that no partner")
    assert removal_text(Catalyst(local_spark), plans["kept.1"]).startswith("never")


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT at, k FROM t", "it joins no rows"),
        ("SELECT t.k, u.x FROM t JOIN u USING (k)", "no join bounds the difference of two event times, of t.at and u"),
        ("SELECT t.k FROM t JOIN u ON t.k = u.k AND t.at > u.at", "no join bounds the difference"),
        (f"SELECT t.k FROM t JOIN u ON {_ON.replace('10 MINUTES', '1 MONTH')}", "no join bounds the difference"),
        (
            "SELECT t.k FROM t JOIN u ON t.k = u.k AND t.at BETWEEN u.at + CAST(INTERVAL 90 MINUTES AS INTERVAL HOUR) "
            "AND u.at + INTERVAL 1 DAY",
            "no join bounds the difference",
        ),
        (f"SELECT t.k FROM t JOIN (SELECT k, at + INTERVAL 1 DAY AS at FROM u) u ON {_ON}", "no join bounds"),
        (f"SELECT t.k FROM t JOIN (SELECT k, max(at) AS at FROM u GROUP BY k) u ON {_ON}", "no join bounds"),
        (f"SELECT t.k FROM t JOIN n u ON {_ON}", "source n has no event time"),
        (f"SELECT t.k FROM t JOIN m u ON {_ON}", "rows of source m can be replaced or forgotten"),
        (f"SELECT t.k FROM t JOIN p u ON {_ON}", "source p has no _path and _row"),
        (f"SELECT t.k FROM t JOIN u ON {_ON} JOIN g ON t.k = g.k", "it reads view g"),
        (f"SELECT t.k, count(u.x) AS n FROM t LEFT JOIN u ON {_ON} GROUP BY t.k", "it groups the rows of a join"),
        (
            f"SELECT k, min(x) AS lo FROM (SELECT t.k, u.x FROM t JOIN u ON {_ON} UNION ALL SELECT k, x FROM m) "
            "GROUP BY k",
            "it groups the rows of a join together with other rows",
        ),
        (
            "SELECT t.k FROM t JOIN u ON t.k = u.k AND t.at BETWEEN u.at - INTERVAL 1 HOUR AND u.at "
            "JOIN u w ON t.k = w.k AND w.at > t.at",
            "joined without bounds as well",
        ),
    ],
)
def test_a_join_whose_rows_cannot_expire_is_refused_with_the_reason(
    local_spark: SparkSession, tmp_path: Path, query: str, what: str
) -> None:
    bare = pa.schema([*_SCHEMA][:3])
    event_times = dict.fromkeys("tump", "at")
    materializer = Materializer(local_spark, Location(str(tmp_path)), materialized=["m"], event_times=event_times)
    schemas: dict[str, pa.Schema | None] = {**dict.fromkeys("tumn", _SCHEMA), "p": bare}
    groups = ViewDefinition("g", "SELECT k, count(*) AS n FROM t GROUP BY k")
    with pytest.raises(ViewError, match=what):
        materializer.declare([groups, ViewDefinition("v", query, expire="by_watermark", on_full="allow")], schemas, {})
    materializer.close()


@pytest.mark.more
@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("JOIN", "t.k, count(*) AS n, sum(t.x + u.x) AS s"),
        ("LEFT JOIN", "t.k, t.x, u.x AS y"),
        ("FULL JOIN", "t.k, t.x, u.k AS l, u.x AS y"),
    ],
)
def test_rows_further_apart_than_the_time_to_live_are_no_partners_and_leave(
    local_spark: SparkSession, tmp_path: Path, kind: str, columns: str
) -> None:
    declared, groups = f"SELECT {columns} FROM t {kind} u ON t.k = u.k", " GROUP BY t.k" if "(" in columns else ""
    query = f"{declared} AND abs(timestampdiff(SECOND, t.at, u.at)) <= 3600{groups}"
    joined = Joined(local_spark, tmp_path, query, _all, declared + groups)
    chance = random.Random(f"time to live {kind}")
    for start in range(0, 24, 8):
        _follow(joined, chance, range(start, start + 8))
        assert joined.check()
    assert joined.num_late > 5
    for minute in (300, 301):
        joined.run({}, {"t": minute, "u": minute})
    assert joined.check() and [side.num_rows for side in joined.sides.values()] == [0, 0]
    [view] = [each for each in joined.materializer.shown() if each.name == "v"]
    assert view.late_rows == joined.num_late
    joined.materializer.close()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", "no join has a timestamp that is an event"),
        ("SELECT t.k FROM t JOIN n ON t.k = n.k", "source n has no event time"),
        ("SELECT t.k, count(u.x) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k", "it groups the rows of a join"),
        ("SELECT t.k FROM t JOIN days d ON t.k = d.k", "the event time of source days is a date: declare a schema in"),
    ],
)
def test_a_view_that_cannot_have_a_time_to_live_is_refused(
    local_spark: SparkSession, tmp_path: Path, query: str, what: str
) -> None:
    event_times = dict.fromkeys(("t", "u", "days"), "at")
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times=event_times)
    days = _SCHEMA.set(0, pa.field("at", pa.date32()))
    with pytest.raises(ViewError, match=f"view 'v' cannot have ttl=\"7 days\", as {what}"):
        materializer.declare(
            [ViewDefinition("v", query, ttl="7 days")], {**dict.fromkeys("tun", _SCHEMA), "days": days}, {}
        )
    materializer.close()


@pytest.mark.parametrize(
    ("ttl", "what"), [("0 days", "give a duration above 0"), ("a week", "give a duration such as")]
)
def test_a_time_to_live_that_is_no_duration_is_refused(ttl: str, what: str) -> None:
    with pytest.raises(ViewError, match=f"view 'v': ttl='{ttl}': {what}"):
        ViewDefinition("v", "SELECT 1", ttl=ttl)


def test_an_expiry_that_there_is_not_is_refused() -> None:
    with pytest.raises(ViewError, match="view 'v': expire='never' is not 'by_watermark'"):
        ViewDefinition("v", "SELECT 1", expire="never")  # type: ignore[arg-type]
