"""The plan of a view: its class, its key, its sources, and its explanation."""

from __future__ import annotations

from contextlib import closing

import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.analysis import analyse
from spark_bridge.query.view_planner import ViewPlanner
from tests.spark_bridge.random_rows import SCHEMA


def plan(spark: SparkSession, query: str) -> ViewPlan:
    return analyse(spark, ViewDefinition("v", query), {"t": SCHEMA, "u": SCHEMA})


@pytest.mark.more_after(9)
@pytest.mark.parametrize(
    ("query", "view_class", "key"),
    [
        ("SELECT k FROM t", "append", ()),
        ("SELECT k, count(*) AS n FROM t GROUP BY k", "aggregate", ("k",)),
        ("SELECT count(*) AS n, g AS b, k AS a FROM t GROUP BY k, g", "aggregate", ("a", "b")),
        ("SELECT count(*) AS n, k FROM t GROUP BY k, g", "aggregate", ()),
        ("SELECT upper(k) AS u, count(*) AS n FROM t GROUP BY upper(k)", "aggregate", ("u",)),
        ("SELECT upper(k) AS u, count(*) AS n FROM t GROUP BY k", "aggregate", ()),
        ("SELECT n, z FROM (SELECT k AS z, count(*) AS n FROM t GROUP BY k) WHERE n > 1", "aggregate", ("z",)),
        ("SELECT n, z || '' AS z FROM (SELECT k AS z, count(*) AS n FROM t GROUP BY k)", "aggregate", ()),
        ("SELECT count(*) AS n FROM t", "aggregate", ()),
        ("SELECT DISTINCT g, k FROM t", "aggregate", ("g", "k")),
        ("SELECT k, g, grouping_id() AS id FROM t GROUP BY CUBE (k, g)", "aggregate", ("k", "g", "id")),
        ("SELECT k, g, count(*) AS n FROM t GROUP BY ROLLUP (k, g)", "aggregate", ()),
    ],
)
def test_class_and_key(local_spark: SparkSession, query: str, view_class: str, key: tuple[str, ...]) -> None:
    view = plan(local_spark, query)
    assert (view.view_class, view.key) == (view_class, key)


@pytest.mark.more
def test_sources_are_the_sources_that_the_plan_reads(local_spark: SparkSession) -> None:
    assert plan(local_spark, "SELECT k FROM u").sources == ("u",)
    assert plan(local_spark, "SELECT k FROM u UNION ALL SELECT k FROM t").sources == ("u", "t")
    assert plan(local_spark, "WITH t AS (SELECT k FROM u) SELECT k FROM t").sources == ("u",)


def test_explanation_has_class_reason_stored_data_and_cost(local_spark: SparkSession) -> None:
    text = plan(local_spark, "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0").explain()
    assert text.splitlines()[0] == "v: aggregate"
    for part in ("groups once, by 1 expression, with a filter on the groups", "reads      t", "by (k)", "upsert"):
        assert part in text
    assert "append" in plan(local_spark, "SELECT k FROM t").explain()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "removal"),
    [
        ("SELECT k FROM t", "with their file"),
        ("SELECT k, count(*) AS n, avg(i) AS a FROM t GROUP BY k", "count, avg: they are subtracted"),
        ("SELECT DISTINCT k FROM t", "they are counted, and a group ends with its last one"),
        (
            "SELECT k, sum(p) AS s, min(x) AS lo, max(i) AS hi FROM t GROUP BY k",
            "sum: they are subtracted; min, max: a group whose least or greatest value leaves, and no new one passes, "
            "is computed again, from those with their k of t",
        ),
        (
            "SELECT g AS a, k, sum(x) AS s FROM t GROUP BY g, k",
            "sum: the groups that lose one are computed again, from those with their k and g of t",
        ),
        (
            "SELECT k, count(DISTINCT g) AS n FROM t GROUP BY k",
            "the groups that they touch are computed again, from those with their k of t",
        ),
        (
            "SELECT upper(k) AS u, max(i) AS hi FROM (SELECT k, i FROM t UNION ALL SELECT k, g FROM u) GROUP BY 1",
            "max: a group whose least or greatest value leaves, and no new one passes, is computed again, "
            "from all rows of t and all rows of u",
        ),
    ],
)
def test_explanation_says_how_rows_leave(local_spark: SparkSession, query: str, removal: str) -> None:
    made = analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA, "u": SCHEMA}, materialized=["t", "u"])
    with closing(SparkJobs(local_spark)) as jobs:
        planner = ViewPlanner(local_spark, jobs, ["t", "u"])
        assert planner.explain(made).splitlines()[-1] == f"  rows leave {removal}"
        assert "materialize=True" in planner.explain(plan(local_spark, query)).splitlines()[-1]
