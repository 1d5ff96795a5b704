"""A query over any number of leaves, planned once, gives the rows of the query that Spark plans, without planning."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import attribute_id
from spark_bridge.engine.execution import leaves
from spark_bridge.engine.execution.leaves import LeafRows, Leaves
from spark_bridge.engine.execution.planned_once import PlannedOnce
from spark_bridge.operators.group.partial_aggregation import PartialAggregation
from state.tables.stored_rows import WEIGHT_FIELD

SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("x", pa.float64()), ("many", pa.list_(pa.string()))])
ALL = "(SELECT * FROM one UNION ALL SELECT * FROM two UNION ALL SELECT * FROM three)"
QUERIES = {
    "a union": f"SELECT k, i FROM {ALL}",
    "a filter of a union": f"SELECT upper(k) AS u, i + 1 AS next, many FROM {ALL} WHERE i > 1",
    "branches with their own columns": "SELECT k, i FROM one UNION ALL SELECT upper(k), 2 * i FROM two WHERE i > 2",
    "several rows of one": f"SELECT k, each FROM {ALL} LATERAL VIEW explode(many) e AS each",
    "a window": f"SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i DESC, x) AS n FROM {ALL}",
    "an aggregation": f"SELECT k, count(*) AS n, sum(i) AS s, avg(x) AS a FROM {ALL} GROUP BY k",
    "a row each": f"SELECT count(*) AS n, max(k) AS k, min(x) AS x FROM {ALL}",
    "a join": "SELECT one.k, two.i FROM one JOIN two ON one.k = two.k AND one.i = two.i",
}


def rows(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        [
            [None if each % 7 == 0 else f"k{each % 5}" for each in numbers],
            [None if each % 11 == 0 else each for each in numbers],
            [[0.0, -0.0, float("nan"), 1.5][each % 4] for each in numbers],
            [[None if at else f"{each}" for at in range(each % 3)] for each in numbers],
        ],
        schema=SCHEMA,
    )


class Made:
    """A query over the leaves `one`, `two` and `three`, planned once."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self._spark, self._query, self.catalyst = spark, query, Catalyst(spark)
        names: dict[int, str] = {}
        for name in ("one", "two", "three"):
            frame = frame_of_table(spark, SCHEMA.empty_table())
            frame.createOrReplaceTempView(name)
        self.plan = plan = self.catalyst.queries.analyse(self.catalyst.queries.parse(query))
        self._forget_leaves()
        self.schema = self.catalyst.schemas.arrow_schema(plan)
        found = [each.output().apply(0) for each in self.catalyst.trees.leaves(plan)]
        for name, first in zip(("one", "two", "three"), found, strict=False):
            names[attribute_id(first)] = name
        self.names = names
        self.query = PlannedOnce(self.catalyst, plan, names)

    def over(self, given: dict[str, pa.Table], tasks: int = 1) -> pa.Table:
        return self.query.table(self.leaves(given), self.schema, tasks)

    def leaves(self, given: dict[str, pa.Table]) -> Leaves:
        return {name: LeafRows.of_table(self._spark, each) for name, each in given.items()}

    def by_spark(self, given: dict[str, pa.Table]) -> pa.Table:
        for name in ("one", "two", "three"):
            frame_of_table(self._spark, given.get(name, SCHEMA.empty_table())).createOrReplaceTempView(name)
        try:
            return table_of_frame(self._spark.sql(self._query), self.schema)
        finally:
            self._forget_leaves()

    def _forget_leaves(self) -> None:
        for name in ("one", "two", "three"):
            self._spark.catalog.dropTempView(name)


def bag(table: pa.Table) -> list[str]:
    return sorted(str([*row.values()]) for row in table.to_pylist())


def executions(spark: SparkSession) -> int:
    """The number of executed queries, each with its own planning."""
    return int(spark.range(1)._jdf.queryExecution().id())


