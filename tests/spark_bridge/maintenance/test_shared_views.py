"""Internal views of several views with the same rows are maintained once; each view begins, ends and fails alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from spark_bridge.datasets import dataset_upkeep
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.stored_rows import declared_name
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import SmallPieces, ViewGraph, follow_in_all_ways, random_epoch

SOURCES = ("t", "u")
BY_K = ViewDefinition("by_k", "SELECT t.k, count(*) AS n, sum(u.i) AS s FROM t JOIN u USING (g) GROUP BY t.k")
MOST = ViewDefinition("most", "SELECT t.k, max(u.i) AS m FROM t JOIN u USING (g) GROUP BY t.k")
PAIRS = ViewDefinition("pairs", "SELECT t.k, u.i FROM t LEFT JOIN u ON t.g = u.g")
TOTAL = ViewDefinition("total", "SELECT g, count(*) AS n FROM t GROUP BY g")
OVER = ViewDefinition("over", "SELECT u.i, total.n FROM u JOIN total ON u.g = total.g")
ABOVE = ViewDefinition("above", "SELECT total.n, sum(u.i) AS s FROM u JOIN total ON u.g = total.g GROUP BY total.n")


def _graph(spark: SparkSession, root: Path, *definitions: ViewDefinition) -> ViewGraph:
    return ViewGraph(spark, root, definitions, SOURCES)


def _paths(graph: ViewGraph, *views: str) -> set[str]:
    """The datasets of the internal views of some views."""
    return {each.path for name, each in graph.views.items() if declared_name(name) in views and name not in views}


def _epochs(graph: ViewGraph, count: int = 3) -> None:
    for _ in range(count):
        random_epoch(graph, random.Random(graph.epoch))


def _drop(graph: ViewGraph, name: str, *left: ViewDefinition) -> None:
    graph.declare(left, [name])


@pytest.mark.more
def test_views_over_the_same_sides_have_one_dataset_for_each(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _graph(local_spark, tmp_path, BY_K, MOST, PAIRS)
    _epochs(graph)
    assert len(_paths(graph, "by_k", "most", "pairs")) == 2
    sides = {f"{view}.{side}" for view in ("by_k", "most", "pairs") for side in (1, 2)}
    assert sides <= graph.views.keys() and sides <= graph.catalog.keys(), "each has a name of its own"
    follow_in_all_ways(graph, random.Random(5))


@pytest.mark.more
def test_sides_over_a_view_are_shared(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _graph(local_spark, tmp_path, TOTAL, OVER, ABOVE)
    _epochs(graph)
    assert len(_paths(graph, "over", "above")) == 2
    follow_in_all_ways(graph, random.Random(6))


@pytest.mark.more
def test_aggregations_within_are_shared_and_what_is_above_them(local_spark: SparkSession, tmp_path: Path) -> None:
    within = "(SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n)"
    first = ViewDefinition("first", f"SELECT max(c) AS m FROM {within}")
    second = ViewDefinition("second", f"SELECT min(c) AS m, count(*) AS n FROM {within}")
    graph = _graph(local_spark, tmp_path, first, second)
    _epochs(graph)
    assert len(_paths(graph, "first", "second")) == 2
    follow_in_all_ways(graph, random.Random(7))


@pytest.mark.more
@pytest.mark.parametrize("is_restarted", [False, True], ids=["in a run", "by a restart"])
def test_rows_of_an_aggregation_within_leave_when_they_have_another_name(
    local_spark: SparkSession, tmp_path: Path, is_restarted: bool
) -> None:
    joined = "t JOIN (SELECT g, count(*) AS n FROM u GROUP BY g) s USING (g)"
    first = ViewDefinition("first", f"SELECT t.k, max(s.n) AS m FROM {joined} GROUP BY t.k")
    second = ViewDefinition("second", f"SELECT t.k, sum(s.n) AS s FROM {joined} GROUP BY t.k")
    graph, chance = _graph(local_spark, tmp_path, first, second), random.Random(10)
    for _ in range(4):
        random_epoch(graph, chance)
    assert _paths(graph, "first") == _paths(graph, "second")
    _drop(graph, "first", second)
    if is_restarted:
        graph.correct({})
        graph.reopen()
    for _ in range(4):
        random_epoch(graph, chance)
    graph.materializer.close()


@pytest.mark.more
def test_an_aggregation_over_an_aggregation_goes_on_with_both_under_other_names(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    over_view = "(SELECT c, max(n) AS n FROM (SELECT n, count(*) AS c FROM total GROUP BY n) GROUP BY c)"
    first = ViewDefinition("first", f"SELECT max(c) AS m FROM {over_view}")
    second = ViewDefinition("second", f"SELECT sum(n) AS s FROM {over_view}")
    graph = _graph(local_spark, tmp_path, TOTAL, first, second)
    _epochs(graph)
    paths = _paths(graph, "second")
    assert paths == _paths(graph, "first")
    _drop(graph, "first", TOTAL, second)
    _epochs(graph)
    assert _paths(graph, "second") == paths, "nothing is recomputed"
    graph.materializer.close()


def test_a_view_that_comes_later_has_its_sides_at_once(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _graph(local_spark, tmp_path, BY_K)
    _epochs(graph)
    graph.declare([BY_K, MOST])
    assert not {"most.1", "most.2"} & {*graph.materializer.behind}
    graph.correct({})
    assert {"most", "most.1", "most.2"} <= {*graph.views}, "few rows: it shows in the next epoch"
    graph.check()
    assert len(_paths(graph, "by_k", "most")) == 2
    _epochs(graph)
    graph.reopen()
    _epochs(graph)
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("is_restarted", few([False, True], True), ids=["in a run", "by a restart"])
@pytest.mark.parametrize("gone", few([0, 1], 0))
def test_a_view_that_is_dropped_leaves_the_rows_to_the_other(
    local_spark: SparkSession, tmp_path: Path, gone: int, is_restarted: bool
) -> None:
    views = [BY_K, MOST]
    graph = _graph(local_spark, tmp_path, *views)
    _epochs(graph)
    dropped, left = views[gone], views[1 - gone]
    paths = _paths(graph, left.name)
    _drop(graph, dropped.name, left)
    if is_restarted:
        graph.correct({})
        graph.reopen()
    _epochs(graph)
    assert _paths(graph, left.name) == paths
    assert not [name for name in (*graph.views, *graph.catalog) if declared_name(name) == dropped.name]
    graph.declare([BY_K, MOST])
    graph.settle()
    _epochs(graph)
    assert _paths(graph, "by_k", "most") == paths
    graph.materializer.close()


@pytest.mark.more
def test_each_view_waits_for_the_missing_files_of_common_rows(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = _graph(local_spark, tmp_path, TOTAL)
    graph.correct({(source, "a"): random_rows(random.Random(1), 5) for source in SOURCES})
    graph.declare([TOTAL, BY_K, MOST])
    graph.correct({})
    monkeypatch.setattr(SmallPieces, "missing", ("file:///gone",))
    for _ in range(2):
        graph.materializer.backfill()
    assert graph.materializer.blocked == dict.fromkeys(("by_k", "most"), ("file:///gone",))
    assert graph.materializer.backfilling.keys() == {"by_k", "most"}
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("left", few([BY_K, MOST], "by_k"), ids=["the first stays", "the second stays"])
def test_a_view_that_a_start_leaves_out_leaves_the_rows_to_the_other(
    local_spark: SparkSession, tmp_path: Path, left: ViewDefinition
) -> None:
    graph = _graph(local_spark, tmp_path, BY_K, MOST)
    _epochs(graph)
    paths = _paths(graph, left.name)
    graph.definitions = [left]
    graph.reopen()
    _epochs(graph)
    assert _paths(graph, left.name) == paths
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize(
    "views", few([(BY_K, MOST), (TOTAL, OVER, ABOVE)], (TOTAL, OVER, ABOVE)), ids=["of sources", "of a view"]
)
def test_a_view_is_dropped_after_its_rows_were_tidied(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: tuple[ViewDefinition, ...]
) -> None:
    monkeypatch.setattr(dataset_upkeep, "_TIDY_EVERY_COMMITS", 1)
    monkeypatch.setattr(dataset_upkeep, "_FRAGMENT_FACTOR", 2)
    *others, dropped, left = views
    graph = _graph(local_spark, tmp_path, *views)
    for _ in range(6):
        _epochs(graph, 1)
        for _ in range(9):
            graph.materializer.tidy()
    paths = _paths(graph, left.name)
    _drop(graph, dropped.name, *others, left)
    _epochs(graph)
    assert _paths(graph, left.name) == paths, "no version is lost, and nobody else has written"
    graph.materializer.close()


FILES_SCHEMA = pa.schema([("k", pa.string()), ("g", pa.int64()), ("i", pa.int64())])


def _failing(spark: SparkSession, root: Path, *queries: str) -> ViewGraph:
    views = [ViewDefinition(f"v{number}", query) for number, query in enumerate(queries)]
    graph = ViewGraph(spark, root, views, SOURCES, FILES_SCHEMA)
    graph.correct({("t", "a"): _rows("x", 1), ("u", "a"): _rows("y", 2)})
    graph.check()
    return graph


def _rows(k: str, i: int) -> pa.Table:
    return pa.table([[k], [1], [i]], schema=FILES_SCHEMA)


@pytest.mark.more
@pytest.mark.parametrize("failing", few([0, 1], 1))
def test_a_view_that_fails_leaves_the_rows_to_the_other(
    local_spark: SparkSession, tmp_path: Path, failing: int
) -> None:
    queries = ["SELECT t.k, max(u.i) AS m FROM t JOIN u USING (g) GROUP BY t.k"]
    queries.insert(
        failing, "SELECT t.k, sum(if(u.i = 13, raise_error('odd'), u.i)) AS s FROM t JOIN u USING (g) GROUP BY t.k"
    )
    graph = _failing(local_spark, tmp_path, *queries)
    failed, left = f"v{failing}", f"v{1 - failing}"
    paths = _paths(graph, left)
    assert len(paths) == 2
    assert {*graph.correct({("u", "b"): _rows("y", 13)}).stopped} == {failed}
    graph.check(left)
    assert not [name for name in (*graph.views, *graph.catalog) if declared_name(name) == failed and name != failed]
    for number in range(4):
        graph.correct({("t", f"c{number}"): _rows("z", number), ("u", f"c{number}"): _rows("z", number)})
        graph.check(left)
        if number == 1:
            graph.reopen()
    assert _paths(graph, left) == paths
    graph.materializer.close()


@pytest.mark.more
def test_views_fail_together_if_their_common_rows_do(local_spark: SparkSession, tmp_path: Path) -> None:
    side = "(SELECT g, if(i = 13, raise_error('odd'), i) AS i FROM u) s"
    alone = "SELECT k, count(*) AS n FROM t GROUP BY k"
    graph = _failing(
        local_spark,
        tmp_path,
        f"SELECT t.k, sum(s.i) AS s FROM t JOIN {side} USING (g) GROUP BY t.k",
        f"SELECT t.k, max(s.i) AS m FROM t JOIN {side} USING (g) GROUP BY t.k",
        alone,
    )
    assert len(_paths(graph, "v0", "v1")) == 2
    done = graph.correct({("u", "b"): _rows("y", 13)})
    assert {name: "odd" in (each.error or "") for name, each in done.stopped.items()} == {"v0": True, "v1": True}
    graph.correct({("t", "c"): _rows("z", 3)})
    graph.check("v2")
    assert not _paths(graph, "v0", "v1")
    graph.materializer.close()


@pytest.mark.more
def test_roots_that_have_the_rows_twice_have_them_once_after_a_restart(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SharedViews, "declare", lambda *_: None)
        graph = _graph(local_spark, tmp_path, BY_K, MOST)
        _epochs(graph)
        assert len(_paths(graph, "by_k", "most")) == 4
    graph.reopen()
    _epochs(graph)
    assert len(_paths(graph, "by_k", "most")) == 2
    graph.reopen()
    _epochs(graph)
    graph.materializer.close()


def _of_python(t: DataFrame, u: DataFrame) -> DataFrame:
    changed = udf(lambda value: value * 2, "bigint")
    return t.select("k", "g").join(u.select("g", changed("i").alias("i")), "g").groupBy("k").agg({"i": "sum"})


def _of_other_python(t: DataFrame, u: DataFrame) -> DataFrame:
    changed = udf(lambda value: value * 3, "bigint")
    return t.select("k", "g").join(u.select("g", changed("i").alias("i")), "g").groupBy("k").agg({"i": "sum"})


def _of_frames(t: DataFrame, u: DataFrame) -> DataFrame:
    return t.join(u, "g").select(t.k, u.i).groupBy("k").agg({"i": "min"})


OF_TIME = "FROM t JOIN (SELECT g, i, now() AS seen FROM u) s USING (g) GROUP BY t.k, seen"


@pytest.mark.more
@pytest.mark.parametrize(
    "first, second, is_shared",
    [
        (BY_K, MOST, True),
        (BY_K, ViewDefinition("v", function=_of_frames), True),
        (BY_K, replace(MOST, on_missing="allow"), False),
        (BY_K, replace(MOST, query=f"{MOST.query}".replace("GROUP", "WHERE u.i > 0 GROUP")), False),
        (
            ViewDefinition("most", f"SELECT t.k, seen, max(s.i) AS m {OF_TIME}"),
            ViewDefinition("least", f"SELECT t.k, seen, min(s.i) AS m {OF_TIME}"),
            False,
        ),
        (ViewDefinition("v", function=_of_python), ViewDefinition("w", function=_of_other_python), False),
    ],
    ids=["same", "function", "incomplete", "filter", "time", "python"],
)
def test_only_the_same_rows_are_shared(
    local_spark: SparkSession, tmp_path: Path, first: ViewDefinition, second: ViewDefinition, is_shared: bool
) -> None:
    graph = _graph(local_spark, tmp_path, first, second)
    graph.correct({(source, "a"): random_rows(random.Random(1), 5) for source in SOURCES})
    of_u = [plan for each in graph.plans.values() for plan in each.inner if plan.sources == ("u",)]
    assert len(of_u) == 2
    assert (len({graph.views[each.name].path for each in of_u}) == 1) is is_shared
    graph.materializer.close()


def _plan(name: str, content: str | None) -> Callable[[ViewPlan], ViewPlan]:
    return lambda plan: replace(plan, name=name, content=content)


@pytest.mark.more
def test_the_representative_has_all_rows_if_one_has(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _graph(local_spark, tmp_path, BY_K)
    plan = graph.plans["by_k"].inner[0]
    plans = {name: _plan(name, "same")(plan) for name in ("a.1", "b.1", "c.1")} | {"d.1": _plan("d.1", None)(plan)}
    shared = SharedViews()
    shared.declare(plans, apart=(), fresh={"a.1", "b.1"}, begun={"b.1"})
    assert {name: shared.representative(name) for name in plans} == {
        "a.1": "c.1",
        "b.1": "c.1",
        "c.1": "c.1",
        "d.1": "d.1",
    }
    shared.declare(plans, apart={"c.1"}, fresh={"a.1", "b.1"}, begun={"b.1"})
    assert (
        shared.representative("a.1") == "b.1"
        and shared.names("b.1") == ["a.1", "b.1"]
        and shared.names("c.1") == ["c.1"]
    )
    shared.declare(plans, apart=(), fresh=(), begun=())
    assert shared.representative("c.1") == "b.1", "a representative stays one"
    assert shared.leave("b.1") is None and shared.without_own_name() == {"b.1"}
    assert shared.leave("a.1") is None and shared.leave("d.1") == "d.1"
    assert shared.leave("c.1") == "b.1", "nobody needs its rows"
    assert not shared.without_own_name()
    graph.materializer.close()
