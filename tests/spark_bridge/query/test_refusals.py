"""An impossible view is refused in one line that names the view, the reason and the advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from spark_bridge.query.spark_analysis import SourceWithoutSchemaError
from state.errors import NotIncrementalError, ViewError
from state.location import Location
from tests.cases import few
from tests.spark_bridge.random_rows import SCHEMA

SCHEMAS = {"t": SCHEMA, "u": SCHEMA, "later": None}

NOT_INCREMENTAL = {
    "a join (inner) on (t.i < u.i), without": "SELECT t.k FROM t JOIN u ON t.i < u.i",
    "a join (inner) without a condition": "SELECT t.k FROM t, u",
    "NOT IN over values that may be null": "SELECT k FROM t WHERE k NOT IN (SELECT k FROM u)",
    "Sort": "SELECT k FROM (SELECT k, i FROM t ORDER BY k) WHERE i > 0",
    "GlobalLimit": "SELECT k FROM t LIMIT 3",
    "GlobalLimit without an order": "SELECT count(*) AS n FROM t LIMIT 0",
    "pivotfirst": "SELECT * FROM (SELECT k, x, i FROM t) PIVOT (sum(i) FOR x IN (0.5 AS a, 2.0 AS b))",
    "Sample": "SELECT k FROM t TABLESAMPLE (10 PERCENT)",
    "OneRowRelation": "SELECT k FROM t UNION ALL SELECT 'x'",
    "count(DISTINCT ...) over values of type interval": "SELECT count(DISTINCT at - timestamp'2020-01-01') AS n FROM t",
    "first": "SELECT k, first(i) AS f FROM t GROUP BY k",
    "last": "SELECT k, last(i, true) AS f FROM t GROUP BY k",
    "any_value": "SELECT k, any_value(i) AS f FROM t GROUP BY k",
    "mode": "SELECT k, mode(i) AS f FROM t GROUP BY k",
    "histogram_numeric": "SELECT histogram_numeric(i, 5) AS h FROM t",
    "approx_count_distinct with an error of 0.0005": "SELECT approx_count_distinct(i, 0.0005) AS n FROM t",
    "shuffle": "SELECT k, shuffle(collect_list(i)) AS l FROM t GROUP BY k",
    "sum over an interval": "SELECT extract(DAY FROM sum(at - timestamp'2020-01-01')) AS s FROM t",
    "grouping by (t.at": "SELECT count(*) AS n FROM t GROUP BY at - timestamp'2020-01-01'",
    "rand()": "SELECT k, rand() AS r FROM t",
    "uuid()": "SELECT uuid() AS u FROM t",
    "current_timestamp()": "SELECT k, max(at) < current_timestamp() AS old FROM t GROUP BY k",
    "now()": "SELECT k, max(at) AS last, now() AS c FROM t GROUP BY k",
    "current_user()": "SELECT k, current_user() AS u FROM t",
    "now() in a condition": "SELECT k FROM t WHERE now() - at < INTERVAL 1 HOUR OR i > 0",
    "current_date() in a condition": "SELECT k, count(*) FILTER (WHERE day < current_date()) AS n FROM t GROUP BY k",
    "the text now as a TIMESTAMP": "SELECT k, CAST('now' AS TIMESTAMP) AS c FROM t",
    "the text Yesterday  as a DATE": "SELECT k FROM t WHERE day >= 'Yesterday '",
    "DATE 'today'": "SELECT k FROM t WHERE day >= DATE 'today'",
    'timestamp_ntz"NOW"': 'SELECT k, timestamp_ntz"NOW" AS c FROM t',
    "a subquery (ScalarSubquery)": "SELECT k FROM t WHERE i > (SELECT i FROM u)",
}
# One view of each rule.
QUICK = (
    *(
        "a join (inner) without a condition",
        "GlobalLimit",
        "first",
        "sum over an interval",
        "grouping by (t.at",
    ),
    *("rand()", "now() in a condition", "DATE 'today'", "a subquery (ScalarSubquery)"),
)


@pytest.mark.more_after(8)
@pytest.mark.parametrize("reason", few(NOT_INCREMENTAL, *QUICK))
def test_view_that_cannot_be_maintained_is_refused_with_the_reason(local_spark: SparkSession, reason: str) -> None:
    with pytest.raises(NotIncrementalError) as refused:
        analyse(local_spark, ViewDefinition("v", NOT_INCREMENTAL[reason]), SCHEMAS)
    message = str(refused.value)
    assert message.startswith("view 'v' cannot be maintained epoch by epoch because of ")
    assert reason in message
    assert ": " in message.partition(reason)[2], "it has advice"
    assert "\n" not in message


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("SELECT * FROM nope", ["'nope', which is neither a source nor a view", "declared are later, t, u"]),
        ("SELEC k FROM t", ["Syntax error", "line 1"]),
        ("SELECT nope FROM t", ["`nope` cannot be resolved", "line 1 pos 7"]),
        ("SELECT k + array(1) FROM t", ["DATATYPE_MISMATCH", "line 1"]),
        ("SELECT k, count(*) AS n FROM t", ["MISSING_GROUP_BY"]),
        ("SELECT 1 AS one", ["uses no source", "declared are later, t, u"]),
        ("SELECT k, g AS k FROM t", ["column 'k'", "already", "AS"]),
        ("SELECT k, g AS K FROM t", ["column 'K'", "'k' already"]),
        ("SELECT k AS __sw_key FROM t", ["'__sw_key'", "reserved"]),
        ("SELECT k AS `a.b` FROM t", ["'a.b'", "dot", "AS"]),
        ("SELECT k, null AS nothing FROM t", ["'nothing'", "null"]),
        ("SELECT k, at - at AS d FROM t", ["'d'", "duration"]),
        ("DROP TABLE t", ["not a query"]),
        ("CREATE TEMPORARY VIEW x AS SELECT k FROM t", ["not a query"]),
        ("SELECT k FROM parquet.`/nowhere`", ["PATH_NOT_FOUND"]),
    ],
)
def test_view_that_cannot_be_built_is_one_line(local_spark: SparkSession, query: str, parts: list[str]) -> None:
    with pytest.raises(ViewError) as refused:
        analyse(local_spark, ViewDefinition("v", query), SCHEMAS)
    message = str(refused.value)
    assert message.startswith("view 'v'")
    assert "\n" not in message
    assert "JVM" not in message
    for part in parts:
        assert part in message


def test_commands_are_not_executed(local_spark: SparkSession) -> None:
    with pytest.raises(ViewError):
        analyse(local_spark, ViewDefinition("v", "CREATE DATABASE made_by_a_view"), SCHEMAS)
    assert "made_by_a_view" not in [database.name for database in local_spark.catalog.listDatabases()]


def test_analysis_leaves_no_temporary_view_behind(local_spark: SparkSession) -> None:
    analyse(local_spark, ViewDefinition("v", "SELECT k FROM t"), SCHEMAS)
    assert [table.name for table in local_spark.catalog.listTables()] == []


def test_source_without_schema_has_an_error_of_its_own(local_spark: SparkSession) -> None:
    with pytest.raises(SourceWithoutSchemaError, match="'later'"):
        analyse(local_spark, ViewDefinition("v", "SELECT * FROM later"), SCHEMAS)

    def v(later: DataFrame) -> DataFrame:
        return later

    with pytest.raises(SourceWithoutSchemaError, match="'later'"):
        analyse(local_spark, ViewDefinition("v", function=v), SCHEMAS)


def test_function_that_reads_an_unknown_source_is_refused(local_spark: SparkSession) -> None:
    with pytest.raises(ViewError, match="'nope', which is neither a source nor a view; declared are later, t, u"):
        analyse(local_spark, ViewDefinition("v", function=lambda nope: nope), SCHEMAS)


def test_an_error_of_a_function_names_the_view(local_spark: SparkSession) -> None:
    with pytest.raises(ViewError, match="view 'v': its function raised ZeroDivisionError"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: 1 / 0), SCHEMAS)
    with pytest.raises(ViewError, match="returned int; it must return"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: 3), SCHEMAS)
    with pytest.raises(ViewError, match=r"view 'v': .*nope"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: t.select("nope")), SCHEMAS)


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.agg(F.avg("i")).collect(),
        pytest.param(lambda t: t.count(), marks=pytest.mark.more),
        pytest.param(lambda t: t.where("i > 0").toPandas(), marks=pytest.mark.more),
        pytest.param(lambda t: t.isEmpty(), marks=pytest.mark.more),
        pytest.param(lambda t: t.rdd.take(1), marks=pytest.mark.more),
        pytest.param(lambda t: t.groupBy("k").pivot("g").count(), marks=pytest.mark.more),
        pytest.param(lambda t: t.sparkSession.sql("SELECT max(i) FROM t").first(), marks=pytest.mark.more),
    ],
)
def test_function_that_reads_rows_while_it_is_declared_is_refused(
    local_spark: SparkSession, read: Callable[[DataFrame], object]
) -> None:
    def v(t: DataFrame) -> DataFrame:
        read(t)
        return t.select("k")

    for on_full in ("refuse", "allow"):
        with pytest.raises(ViewError, match="view 'v': its function reads rows while it is declared"):
            analyse(local_spark, ViewDefinition("v", function=v, on_full=on_full), SCHEMAS, ["t", "u"])


def test_function_may_ask_for_columns_and_for_the_plan(local_spark: SparkSession) -> None:
    def v(t: DataFrame) -> DataFrame:
        t.createOrReplaceTempView("mine")
        return t.select([column for column in t.columns if t.schema[column].nullable]).where("k = 'DATE today'")

    assert analyse(local_spark, ViewDefinition("v", function=v), SCHEMAS).view_class == "append"


def test_pandas_udf_over_an_iterator_is_refused_because_it_can_keep_a_state(local_spark: SparkSession) -> None:
    def counted(series: Iterator[pd.Series]) -> Iterator[pd.Series]:
        count = 0
        for each in series:
            count += len(each)
            yield each * 0 + count

    so_far = F.pandas_udf(counted, "long")
    with pytest.raises(NotIncrementalError, match=r"because of counted\(\), a pandas UDF over an iterator"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: t.select(so_far("g").alias("d"))), SCHEMAS)


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("dropDuplicates over some columns", lambda t: t.dropDuplicates(["k"])),
        ("mode", lambda t: t.groupBy("k").agg(F.mode("g").alias("m"))),
        ("first", lambda t: t.groupBy("k").agg(F.first("g").alias("m"))),
        ("any_value", lambda t: t.selectExpr("k", "any_value(g) OVER (PARTITION BY k) AS m")),
        ("first", lambda t: t.selectExpr("k", "first_value(g) OVER (PARTITION BY k) AS m")),
    ],
)
def test_what_takes_any_row_is_refused_even_if_all_rows_are_read(
    local_spark: SparkSession, what: str, made: Callable[[DataFrame], DataFrame]
) -> None:
    with pytest.raises(NotIncrementalError, match=f"because of .*{what}"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: made(t), on_full="allow"), SCHEMAS, ["t"])


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.k, current_timestamp() AS c FROM t JOIN u USING (k)",
        "SELECT k, r, now() AS c FROM (SELECT k, rank() OVER (PARTITION BY k ORDER BY i) AS r FROM t)",
        "SELECT t.k, max(now()) AS c FROM t JOIN u USING (k) GROUP BY t.k",
    ],
    ids=["join", "window", "aggregation"],
)
def test_the_time_of_an_epoch_beside_rows_that_leave_is_refused(local_spark: SparkSession, query: str) -> None:
    """It leaves by its values, and the time at which it came is not known any more."""
    with pytest.raises(NotIncrementalError, match=r"because of (the time of an epoch|current_timestamp\(\)|now\(\))"):
        analyse(local_spark, ViewDefinition("v", query), SCHEMAS, ["t", "u"])


@pytest.mark.more
@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.k, x.c FROM (SELECT k, g, current_date() AS c FROM t) x JOIN u ON x.g = u.g",
        "SELECT k, now() AS c, rank() OVER (PARTITION BY k ORDER BY i) AS r FROM t",
    ],
    ids=["join", "window"],
)
def test_the_time_at_which_rows_came_is_stored_below(local_spark: SparkSession, query: str) -> None:
    assert analyse(local_spark, ViewDefinition("v", query), SCHEMAS, ["t", "u"]).view_class == "append"


@pytest.mark.more
def test_a_refusal_names_all_that_recomputation_needs_at_once(local_spark: SparkSession) -> None:
    definition = ViewDefinition("v", "SELECT t.k FROM t JOIN u ON t.i < u.i")
    for stored, wanted in (["t", "u"], ""), (["t"], ", and u declared"), ([], ", and t and u declared"):
        with pytest.raises(NotIncrementalError) as refused:
            analyse(local_spark, definition, SCHEMAS, stored)
        needs = f"{wanted} with materialize=True" if wanted else ""
        assert str(refused.value).endswith(f'; or let it be recomputed as a whole, with on_full="allow"{needs}')


@pytest.mark.more
def test_the_first_row_of_an_order_is_determined(local_spark: SparkSession) -> None:
    query = "SELECT k, first_value(i) OVER (PARTITION BY k ORDER BY at, i) AS f FROM t"
    plan = analyse(local_spark, ViewDefinition("v", query, on_full="allow"), SCHEMAS, ["t"])
    assert plan.view_class == "append"
    chance = "SELECT k, first_value(i) OVER (PARTITION BY k ORDER BY rand()) AS f FROM t"
    with pytest.raises(NotIncrementalError, match=r"rand\(\)"):
        analyse(local_spark, ViewDefinition("v", chance, on_full="allow"), SCHEMAS, ["t"])


def test_function_with_a_day_of_the_wall_clock_is_refused(local_spark: SparkSession) -> None:
    def v(t: DataFrame) -> DataFrame:
        return t.where("day >= DATE 'today'")

    with pytest.raises(NotIncrementalError, match="because of DATE 'today'"):
        analyse(local_spark, ViewDefinition("v", function=v), SCHEMAS)


def test_fixed_times_and_comments_are_no_wall_clock(local_spark: SparkSession) -> None:
    for query in (
        "SELECT k, CAST('epoch' AS TIMESTAMP) AS c, 'now' AS word FROM t WHERE day > DATE '2026-01-01'",
        "SELECT k -- not DATE 'today'\nFROM t /* nor TIMESTAMP 'now' */",
    ):
        assert analyse(local_spark, ViewDefinition("v", query), SCHEMAS).view_class == "append"


def test_udf_that_is_not_deterministic_is_refused_by_name(local_spark: SparkSession) -> None:
    def dice(x: int) -> int:
        return x

    thrown = F.udf(dice, "int").asNondeterministic()
    with pytest.raises(NotIncrementalError, match=r"because of dice\(\)"):
        analyse(local_spark, ViewDefinition("v", function=lambda t: t.select(thrown("g").alias("d"))), SCHEMAS)


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", "../up", "_hidden", "é"])
def test_name_that_cannot_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(ViewError, match="rename it"):
        ViewDefinition(name, "SELECT k FROM t")


def test_function_with_parameters_that_are_not_sources_is_refused() -> None:
    for function in (lambda: None, lambda *t: None, lambda **t: None, lambda t=1: None):
        with pytest.raises(ViewError, match="view 'v'"):
            ViewDefinition("v", function=function)
    with pytest.raises(ViewError, match="either a query or a function"):
        ViewDefinition("v")
    with pytest.raises(ViewError, match="empty"):
        ViewDefinition("v", "  ")


def test_two_views_of_one_name_are_refused(local_spark: SparkSession) -> None:
    definitions = [ViewDefinition("v", "SELECT k FROM t"), ViewDefinition("v", "SELECT g FROM t")]
    materializer = Materializer(local_spark, Location("/nowhere"))
    with pytest.raises(ViewError, match="'v' is declared twice"):
        materializer.declare(definitions, SCHEMAS, {})
    materializer.close()
