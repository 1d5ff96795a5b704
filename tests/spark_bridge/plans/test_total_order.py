"""A view has one answer, also where rows tie in an order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.maintenance.recomputation import computed
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("i", pa.int64()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def over(function: str, frame: str = "", order: str = "i") -> str:
    return f"SELECT k, i, s, {function} OVER (PARTITION BY k ORDER BY {order} {frame}) AS v FROM t"


def _by_function(t: DataFrame) -> DataFrame:
    return (
        t.withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy(F.desc("i")))).where("n <= 2").drop("m")
    )


QUERIES: dict[str, Any] = {
    "row_number": over("row_number()"),
    "row_number of nothing else": "SELECT s, row_number() OVER (ORDER BY 1) AS n FROM t",
    "descending": over("row_number()", order="i DESC NULLS LAST"),
    "beside ranks": "SELECT *, row_number() OVER w AS n, rank() OVER w AS r, dense_rank() OVER w AS d, "
    "sum(x) OVER w AS a, percent_rank() OVER w AS p, cume_dist() OVER w AS c "
    "FROM (SELECT k, i, s, x FROM t) WINDOW w AS (PARTITION BY k ORDER BY i)",
    "ntile": over("ntile(3)"),
    "lag": over("lag(s, 1, 'none')"),
    "lead": over("lead(s, 2)"),
    "rows": over("sum(x)", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    "rows without an order": "SELECT s, min(s) OVER (PARTITION BY k ROWS 1 PRECEDING) AS v FROM t",
    "first of peers": over("first_value(s)"),
    "last of peers": over("last_value(s)"),
    "last value of peers": over("last_value(s) IGNORE NULLS"),
    "first after": over("first_value(s)", "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"),
    "last of rows": over("last_value(s)", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"),
    "last of all": over("last_value(s)", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
    "nth of all": over("nth_value(s, 2)", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
    "max_by over a window": over("max_by(s, i)", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING"),
    "limit": "SELECT k, i, s FROM t ORDER BY i DESC LIMIT 7",
    "offset": "SELECT s FROM (SELECT i, s FROM t ORDER BY i LIMIT 9 OFFSET 3) WHERE s <> 'b'",
    "limit by a map": "SELECT i, m FROM t ORDER BY i LIMIT 5",
    "in a subquery": "SELECT s FROM t WHERE s IN (SELECT s FROM t ORDER BY i LIMIT 2)",
    "of a subquery": "SELECT k, (SELECT max_by(s, i) FROM t u WHERE u.k <=> t.k) AS v FROM t",
    "joined": "WITH u AS (SELECT k, i, s, row_number() OVER (PARTITION BY k ORDER BY i) AS n FROM t) "
    "SELECT u.k, u.s, v.s AS other FROM u JOIN u v ON u.k = v.k AND u.n = v.n + 1",
    "function": _by_function,
    "max_by": "SELECT k, max_by(s, i) AS a, min_by(s, i) AS b, max_by(x, i) FILTER (WHERE x > 0) AS c "
    "FROM t GROUP BY k",
    "max_by of maps": "SELECT k, max_by(m, i) AS m FROM t GROUP BY k",
}  # fmt: skip
GROUPED = ("max_by", "max_by of maps")
QUICK = ("beside ranks", "limit")


def definition(name: str) -> ViewDefinition:
    query = QUERIES[name]
    return ViewDefinition("v", query) if isinstance(query, str) else ViewDefinition("v", function=query)


def rows(chance: random.Random, count: int, ties: bool) -> pa.Table:
    orders = [chance.choice([None, 1, 2, 3]) if ties else number for number in range(count)]
    made = [
        {
            "k": chance.choice(["a", "b", None]),
            "i": order,
            "s": chance.choice([None, *"bcdefgh"]),
            "x": chance.choice([None, -1.5, 0.25, 2.0]),
            "m": [("n", chance.randrange(9))],
        }
        for order in orders
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def answer(spark: SparkSession, name: str, table: pa.Table, total: bool) -> list[str]:
    frames = {"t": frame_of_table(spark, table)}
    if total:
        with computed(spark, definition(name), frames) as frame:
            return sorted(repr(row.asDict()) for row in frame.collect())
    query = QUERIES[name]
    frames["t"].createOrReplaceTempView("t")
    frame = spark.sql(query) if isinstance(query, str) else query(**frames)
    return sorted(repr(row.asDict()) for row in frame.collect())


@pytest.mark.more
@pytest.mark.parametrize("name", few(QUERIES, *QUICK))
def test_tied_rows_give_one_answer_in_any_order(local_spark: SparkSession, name: str) -> None:
    chance = random.Random(name)
    table = rows(chance, 40, ties=True)
    orders = [chance.sample(range(table.num_rows), table.num_rows) for _ in range(4)]
    spark_s, ours = (
        {tuple(answer(local_spark, name, table.take(order), total)) for order in orders} for total in (False, True)
    )
    assert len(spark_s) > 1, "the query does not depend on the order of rows"
    assert len(ours) == 1


@pytest.mark.more
@pytest.mark.parametrize("name", few(QUERIES, *QUICK))
def test_rows_that_do_not_tie_give_sparks_answer(local_spark: SparkSession, name: str) -> None:
    if name in ("row_number of nothing else", "rows without an order"):
        pytest.skip("it has no order")
    table = rows(random.Random(name), 40, ties=False)
    assert answer(local_spark, name, table, total=True) == answer(local_spark, name, table, total=False)


@pytest.mark.more
def test_what_depends_on_peers_only_is_sparks_answer(local_spark: SparkSession) -> None:
    frame = frame_of_table(local_spark, rows(random.Random(0), 40, ties=True))
    frame.createOrReplaceTempView("t")
    ranks = QUERIES["beside ranks"]
    theirs = [row.asDict() for row in local_spark.sql(ranks.replace("row_number() OVER w AS n, ", "")).collect()]
    with computed(local_spark, ViewDefinition("v", ranks), {"t": frame}) as ours:
        found = [row.asDict() for row in ours.drop("n").collect()]
    assert sorted(map(repr, found)) == sorted(map(repr, theirs))


@pytest.mark.more
@pytest.mark.parametrize("name", few(GROUPED, "max_by"))
def test_a_view_that_is_maintained_has_the_same_answer_after_any_epochs(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(name)
    table = rows(chance, 40, ties=True)
    found = set()
    for number in range(3):
        view = FollowedView(local_spark, tmp_path / str(number), definition(name), {"t": SCHEMA})
        order = chance.sample(range(40), 40)
        for start in range(0, 40, 10):
            view.run({"t": table.take(order[start : start + 10])})
        found.add(tuple(sorted(map(repr, view.stored().to_pylist(maps_as_pydicts="strict")))))
    assert found == {tuple(answer(local_spark, name, table, total=True))}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            over("nth_value(s, 2)"),
            "nth_value over a RANGE frame, in which rows can tie: write a ROWS frame",
        ),
        (lambda t: t.sortWithinPartitions("i").limit(3), "Limit without an order"),
    ],
)
def test_an_order_that_cannot_be_made_total_is_refused(local_spark: SparkSession, query: Any, reason: str) -> None:
    view = ViewDefinition("v", query, on_full="allow") if isinstance(query, str) else None
    view = view or ViewDefinition("v", function=query, on_full="allow")
    with pytest.raises(NotIncrementalError, match=reason):
        analyse(local_spark, view, {"t": SCHEMA}, {"t"})
