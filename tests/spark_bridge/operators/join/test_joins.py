"""Joins follow the changes of both sides, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge import materializer
from spark_bridge.changes import hot_keys, memory_tier, rows_before
from spark_bridge.changes.memory_tier import MemoryTier
from spark_bridge.datasets.look_ups import look_up
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.maintenance import parents_backfill
from spark_bridge.plans.view_definition import ViewDefinition
from state.tables.stored_rows import is_internal_view
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.numbered_rows import cost
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, random_epoch, random_files
from tests.spark_bridge.ways_of_rows import kept_at_once

SOURCES = ("t", "u", "w")
JOINS: Mapping[str, tuple[str, str]] = {
    "inner": ("append", "SELECT t.k, t.i, u.i AS j FROM t JOIN u ON t.g = u.g"),
    "grouped": ("aggregate", "SELECT u.k, count(*) AS n, sum(t.i) AS s FROM t JOIN u USING (g) GROUP BY u.k"),
    "left": ("append", "SELECT t.k, t.g, u.i FROM t LEFT JOIN u ON t.g = u.g AND t.i < u.i"),
    "right": ("append", "SELECT t.k, u.g, u.i FROM t RIGHT JOIN u ON t.g = u.g"),
    "full": ("append", "SELECT t.k, t.g, u.g AS h, u.i FROM t FULL JOIN u ON t.g = u.g AND t.i < u.i"),
    "semi": ("append", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.i > t.i)"),
    "anti": ("append", "SELECT k, i FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g)"),
    "exists_or": ("append", "SELECT k, i FROM t WHERE b OR g IN (SELECT g FROM u WHERE i > 0)"),
    "scalar": ("append", "SELECT k, (SELECT max(u.i) FROM u WHERE u.g = t.g) AS m, "
                         "(SELECT sum(u.i) FROM u WHERE u.k = t.k) AS n FROM t"),
    "self": ("aggregate", "SELECT x.k, count(*) AS n, sum(y.i) AS s FROM t x JOIN t y ON x.g = y.g GROUP BY x.k"),
    "null_safe": ("append", "SELECT t.i, u.i AS j FROM t JOIN u ON t.k <=> u.k AND t.g = u.g"),
    "three": ("aggregate", "SELECT w.k, count(*) AS n, max(t.i) AS m FROM t, u, w "
                           "WHERE t.g = u.g AND u.k = w.k AND t.b GROUP BY w.k"),
    "of_groups": ("append", "SELECT t.i, s.n FROM t JOIN (SELECT g, count(*) AS n FROM u GROUP BY g) s USING (g)"),
    "two_outer": ("aggregate", "SELECT t.k, count(u.i) AS n, sum(w.i) AS s FROM t LEFT JOIN u ON t.g = u.g "
                               "LEFT JOIN w ON u.k = w.k GROUP BY t.k"),
    "floats": ("append", "SELECT t.x, u.i FROM t JOIN u ON t.x = u.x"),
    "distinct": ("aggregate", "SELECT t.k, count(DISTINCT u.i) AS n, min(u.i) AS lo FROM t JOIN u USING (g) "
                              "GROUP BY t.k"),
    "intersect": ("aggregate", "SELECT k, g FROM t INTERSECT SELECT k, g FROM u"),
    "except": ("aggregate", "SELECT k, g FROM t EXCEPT SELECT k, g FROM u"),
    "intersect_all": ("append", "SELECT k, g FROM t INTERSECT ALL SELECT k, g FROM u"),
    "except_all": ("append", "SELECT k, g FROM t EXCEPT ALL (SELECT k, g FROM u UNION ALL SELECT k, g FROM w)"),
    "in_intersect": ("append", "SELECT k, i FROM t WHERE g IN (SELECT g FROM u INTERSECT SELECT g FROM w)"),
    "not_in_except": ("append", "SELECT k, i FROM t WHERE NOT EXISTS (SELECT 1 FROM (SELECT g FROM u EXCEPT "
                                "SELECT g FROM w WHERE b) s WHERE s.g = t.g)"),
    "counted_except": ("aggregate", "SELECT count(*) AS n FROM (SELECT k, g FROM t EXCEPT SELECT k, g FROM u)"),
    "counted_distinct": ("aggregate", "SELECT count(*) AS n FROM (SELECT DISTINCT t.k, u.g FROM t JOIN u USING (g))"),
    "counted_union": ("aggregate", "SELECT count(*) AS n FROM (SELECT t.k FROM t JOIN u USING (g) UNION ALL "
                                   "SELECT k FROM w UNION ALL SELECT k FROM w GROUP BY k)"),
    "exploded": ("append", "SELECT t.k, e FROM t JOIN u USING (g) LATERAL VIEW explode(array(t.i, u.i)) x AS e"),
    "scalar_subquery_rows": ("append", "SELECT t.k, u.i FROM t LEFT JOIN u USING (g) UNION ALL SELECT k, i FROM w"),
    "beside_groups": ("aggregate", "SELECT k, count(*) AS n, sum(i) AS s FROM (SELECT t.k, u.i FROM t JOIN u USING (g) "
                      "UNION ALL SELECT k, i FROM w UNION ALL SELECT k, max(i) FROM w GROUP BY k) GROUP BY k"),
    "values": ("append", "SELECT t.k, v.name FROM t LEFT JOIN VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'no') "
                         "AS v(g, name) ON t.g = v.g AND v.name <> upper(t.k)"),
    "values_left": ("aggregate", "SELECT v.h, count(*) AS n FROM VALUES (1, 2), (2, 2), (3, 1) AS v(g, h) "
                                 "JOIN t ON t.g <= v.g JOIN u ON u.g = v.h GROUP BY v.h"),
    "values_in": ("append", "SELECT k FROM t WHERE b OR g IN (SELECT g FROM VALUES (1), (3) AS v(g))"),
    "values_anti": ("append", "SELECT k FROM t WHERE NOT EXISTS "
                              "(SELECT 1 FROM VALUES (1), (NULL) AS v(g) WHERE v.g = t.g)"),
    "values_crossed": ("append", "SELECT t.k, v.n FROM t CROSS JOIN VALUES (1), (1), (2) AS v(n)"),
    "nested": ("append", "SELECT k FROM t WHERE g IN "
                         "(SELECT g FROM u WHERE i > (SELECT avg(i) FROM w WHERE w.k = u.k))"),
    "or": ("append", "SELECT t.i, u.i AS j FROM t JOIN u ON (t.g = u.g AND t.i > 0) OR (t.g = u.g AND u.i > 0)"),
    "lateral": ("append", "SELECT t.k, s.m FROM t, LATERAL (SELECT max(i) AS m FROM u WHERE u.g = t.g) s"),
}  # fmt: skip
QUICK = ("left", "three")


JOINED = ViewDefinition("joined", JOINS["left"][1])
OVER = {
    "grouped": "SELECT k, count(*) AS n, sum(i) AS s, min(g) AS lo FROM joined GROUP BY k",
    "projection": "SELECT k, i + 1 AS i FROM joined WHERE g > 0",
    "joined_again": "SELECT j.k, j.i, w.i AS x FROM joined j FULL JOIN w ON j.g = w.g",
    "of_itself": "SELECT one.k, count(*) AS n FROM joined one JOIN joined other ON one.i = other.i GROUP BY one.k",
}


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", few(JOINS, *QUICK))
def test_join_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"join {name}")
    view_class, query = JOINS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, chance)


@pytest.mark.more
@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT t.k, u.i FROM t JOIN u USING (g)", "g=2"),
        ("SELECT u.g, count(t.k) AS n FROM t RIGHT JOIN u USING (g) GROUP BY u.g", "g=2"),
        ("SELECT k, count(*) OVER (PARTITION BY g) AS n FROM t", "g=2"),
        ("SELECT t.k, u.i FROM t JOIN u ON t.g + 1 = u.g + 1", "hash "),
    ],
    ids=["inner", "right", "window", "by an expression"],
)
def test_the_key_with_most_rows_is_named(
    local_spark: SparkSession, tmp_path: Path, query: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("i", pa.int64())])
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ("t", "u"), schema)

    def rows(*groups: int) -> pa.Table:
        return pa.table([["a"] * len(groups), groups, range(len(groups))], schema=schema)

    few_rows = graph.correct({("t", "a"): rows(1, 2, 3, 2), ("u", "a"): rows(1, 2, 2, 2)})
    assert not [span for span in few_rows.work if span.hot]
    monkeypatch.setattr(hot_keys, "HOT_ROWS", 2)
    done = graph.correct({("t", "b"): rows(1, 2), ("u", "b"): rows(2, 3)})
    [hot] = [span.hot for span in done.work if span.hot and span.name == "v"]
    assert hot.key.startswith(key) and hot.rows >= 4
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_sides_in_memory_are_not_looked_up_in_the_root(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random("in memory")
    asked: list[str] = []

    def counted(dataset: lance.LanceDataset, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
        asked.append(by)
        return look_up(dataset, by, keys, columns)

    monkeypatch.setattr(rows_before, "look_up", counted)
    with kept_at_once():
        graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", JOINS["three"][1])], SOURCES)
    for number in range(12):
        random_epoch(graph, chance)
        if number == 2:
            assert asked, "the first ones are"
            asked.clear()
    assert not asked
    in_memory = graph.materializer.in_memory
    assert in_memory.keys() == {each.path for name, each in graph.views.items() if is_internal_view(name)}
    assert sum(size.rows for size in in_memory.values()) > 0
    graph.materializer.close()


@pytest.mark.more
def test_sides_that_are_looked_up_take_the_place_of_those_that_were(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 20_000
    monkeypatch.setattr(materializer, "MemoryTier", lambda _: MemoryTier(room))
    monkeypatch.setattr(memory_tier, "_HALF_LIFE_EPOCHS", 1)
    monkeypatch.setattr(memory_tier, "_BYTES_A_LOOK_UP", room)
    chance = random.Random("room for one view")
    views = [
        ViewDefinition("first", "SELECT t.k, u.i FROM t JOIN u USING (g)"),
        ViewDefinition("second", "SELECT w.k, x.i FROM w JOIN x USING (g)"),
    ]
    with kept_at_once():
        graph = ViewGraph(local_spark, tmp_path, views, ("t", "u", "w", "x"))
    graph.correct({(source, "present"): random_rows(chance, 100) for source in graph.schemas})

    def in_memory_after(source: str, epochs: int) -> set[str]:
        for _ in range(epochs):
            graph.correct({(source, f"{graph.epoch}"): random_rows(chance, 1)})
        return {path.split(".")[0] for path in graph.materializer.in_memory}

    assert in_memory_after("t", 12) == {"views/first"}
    assert "views/second" in in_memory_after("w", 4)
    graph.check()
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("kind", few(["INNER", "LEFT", "FULL"], "LEFT"))
def test_many_rows_of_one_side_meet_the_other(local_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("g", pa.int32())])
    query = f"SELECT u.k, count(t.k) AS n, sum(t.k) AS s FROM t {kind} JOIN u ON t.g = u.g GROUP BY u.k"
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ("t", "u"), schema)

    def rows(number: int) -> pa.Table:
        return pa.table([range(number), [each % 20 for each in range(number)]], schema=schema)

    graph.correct({("u", "a"): rows(16)})
    graph.correct({("t", "a"): rows(20_000)})
    graph.check()
    graph.correct({("t", "b"): rows(20_000)}, {("u", "a"): rows(18)})
    graph.check()
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("name", few(OVER, "joined_again"))
def test_view_over_a_join_follows_it(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"over {name}")
    graph = ViewGraph(local_spark, tmp_path, [JOINED, ViewDefinition("over", OVER[name])], SOURCES)
    for number in range(5):
        if number == 3:
            graph.reopen()
        random_epoch(graph, chance)
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("name", few(OVER, "grouped"))
def test_views_over_joins_that_are_added_later_get_all_rows(
    local_spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are computed beside epochs that add, replace and remove rows."""
    monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    chance = random.Random(f"late {name}")
    total = ViewDefinition("total", "SELECT g, count(*) AS n FROM w GROUP BY g")
    graph = ViewGraph(local_spark, tmp_path, [total], SOURCES)
    random_epoch(graph, chance)
    graph.declare([total, JOINED, ViewDefinition("over", OVER[name])])
    for number in range(60):
        if not graph.materializer.backfilling:
            break
        graph.materializer.backfill()
        new, replaced = random_files(graph, chance)
        # A correction makes the sides of a join begin again, as long as they lack history.
        graph.correct(new, replaced if number > 40 or {"joined.1", "joined.2"} <= graph.views.keys() else {})
        graph.check("total", *(name for name in ("joined", "over") if name in graph.views))
    graph.settle()
    for _ in range(2):
        random_epoch(graph, chance)
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize(
    "name", few({"inner": 0, "two_outer": 0, "anti": 0, "scalar_subquery_rows": 0, "beside_groups": 0}, "two_outer")
)
def test_join_of_sources_whose_rows_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", JOINS[name][1]), dict.fromkeys(SOURCES, SCHEMA))
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()