@pytest.fixture(params=["in the driver", "as a job"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "in the driver":
        yield request.param
        return
    with patch.object(leaves, "FEW_BYTES", -1):
        yield request.param


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_it_gives_the_rows_of_spark_each_time(local_spark: SparkSession, query: str, way: str) -> None:
    made = Made(local_spark, query)
    for given in (
        {"one": rows(40), "two": rows(30, 20), "three": rows(5, 7)},
        {"two": rows(60)},
        {},
        {"one": rows(3), "two": rows(3)},
    ):
        expected = bag(made.by_spark(given))
        assert bag(made.over(given)) == expected
        assert bag(made.over(given, tasks=3)) == expected


def test_no_query_is_planned_again(local_spark: SparkSession, way: str) -> None:
    first, second = Made(local_spark, QUERIES["a filter of a union"]), Made(local_spark, QUERIES["an aggregation"])
    given = {"one": rows(40), "two": rows(30, 20)}

    def run() -> None:
        between = first.query.rows(first.leaves(given), 2).with_constant(first.catalyst, WEIGHT_FIELD, 1)
        second.query.table({"one": LeafRows.together(first.catalyst, [between, between])}, second.schema, 3)

    run()
    before = executions(local_spark)
    for _ in range(3):
        run()
    assert executions(local_spark) == before + 1


def test_parts_have_their_own_columns_and_constants(local_spark: SparkSession, way: str) -> None:
    made = Made(local_spark, "SELECT k, i, x IS NULL AS none FROM one")
    one = LeafRows.of_table(local_spark, rows(4).select(["k", "x"])).with_constant(made.catalyst, SCHEMA.field("i"), -7)
    two = LeafRows.of_table(local_spark, rows(3).select(["i", "k"]))
    found = made.query.table({"one": LeafRows.together(made.catalyst, [one, two])}, made.schema)
    keys = rows(4).column("k").to_pylist()
    expected = [[key, -7, False] for key in keys]
    expected += [[key, i, True] for key, i in zip(keys, rows(3).column("i").to_pylist(), strict=False)]
    assert sorted(map(str, ([*row.values()] for row in found.to_pylist()))) == sorted(map(str, expected))


def test_columns_may_lack_and_may_be_further_ones_in_another_order(local_spark: SparkSession, way: str) -> None:
    made = Made(local_spark, f"SELECT k, i, x, many FROM {ALL}")
    given = rows(9).select(["i", "k"]).append_column("other", pa.array(range(9)))
    found = made.over({"one": given, "two": rows(2)})
    lacking = given.select(["k", "i"]).append_column("x", pa.nulls(9, pa.float64()))
    lacking = lacking.append_column("many", pa.nulls(9, pa.list_(pa.string())))
    assert bag(found) == bag(pa.concat_tables([lacking.cast(SCHEMA), rows(2)]))


def test_the_result_can_be_the_rows_of_another_plan(local_spark: SparkSession, way: str) -> None:
    first = Made(local_spark, "SELECT k, i + 1 AS i, x, many FROM one UNION ALL SELECT * FROM two")
    second = Made(local_spark, "SELECT k, count(*) AS n, sum(i) AS s FROM one GROUP BY k")
    given = {"one": rows(40), "two": rows(5, 7)}
    between = first.query.rows(first.leaves(given))
    expected = bag(second.by_spark({"one": first.by_spark(given)}))
    assert bag(second.query.table({"one": between}, second.schema)) == expected
    assert bag(table_of_frame(between.frame, first.schema)) == bag(first.by_spark(given))


def test_a_partial_aggregation_of_several_leaves_has_one_row_for_each_group(
    local_spark: SparkSession, way: str
) -> None:
    made = Made(local_spark, f"SELECT i % 3 AS g FROM {ALL}")
    rows_below = made.catalyst.trees.items(made.plan.output())
    aggregation = PartialAggregation(made.catalyst, made.plan, made.names, rows_below, [])
    found = aggregation.run(made.leaves({name: rows(9, 1) for name in ("one", "two", "three")}), 1)
    assert sorted(found.column(0).to_pylist()) == [0, 1, 2]


def test_many_rows_of_few_bytes_are_left_to_tasks(local_spark: SparkSession) -> None:
    bits = pa.table({"b": pa.array([True]).take(pa.array([0] * 300_000))})
    assert bits.nbytes < leaves.FEW_BYTES
    assert LeafRows.of_table(local_spark, bits).few is None
    assert LeafRows.of_table(local_spark, bits.slice(0, 1_000)).few is not None
