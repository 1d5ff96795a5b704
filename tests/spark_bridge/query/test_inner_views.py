"""Aggregations within a query, and sides of joins, become internal views, with the same names in every session."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.analysis import analyse
from state.errors import NotIncrementalError
from tests.spark_bridge.random_rows import SCHEMA

SCHEMAS = {"t": SCHEMA, "u": SCHEMA}
TWICE = (
    "WITH s AS (SELECT k, g, sum(i) AS i FROM t GROUP BY k, g) "
    "SELECT k, max(i) AS i FROM s GROUP BY k UNION ALL SELECT k, min(i) FROM s GROUP BY k"
)


def _plan(spark: SparkSession, query: str) -> ViewPlan:
    return analyse(spark, ViewDefinition("v", query), SCHEMAS, SCHEMAS)


def test_an_aggregation_within_is_a_view_and_the_query_reads_its_groups(local_spark: SparkSession) -> None:
    plan = _plan(local_spark, "SELECT avg(n) AS a FROM (SELECT day, count(*) AS n FROM t GROUP BY day) WHERE n > 1")
    [inner] = plan.inner
    assert (plan.view_class, plan.parents, plan.sources, plan.sources_read) == ("aggregate", ("v.1",), ("t",), ("t",))
    assert (inner.name, inner.view_class, inner.parents, inner.sources) == ("v.1", "aggregate", (), ("t",))
    assert (inner.schema.names, inner.key) == (["day", "n"], ("day",))
    assert plan.columns == {"v.1": {"n"}} and inner.columns == {"t": {"day"}}


def test_equal_aggregations_are_one_view_after_those_that_it_reads(local_spark: SparkSession) -> None:
    plan = _plan(local_spark, TWICE)
    assert [each.name for each in plan.inner] == ["v.1", "v.2", "v.3"]
    assert [each.parents for each in plan.inner] == [(), ("v.1",), ("v.1",)]
    assert (plan.view_class, {*plan.parents}) == ("append", {"v.2", "v.3"})


def test_aggregations_of_two_sources_with_equal_columns_are_two_views(local_spark: SparkSession) -> None:
    of = "SELECT k, count(*) AS n FROM {} GROUP BY k"
    plan = _plan(local_spark, f"SELECT sum(n) AS n FROM ({of.format('t')} UNION ALL {of.format('u')})")
    assert [each.sources for each in plan.inner] == [("t",), ("u",)]


def test_columns_without_a_name_have_the_same_name_in_every_session(local_spark: SparkSession) -> None:
    query = "SELECT count(*) AS n FROM (SELECT k, sum(i), sum(i), 1 AS `a.b` FROM t GROUP BY k HAVING max(i) > 3)"
    first, again = _plan(local_spark, query), _plan(local_spark.newSession(), query)
    assert first.inner[0].schema.names == ["k", "sum_i", "sum_i_2", "a_b", "max_i"]
    assert [each.identity for each in (*first.inner, first)] == [each.identity for each in (*again.inner, again)]


@pytest.mark.more
def test_what_an_aggregation_within_computes_is_a_part_of_the_identity(local_spark: SparkSession) -> None:
    query = "SELECT sum(n) AS n FROM (SELECT k, {} AS n FROM t GROUP BY k)"
    assert _plan(local_spark, query.format("sum(i)")).identity != _plan(local_spark, query.format("max(i)")).identity


def test_a_function_groups_twice(local_spark: SparkSession) -> None:
    def v(t: DataFrame) -> DataFrame:
        return t.groupBy("k").agg(F.sum("i").alias("i")).select("i").distinct()

    plan = analyse(local_spark, ViewDefinition("v", function=v), SCHEMAS, SCHEMAS)
    assert (plan.view_class, plan.inner[0].schema.names) == ("aggregate", ["k", "i"])


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("reason", "query"),
    [
        ("first", "SELECT max(f) AS f FROM (SELECT k, first(i) AS f FROM t GROUP BY k)"),
        ("NOT IN", "SELECT k FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE k NOT IN (SELECT k FROM u)"),
        (
            "the time of an epoch",
            "SELECT max(now()) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k)",
        ),
    ],
)
def test_what_cannot_be_maintained_around_an_aggregation_within_is_refused(
    local_spark: SparkSession, reason: str, query: str
) -> None:
    with pytest.raises(NotIncrementalError, match=reason):
        _plan(local_spark, query)


def test_the_sides_of_a_join_are_found_by_key_and_explained(local_spark: SparkSession) -> None:
    plan = _plan(local_spark, "SELECT t.k, u.i FROM t LEFT JOIN u ON t.g = u.g AND t.k > 'a' ORDER BY t.k")
    assert (plan.view_class, plan.parents, plan.sources) == ("append", ("v.1", "v.2"), ("t", "u"))
    assert [each.schema.names for each in plan.inner] == [["k", "g", "__sw_join"], ["g", "i", "__sw_join"]]
    text = plan.explain()
    assert "reads      join 1, left, of v.1 and v.2 (" in text and "ORDER BY is left out" in text
    assert "each found by the hash of its key" in plan.inner[0].explain()


@pytest.mark.more
def test_equal_sides_are_one_view(local_spark: SparkSession) -> None:
    plan = _plan(local_spark, "SELECT count(*) AS n FROM t a JOIN t b ON a.g = b.g JOIN t c ON b.k = c.k")
    assert len(plan.inner) == 4 and len({each.identity for each in plan.inner}) == 4
    plan = _plan(local_spark, "SELECT count(*) AS n FROM t a JOIN t b ON a.g = b.g")
    assert (plan.parents, [each.name for each in plan.inner]) == (("v.1",), ["v.1"])


@pytest.mark.more
def test_a_view_whose_side_reads_a_view_does_not_expand_it(local_spark: SparkSession) -> None:
    total = _plan(local_spark, "SELECT g, count(*) AS n FROM t GROUP BY g")
    views = {"total": PlannedView(ViewDefinition("total", total.definition), replace(total, name="total"), SCHEMAS)}
    query = "SELECT u.k, total.n FROM u JOIN total USING (g)"
    plan = analyse(local_spark, ViewDefinition("v", query), SCHEMAS, SCHEMAS, views=views)
    assert plan.inner[1].parents == ("total",) and "definition of" not in plan.explain()
