"""Joins whose rows expire: at every epoch Spark's answer over the rows that came in time, from sides that stay small."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.catalyst.arrow_frames import frame_of_table
from spark_bridge.hand_over.epoch_rows import EpochViews
from spark_bridge.materializer import Materializer
from spark_bridge.views import derived_views
from spark_bridge.views.expiring_rows import followed_watermarks
from state.errors import ViewError
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, is_hidden_view
from tests.spark_bridge.followed_view import FollowedView, blocks

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
        memory: the bound of the rows in memory.
    """

    def __init__(self, spark: SparkSession, root: Path, query: str, *, memory: int = 1 << 20) -> None:
        self._spark, self._root, self._query, self._memory = spark, Location(str(root)), query, memory
        self._sources = [name for name in "tu" if f" {name} " in query.replace(",", " ")]
        self._definitions = [
            ViewDefinition("v", query, expire="by_watermark"),
            ViewDefinition("above", "SELECT k, count(*) AS n FROM v GROUP BY k"),
        ]
        self._schemas: dict[str, pa.Schema | None] = dict.fromkeys(self._sources, _SCHEMA)
        self._epoch, self._term = 0, 1
        self._known: dict[str, CatalogView] = {}
        self.views: Mapping[str, ViewVersion] = {}
        self.watermarks: dict[str, int] = {}
        self.in_time = {name: _SCHEMA.empty_table() for name in self._sources}
        self.materializer = self._made()

    def _made(self) -> Materializer:
        event_times = dict.fromkeys(self._sources, "at")
        made = Materializer(self._spark, self._root, join_memory_bytes=self._memory, event_times=event_times)
        if self._epoch:
            made.open(self.views, self._epoch, {*self._sources})
        made.declare(self._definitions, self._schemas, self._known)
        return made

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
        late = Counter[tuple[str, str, int]]()
        for name, each in rows.items():
            least = self.watermarks.get(name)
            is_late = [least is not None and at < _time(least) for at in each["at"].to_pylist()]
            late.update((name, "/in/", 1) for is_it in is_late if is_it)
            self.in_time[name] = pa.concat_tables([self.in_time[name], each.filter(pa.array(is_late)).slice(0, 0)])
            kept = each.filter(pa.array([not is_it for is_it in is_late], pa.bool_()))
            self.in_time[name] = pa.concat_tables([self.in_time[name], kept])
        at = {name: _us(minute) for name, minute in watermarks.items()}
        done = self.materializer.run_epoch(self._epoch, self._given(rows), (), at)
        self.views = {**{name: view for name, view in self.views.items() if name not in done.dropped}, **done.views}
        self._known = done.catalog(self._known)
        for each in done.late:
            assert each.view == "v" and each.closed == _us(self.watermarks[each.source])
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
        return table.num_rows

    @staticmethod
    def _as_spark(row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value
            for name, value in row.items()
        }

    @property
    def sides(self) -> dict[str, pa.Table]:
        """Hidden view → its stored rows, of those that follow watermarks."""
        return {
            name: FollowedView.open(self._root, version).to_table()
            for name, version in self.views.items()
            if is_hidden_view(name) and declared_name(name) == "v" and followed_watermarks(version)
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
    "name", [pytest.param(name, marks=[] if name in ("inner", "left") else pytest.mark.more) for name in _JOINS]
)
def test_a_join_whose_rows_expire_is_sparks_answer_over_the_rows_in_time(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    query, of_t, of_u = _JOINS[name]
    joined, chance = Joined(local_spark, tmp_path, query), random.Random(f"expiring {name}")
    for start in range(0, 36, 6):
        _follow(joined, chance, range(start, start + 6))
        assert joined.check() or not start
    before = joined.watermarks
    joined.run({}, {"t": before["t"] + 5, "u": before["u"] + 5})
    sides = joined.sides
    assert len(sides) == 2
    bounds = {"t": before["u"] - of_t, "u": before["t"] - of_u}
    if name in ("left", "semi", "anti", "full"):
        bounds["u"] = min(before["t"] - 10, before["u"] - of_u)
    if name in ("right", "full"):
        bounds["t"] = min(before["u"] - 60, before["t"] - of_t)
    of_sides = {name: side.to_pylist() for name, side in sides.items()}
    stored = sorted(len(rows) for rows in of_sides.values())
    filters = {"inner": lambda row: row["x"] is not None, "other_form": lambda row: (row["x"] or 0) > 1}
    is_kept = filters.get(name, lambda row: True)
    expected = sorted(
        sum(row["at"] >= _time(bounds[source]) and (source == "u" or is_kept(row)) for row in rows.to_pylist())
        for source, rows in joined.in_time.items()
    )
    joined.materializer.close()
    assert stored == expected