@pytest.mark.more
def test_a_row_without_a_partner_counts_none(local_spark: SparkSession, tmp_path: Path) -> None:
    """Spark itself answers null if the other side has no rows at all."""
    query = "SELECT k, (SELECT count(*) FROM u WHERE u.g = t.g) AS n FROM t"
    schema = pa.schema([("k", pa.string()), ("g", pa.int32())])
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ("t", "u"), schema)

    def rows(*of: tuple[str, int | None]) -> pa.Table:
        return pa.table([[k for k, _ in of], [g for _, g in of]], schema=schema)

    def counts() -> dict[str, int]:
        stored = graph.open(graph.root, graph.views["v"]).to_table()
        return dict(zip(stored["k"].to_pylist(), stored["n"].to_pylist(), strict=True))

    graph.correct({("t", "a"): rows(("one", 1), ("two", 2), ("none", None))})
    assert counts() == {"one": 0, "two": 0, "none": 0}
    graph.correct({("u", "a"): rows(("x", 1), ("y", 1), ("z", None))})
    assert counts() == {"one": 2, "two": 0, "none": 0}
    graph.correct({}, {("u", "a"): None})
    assert counts() == {"one": 0, "two": 0, "none": 0}
    graph.materializer.close()


GREATEST = {
    "right side": "SELECT u.k, max(t.i) AS m FROM t JOIN u ON t.g = u.g GROUP BY u.k",
    "right side as the left one": "SELECT t.k, max(u.i) AS m FROM u JOIN t ON t.g = u.g GROUP BY t.k",
    "left": "SELECT u.k, max(t.i) AS m FROM u LEFT JOIN t ON t.g = u.g GROUP BY u.k",
    "right": "SELECT u.k, max(t.i) AS m FROM t RIGHT JOIN u ON t.g <=> u.g GROUP BY u.k",
    "both sides": "SELECT u.k, t.k AS l, max(t.i) AS m FROM t JOIN u ON t.g = u.g GROUP BY u.k, t.k",
}


