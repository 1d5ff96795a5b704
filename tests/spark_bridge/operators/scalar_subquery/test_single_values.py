"""Rows with single values beside them, as those of uncorrelated subqueries, equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from spark_bridge.operators.scalar_subquery.scalar_subquery_plan import ScalarSubqueryPlan
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.numbered_rows import cost, with_numbers
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, follow_late
from tests.spark_bridge.ways_of_rows import as_if_many

SOURCES = ("t", "u")
VALUES: Mapping[str, tuple[str, str]] = {
    "above": ("append", "SELECT k, i FROM t WHERE i > (SELECT avg(i) FROM t)"),
    "of another": ("append", "SELECT k, i, tags FROM t WHERE g >= (SELECT max(g) FROM u) OR b"),
    "in select": ("append", "SELECT k, i - (SELECT min(i) FROM u) AS d, g, place FROM t"),
    "several": ("append", "SELECT k, i - (SELECT min(i) FROM u) AS d, (SELECT count(*) FROM t) AS n FROM t "
                          "WHERE g > (SELECT min(g) FROM u) AND i < (SELECT max(i) FROM t) AND b"),
    "having": ("append", "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > (SELECT avg(i) FROM u) AND "
                         "count(*) > 1"),
    "share": ("append", "SELECT k, sum(i) / (SELECT sum(i) FROM t) AS s, count(*) AS n FROM t GROUP BY k"),
    "in a function": ("aggregate", "SELECT k, sum(i - (SELECT min(i) FROM u)) AS s, count(*) AS n FROM t GROUP BY k"),
    "in and out": ("append", "SELECT upper(k) AS k, sum(i * (SELECT count(*) FROM u)) + (SELECT max(i) FROM t) AS s "
                             "FROM t GROUP BY upper(k)"),
    "grouped": ("aggregate", "SELECT k, count(*) AS n, max(i) AS m, sum(g) AS s FROM t WHERE i > (SELECT avg(i) FROM "
                             "t) GROUP BY k"),
    "distinct": ("aggregate", "SELECT DISTINCT k, g FROM t WHERE i > (SELECT avg(i) FROM u)"),
    "latest": ("append", "SELECT k, i, x FROM t WHERE i = (SELECT max(i) FROM t) AND g > 0"),
    "equal groups": ("append", "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE n = (SELECT max(n) "
                               "FROM (SELECT k, count(*) AS n FROM t GROUP BY k))"),
    "equal and above": ("append", "SELECT k, i FROM t WHERE k = (SELECT max(k) FROM u) AND i > (SELECT min(i) FROM u)"),
    "nested": ("append", "SELECT k, i FROM t WHERE i > (SELECT avg(i) FROM u WHERE g > (SELECT avg(g) FROM t))"),
    "maybe none": ("append", "SELECT k, i, (SELECT sum(i) FROM u HAVING count(*) > 8) AS s FROM t"),
    "first of": ("append", "SELECT k, i FROM t WHERE i > (SELECT i FROM u WHERE b ORDER BY i DESC LIMIT 1)"),
    "case": ("append", "SELECT k, CASE WHEN i > (SELECT avg(i) FROM t) THEN 'high' WHEN b THEN 'low' END AS w FROM t"),
    "texts": ("append", "SELECT k, at FROM t WHERE concat(k, 'x') > (SELECT max(k) FROM u)"),
    "a struct": ("append", "SELECT k, (SELECT max(struct(i, k)) FROM u) AS s, struct(g, i) AS r FROM t WHERE b"),
    "cross": ("append", "SELECT k, i - s.a AS d FROM t CROSS JOIN (SELECT avg(i) AS a, max(g) AS m FROM u) s "
                        "WHERE g <= m"),
    "left": ("append", "SELECT k, i, a FROM t LEFT JOIN (SELECT avg(i) AS a FROM u) s ON t.i > s.a"),
    "maybe crossed": ("append", "SELECT k, n FROM (SELECT count(*) AS n FROM u HAVING count(*) % 2 = 0) CROSS JOIN t"),
    "exists": ("append", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE b AND g > 1)"),
    "not exists": ("aggregate", "SELECT k, sum(i) AS s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE b AND g > 1) "
                                "GROUP BY k"),
    "counted": ("aggregate", "SELECT count(*) AS n FROM t WHERE i > (SELECT avg(i) FROM u)"),
    "exists of groups": ("append", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM (SELECT DISTINCT k FROM u WHERE "
                                   "b AND g > 1))"),
    "exists with a limit": ("append", "SELECT k, i FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE b AND g > 1 "
                                      "LIMIT 1)"),
    "number of groups": ("append", "SELECT k, i FROM t WHERE g < (SELECT count(*) FROM (SELECT DISTINCT k FROM u))"),
    "number of others": ("aggregate", "SELECT count(*) AS n FROM t WHERE g < (SELECT count(*) FROM (SELECT g FROM u "
                                      "EXCEPT SELECT g FROM t))"),
    "counted, if any": ("aggregate", "SELECT count(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE b)"),
    "of a join": ("append", "SELECT t.k, t.i, u.i AS j FROM t JOIN u ON t.k = u.k WHERE t.i + u.i > (SELECT avg(i) "
                            "FROM t) AND t.g > (SELECT min(g) FROM u)"),
    "in a join": ("append", "SELECT t.k, t.i, u.i AS j FROM t LEFT JOIN u ON t.k = u.k AND u.i > (SELECT avg(i) FROM "
                            "u)"),
    "in exists": ("append", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.i > (SELECT avg(i) "
                            "FROM u))"),
    "below a window": ("append", "SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i) AS n FROM t WHERE i > "
                                 "(SELECT avg(i) FROM u)"),
    "in an order": ("append", "SELECT k, row_number() OVER (ORDER BY i + (SELECT max(i) FROM u)) AS n FROM t"),
    "below a limit": ("append", "SELECT k, i FROM (SELECT * FROM t WHERE i > (SELECT avg(i) FROM u)) ORDER BY i LIMIT "
                                "4"),
    "of a union": ("append", "SELECT k, i FROM (SELECT k, i FROM t UNION ALL SELECT k, -i FROM u) WHERE i > (SELECT "
                             "avg(i) FROM t)"),
    "two singles": ("append", "SELECT a.n / b.n AS r, a.m FROM (SELECT count(*) AS n, max(i) AS m FROM t) a CROSS JOIN "
                              "(SELECT count(*) AS n FROM u) b"),
}  # fmt: skip
ABOVE = ViewDefinition("v", "SELECT k, i FROM t WHERE i > (SELECT max(i) FROM u)")


@pytest.mark.parametrize("name", few(VALUES, "several"))
def test_rows_beside_values_are_sparks_answer_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    view_class, query = VALUES[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, random.Random(f"values {name}"))


@pytest.mark.more
@pytest.mark.parametrize("name", ["above", "share", "grouped", "maybe none", "of a join"])
def test_rows_beside_values_over_rows_that_were_there_before(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    view = ViewDefinition("v", VALUES[name][1])
    follow_late(local_spark, tmp_path, view, random.Random(f"late {name}"))


@pytest.mark.more
@pytest.mark.parametrize("name", ["above", "grouped", "cross", "having"])
def test_rows_beside_values_over_rows_that_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", VALUES[name][1]), {"t": SCHEMA, "u": SCHEMA})
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()


@pytest.mark.more
def test_a_value_of_a_view_stands_beside_rows_of_another_view(local_spark: SparkSession, tmp_path: Path) -> None:
    average = ViewDefinition("average", "SELECT avg(i) AS a, count(*) AS n FROM t")
    by_key = ViewDefinition("by_key", "SELECT k, sum(i) AS s FROM t GROUP BY k")
    above = ViewDefinition("above", "SELECT k, s FROM by_key WHERE s > (SELECT a FROM average)")
    counted = ViewDefinition("counted", "SELECT count(*) AS n, max(k) AS k FROM above CROSS JOIN average WHERE s > -n")
    graph = ViewGraph(local_spark, tmp_path, [average, by_key, above, counted])
    assert [graph.plans[name].view_class for name in ("above", "counted")] == ["append", "aggregate"]
    follow_in_all_ways(graph, random.Random("views"))


@pytest.mark.more
def test_rows_that_stay_are_read_only_in_epochs_in_which_the_value_changes(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    graph = ViewGraph(local_spark, tmp_path, [ABOVE], SOURCES)
    graph.correct({("t", "many"): with_numbers(*range(1000)), ("u", "a"): with_numbers(500)})
    unchanged = graph.correct({("t", "few"): with_numbers(900, 3), ("u", "b"): with_numbers(400)})
    assert cost(unchanged).given < 10, "the two new rows, and the value"
    graph.check()
    changed = graph.correct({("u", "c"): with_numbers(510)})
    assert cost(changed).given > 1000
    assert cost(changed).found == 10, "501 to 510 leave, and no other row is touched"
    graph.check()
    with as_if_many():
        changed = graph.correct({("t", "other"): with_numbers(450, 505, 520)}, {("u", "c"): None})
    assert cost(changed).written == 12, "501 to 510 come again, and 505 and 520 are new"
    graph.check()
    with as_if_many():
        graph.correct({}, {("t", "other"): None, ("u", "a"): None})
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_a_filter_that_fails_for_other_rows_is_computed_before_the_columns(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    """Spark raises an error for a division by zero, of which the filter keeps the rows away."""
    query = "SELECT 100 / i AS q FROM t WHERE i <> 0 AND i > (SELECT min(i) FROM u)"
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    graph.correct({("t", "a"): with_numbers(0, 1, 2), ("u", "a"): with_numbers(-5)})
    for name in ("b", "c"):
        with as_if_many():
            graph.correct({("u", name): with_numbers(-6 if name == "b" else -7), ("t", name): with_numbers(0, 5)})
        graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_an_equality_is_looked_up(local_spark: SparkSession) -> None:
    plan = analyse(local_spark, ViewDefinition("v", VALUES["latest"][1]), {"t": SCHEMA}, ["t"])
    assert [each.text for each in plan.computed.values()] == ["inner"]


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k FROM t WHERE i > (SELECT i FROM u)", r"a subquery.*several rows.*take max.*ORDER BY.*LIMIT 1"),
        ("SELECT k FROM t WHERE i > (SELECT max(i) FROM u GROUP BY k)", "a subquery"),
        ("SELECT t.k FROM t CROSS JOIN (SELECT max(i) AS m FROM u)", "a join with one row of which no column is used"),
        ("SELECT map(k, i) AS m FROM t WHERE i > (SELECT max(i) FROM u)", "a single value beside m of type map"),
    ],
)
def test_other_subqueries_are_refused_with_a_way_out(local_spark: SparkSession, query: str, reason: str) -> None:
    schemas = {"t": SCHEMA, "u": SCHEMA}
    with pytest.raises(NotIncrementalError, match=f'({reason}).*on_full="allow"'):
        analyse(local_spark, ViewDefinition("v", query), schemas, SOURCES)
    assert analyse(local_spark, ViewDefinition("v", query, on_full="allow"), schemas, SOURCES).view_class == "full"


@pytest.mark.more
@pytest.mark.parametrize("query", [VALUES["above"][1], "SELECT k, rank() OVER (ORDER BY i) AS r FROM t"])
def test_a_view_with_a_schedule_is_recomputed_beside_the_epochs(local_spark: SparkSession, query: str) -> None:
    """Its identity has no leaves of the subquery, as it had before such views were maintained."""
    scheduled = ViewDefinition("v", query, on_full="allow", refresh_interval_s=60)
    plan = analyse(local_spark, scheduled, {"t": SCHEMA}, ["t"])
    assert plan.view_class == "full" and "refresh_interval_s recomputes it" in plan.reason
    assert plan.identity.count("reads t:") == 1
    assert (
        analyse(local_spark, ViewDefinition("v", query, on_full="allow"), {"t": SCHEMA}, ["t"]).view_class == "append"
    )


@pytest.mark.more
def test_a_python_function_above_a_value_stays_above_it(local_spark: SparkSession, tmp_path: Path) -> None:
    twice = udf(lambda i: None if i is None else 2 * i, "bigint")

    def v(t: DataFrame, u: DataFrame) -> DataFrame:
        top = u.agg({"i": "max"}).toDF("m")
        return t.crossJoin(top).where("i > m").select("k", twice("m").alias("j"))

    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", function=v)], SOURCES)
    [leaf] = graph.plans["v"].computed.values()
    assert isinstance(leaf, ScalarSubqueryPlan) and {"k", "m"} <= {*leaf.names}, "the function is above it"
    graph.correct({("t", "a"): with_numbers(1, 2, 3), ("u", "a"): with_numbers(1)})
    graph.check()
    graph.correct({("u", "b"): with_numbers(2)})
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_explain_tells_when_all_rows_are_read(local_spark: SparkSession) -> None:
    plan = analyse(local_spark, ABOVE, {"t": SCHEMA, "u": SCHEMA}, SOURCES)
    text = plan.explain()
    assert "v.1 has the rows beside single values, and v.2 has the single value" in text
    assert "if the value of v.2 changes, one Spark job over all rows of v.1" in text
