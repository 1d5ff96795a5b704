"""The comparison of a changed definition with the stored one is true to the run that follows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.planning.definition_change import Comparison, DefinitionChange, StoredEpoch
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.view_planner import ViewPlanner
from state.tables.stored_rows import is_internal_view
from tests.cases import few
from tests.slackwater.cli.command import slackwater
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph

JOIN = "SELECT a.g, count(*) AS n, sum(b.i) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.g"
GROUPS = "SELECT k, sum(i) AS s FROM t GROUP BY k"
CHANGES = {
    "a filter": (GROUPS, f"{GROUPS} HAVING sum(i) > 0", {"v": "taken over"}),
    "a measure": (GROUPS, "SELECT k, sum(i) AS s, min(i) AS lo FROM t GROUP BY k", {"v": "extended"}),
    "a hidden measure": (GROUPS, "SELECT k, sum(i) AS s, count(*) AS n FROM t GROUP BY k", {"v": "taken over"}),
    "a count beside distinct values": (
        "SELECT k, count(DISTINCT i) AS d FROM t GROUP BY k",
        "SELECT k, count(DISTINCT i) AS d, count(*) AS n FROM t GROUP BY k",
        {"v": "extended"},
    ),
    "only other measures": (GROUPS, "SELECT k, min(i) AS lo FROM t GROUP BY k", {"v": "computed"}),
    "a word": (GROUPS, "select k, sum(i) as s from t group by k", {"v": "kept"}),
    "a filter over a join": (
        JOIN,
        f"{JOIN} HAVING count(*) > 1",
        {"v.1": "kept", "v.2": "kept", "v": "taken over"},
    ),
    "a measure over a join": (
        JOIN,
        JOIN.replace("sum(b.i)", "max(b.i)"),
        {"v.1": "kept", "v.2": "kept", "v": "extended"},
    ),
    "only other measures over a join": (
        JOIN.replace("count(*) AS n, ", ""),
        JOIN.replace("count(*) AS n, sum(b.i)", "max(b.i)"),
        {"v.1": "kept", "v.2": "kept", "v": "computed"},
    ),
    "other rows of a side": (
        JOIN,
        JOIN.replace("JOIN t b", "JOIN (SELECT * FROM t WHERE i > 0) b"),
        {"v.1": "kept", "v.2": "computed", "v": "computed"},
    ),
    "a filter above groups of groups": (
        f"SELECT count(*) AS n FROM ({GROUPS}) GROUP BY s",
        f"SELECT count(*) AS n FROM ({GROUPS}) GROUP BY s HAVING count(*) > 1",
        {"v.1": "kept", "v": "taken over"},
    ),
    "the first of groups": (
        GROUPS,
        f"SELECT * FROM ({GROUPS}) ORDER BY s LIMIT 2",
        {"v.1": "computed", "v.2": "computed", "v": "computed"},
    ),
}


def _change(graph: ViewGraph, *definitions: ViewDefinition) -> DefinitionChange:
    """The comparison with the last epoch of a graph, as of a root."""
    names = {each.name: each for each in definitions}
    jobs = SparkJobs(graph.spark)
    planned = ViewPlanner(graph.spark, jobs, [*graph.schemas]).planned(names, graph.schemas, graph.catalog)
    jobs.close()
    stored = StoredEpoch(graph.root, graph.catalog, graph.views, [*graph.schemas], {})
    return Comparison(names, planned, stored, [*graph.schemas]).of("v")


@pytest.mark.more
@pytest.mark.parametrize("name", few(CHANGES, "a measure over a join"))
def test_a_change_does_what_its_explanation_says(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    before, after, steps = CHANGES[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", before)])
    for number in range(3):
        graph.correct({("t", f"{number}"): random_rows(random.Random(number), 20)})
    change = _change(graph, ViewDefinition("v", after))
    assert {each.name: each.becomes for each in change.steps} == steps
    assert change.is_same == (set(steps.values()) == {"kept"})
    assert ("replace=True" in change.refusal) == (not change.is_same)
    old = dict(graph.views)
    graph.declare([ViewDefinition("v", after, replace=True)])
    becomes, backfilling = {*steps.values()}, graph.materializer.backfilling
    assert "v" in backfilling if "computed" in becomes else not backfilling or {*steps} == {"v"}
    graph.settle()
    graph.check()
    # What is kept has its dataset; what is dropped was there, and no name has it any longer.
    kept = {each for each, view in graph.views.items() if each in old and view.path == old[each].path}
    assert kept - {"t.rows"} == {each for each, becomes in steps.items() if becomes == "kept"}
    assert {each.name for each in change.dropped} == {*filter(is_internal_view, old), "v"} - kept
    if "extended" in becomes:
        assert "is made of" in change.text and f"and only {change.steps[-1].measures[0]} is computed" in change.text
    for each in change.steps:
        for read in each.reads:
            if read.of == "stored rows":
                assert (read.name, read.rows) == ("t", 60)
            elif read.of == "view" and read.rows is not None:
                assert read.rows == graph.open(graph.root, old[read.name]).count_rows()
            elif read.of == "groups":
                assert read.rows == graph.open(graph.root, old["v"]).count_rows()
    graph.materializer.close()


@pytest.mark.more
def test_views_over_a_changed_one_are_computed_after_it(local_spark: SparkSession, tmp_path: Path) -> None:
    over = ViewDefinition("over", "SELECT count(*) AS n FROM v")
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", GROUPS), over])
    graph.correct({("t", "a"): random_rows(random.Random(1), 20)})
    change = _change(graph, ViewDefinition("v", f"{GROUPS} HAVING sum(i) > 0"), over)
    assert {each.name: each.becomes for each in change.steps} == {"v": "taken over", "over": "computed"}
    assert "over is computed from the rows of v, when they are there" in change.text
    assert {each.name for each in change.dropped} == {"v", "over"}
    graph.materializer.close()


@pytest.mark.more
def test_rows_that_another_view_has_are_shared(local_spark: SparkSession, tmp_path: Path) -> None:
    other = ViewDefinition("w", JOIN)
    graph = ViewGraph(local_spark, tmp_path, [other, ViewDefinition("v", GROUPS)])
    graph.correct({("t", "a"): random_rows(random.Random(1), 20)})
    changed = ViewDefinition("v", JOIN, replace=True)
    change = _change(graph, other, changed)
    assert [(each.name, each.becomes, each.shared_with) for each in change.steps] == [
        ("v.1", "shared", "w.1"),
        ("v.2", "shared", "w.2"),
        ("v", "computed", ""),
    ]
    assert change.refusal == "" and all(read.rows == 20 for read in change.steps[-1].reads)
    graph.declare([other, changed])
    graph.settle()
    graph.check()
    assert all(graph.views[f"v.{number}"].path == graph.views[f"w.{number}"].path for number in (1, 2))
    graph.materializer.close()


@pytest.mark.more
def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pipeline = sw.Pipeline("p", root=str(tmp_path / "root"))
    pipeline.source("t", str(tmp_path / "raw"), format="csv", schema="k string, i bigint")
    pipeline.view("v", "SELECT k FROM t")
    with pytest.raises(sw.errors.UsageError, match="declares no view 'w' to compare; it declares: v"):
        pipeline.explain_change("w")
    with pytest.raises(sw.errors.StoreNotFoundError, match="has no store, and so no view 'v' to compare with: run"):
        pipeline.explain_change("v")
    ended = slackwater("explain", str(tmp_path), "--against", "v")
    assert ended.code == 2 and "--against compares a view of a pipeline" in ended.err