@pytest.mark.more
@pytest.mark.parametrize("name", few(GREATEST, "right side"))
def test_a_group_that_is_computed_again_has_its_rows_of_both_sides(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("i", pa.int64())])
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", GREATEST[name])], ("t", "u"), schema)

    def rows(groups: Sequence[int | None], greatest: int = 0) -> pa.Table:
        return pa.table([[f"k{each}" for each in groups], groups, [greatest] * len(groups)], schema=schema)

    every = [None, *range(500)]
    graph.correct({("t", "a"): rows([*every, *every]), ("u", "a"): rows(every)})
    greatest = {("t", "top"): rows([5, 7, None], 10), ("u", "top"): rows([5, 5, None], 10)}
    graph.correct(greatest)
    graph.check()
    done = graph.correct({}, dict.fromkeys(greatest))
    graph.check()
    assert cost(done).given < 60, "the rows that leave, and those of three groups"
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("kind", few(("LEFT", "FULL"), "LEFT"))
def test_a_group_of_rows_without_a_partner_is_computed_again(
    local_spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("i", pa.int64())])
    query = f"SELECT u.k, max(t.i) AS m FROM t {kind} JOIN u ON t.g = u.g GROUP BY u.k"
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ("t", "u"), schema)

    def rows(groups: Sequence[int], number: int) -> pa.Table:
        return pa.table([["a"] * len(groups), groups, [number] * len(groups)], schema=schema)

    greatest = {("t", "top"): rows([1, 9], 10)}
    graph.correct({("t", "a"): rows([1, 2, 3, 7, 8], 5), ("u", "a"): rows([1, 2, 4], 0), **greatest})
    graph.check()
    # The greatest of the rows that meet one of `u`, and of those that meet none.
    graph.correct({}, dict.fromkeys(greatest))
    graph.check()
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [("INNER", 1, 1), ("LEFT", 1, 1), ("LEFT SEMI", 1, 1), ("RIGHT", 3, 3), ("FULL", 3, 3)],
)
def test_rows_that_do_not_change_stay_where_they_are(
    local_spark: SparkSession, tmp_path: Path, kind: str, given: int, found: int
) -> None:
    """A new row of the left side is looked up by its key, and Spark gets one row.

    A row of the other side that may stand alone changes with it: Spark gets its rows before and after, and its old
    result is looked up.
    """
    query = f"SELECT t.k FROM t {kind} JOIN u ON t.g = u.g"
    schema = pa.schema([("k", pa.string()), ("g", pa.int32())])
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ("t", "u"), schema)
    many = pa.table([[f"k{at}" for at in range(50)], [*range(50)]], schema=schema)
    graph.correct({("t", "a"): many, ("u", "a"): many})
    done = graph.correct({("t", "b"): pa.table([["new"], [7]], schema=schema)})
    graph.check()
    assert (cost(done).given, cost(done).found) == (given, found)
    graph.materializer.close()


@pytest.mark.more
def test_rows_that_leave_are_deleted_and_not_read(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32())])
    view = ViewDefinition("v", "SELECT t.k, u.k AS j FROM t RIGHT JOIN u USING (g)")
    graph = ViewGraph(local_spark, tmp_path, [view], ("t", "u"), schema)
    graph.correct({("u", "a"): pa.table([["x", "y"], [1, 2]], schema=schema)})
    read: list[int] = []
    monkeypatch.setattr(ViewTable, "rows_of", lambda _, keys, columns: read.append(len(keys)))
    done = graph.correct({("t", "a"): pa.table([["z"], [1]], schema=schema)})
    assert (cost(done).written, read) == (1, [])
    monkeypatch.undo()
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_equal_rows_come_and_leave_one_by_one(local_spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32())])
    view = ViewDefinition("v", "SELECT t.k, u.k AS j FROM t JOIN u USING (g)")
    graph = ViewGraph(local_spark, tmp_path, [view], ("t", "u"), schema)

    def equal(count: int) -> pa.Table:
        return pa.table([["x"] * count, [1] * count], schema=schema)

    graph.correct({("t", "a"): equal(3), ("t", "b"): equal(1), ("u", "a"): equal(1)})
    for left in (2, 0, 1):
        graph.correct({}, {("t", "a"): equal(left)})
        graph.check()
        assert graph.open(graph.root, graph.views["v"]).count_rows() == left + 1
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("kind", few(["INNER", "LEFT", "FULL"], "FULL"))
def test_partners_that_change_in_one_epoch_meet_once(local_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32())])
    pairs = ViewDefinition("pairs", f"SELECT t.k, u.k AS j FROM t {kind} JOIN u ON t.g = u.g")
    counts = ViewDefinition("counts", f"SELECT t.k, count(u.k) AS n FROM t {kind} JOIN u ON t.g = u.g GROUP BY t.k")
    graph = ViewGraph(local_spark, tmp_path, [pairs, counts], ("t", "u"), schema)

    def rows(*names: str) -> pa.Table:
        return pa.table([names, [1] * len(names)], schema=schema)

    graph.correct({("t", "stays"): rows("s"), ("u", "stays"): rows("s"), ("t", "a"): rows("x"), ("u", "a"): rows("y")})
    graph.check()
    for number in range(2):
        new = {("t", f"n{number}"): rows("n"), ("u", f"n{number}"): rows("n")}
        graph.correct(new, {("t", "a"): rows("x", f"x{number}"), ("u", "a"): rows("y", f"y{number}")})
        graph.check()
    graph.correct({}, {("t", "a"): None, ("u", "a"): None})
    graph.check()
    graph.materializer.close()
