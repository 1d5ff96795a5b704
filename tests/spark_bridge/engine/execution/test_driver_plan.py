"""A plan in the driver's thread gives the rows and the errors of a job, each time again, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import (
    Messages,
    arrow_schema,
    frame_of_table,
    table_of_frame,
    table_of_messages,
)
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.execution.driver_plan import DriverPlan, held_rows, java_plans
from spark_bridge.engine.session.spark_errors import ends_run, one_line

SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("x", pa.float64())])
QUERIES = {
    "an aggregation by hash": "SELECT k, count(*), sum(i), avg(x), min(i) FROM t GROUP BY k",
    "an aggregation by object hash": "SELECT k, sort_array(collect_set(i)), percentile(x, 0.5) FROM t GROUP BY k",
    "an aggregation by sort": "SELECT i % 7, max(k), min(k) FROM t GROUP BY i % 7",
    "all rows in one group": "SELECT count(*), sum(x) FROM t",
    "a window": "SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i DESC) FROM t",
    "several rows of one": "SELECT k, each FROM t LATERAL VIEW explode(sequence(0, i % 3)) e AS each",
    "an order": "SELECT k, i FROM t ORDER BY i DESC, k",
}


def rows(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    keys = [None if each % 11 == 0 else f"k{each % 5}" for each in numbers]
    return pa.table([keys, list(numbers), [each / 4 for each in numbers]], schema=SCHEMA)


class Made:
    """A query, put together once."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self._catalyst, self._spark, self._query = Catalyst(spark), spark, query
        frame_of_table(spark, SCHEMA.empty_table()).createOrReplaceTempView("t")
        plan = analysed(spark.sql(query))
        [leaf] = self._catalyst.trees.leaves(plan)
        physical = self._catalyst.physical.plan_of(self._catalyst.rows.over_unseen_rows(plan))
        self.schema = self._catalyst.schemas.arrow_schema(plan)
        scans = self._catalyst.trees.leaves(physical)
        self.plan = DriverPlan(self._catalyst, physical, [leaf], scans, plan.schema())

    def over(self, given: pa.Table) -> pa.Table:
        assert not self.plan.needs_job
        return self.plan.table([held_rows(self._spark, given)], self.schema)

    def by_job(self, given: pa.Table) -> pa.Table:
        frame_of_table(self._spark, given).createOrReplaceTempView("t")
        frame = self._spark.sql(self._query)
        return table_of_frame(frame, arrow_schema(frame.schema))


def bag(table: pa.Table) -> list[str]:
    return sorted(str([*row.values()]) for row in table.to_pylist())


def memory_of_tasks(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    return int(jvm.org.apache.spark.SparkEnv.get().memoryManager().executionMemoryUsed())


@pytest.mark.more_after(1)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_it_gives_the_rows_of_a_job_each_time(local_spark: SparkSession, query: str) -> None:
    made, before = Made(local_spark, query), memory_of_tasks(local_spark)
    for given in (rows(50), rows(400, first=30), rows(0), rows(50)):
        assert bag(made.over(given)) == bag(made.by_job(given))
    assert memory_of_tasks(local_spark) == before


def test_it_runs_without_a_job(local_spark: SparkSession) -> None:
    made = Made(local_spark, QUERIES["an aggregation by hash"])
    tracker = local_spark.sparkContext.statusTracker()
    known = len(tracker.getJobIdsForGroup())
    made.over(rows(100))
    assert len(tracker.getJobIdsForGroup()) == known
    made.by_job(rows(100))
    assert len(tracker.getJobIdsForGroup()) > known


@pytest.mark.more
def test_several_threads_take_turns(local_spark: SparkSession) -> None:
    made = Made(local_spark, QUERIES["an aggregation by hash"])
    given = [rows(200, first) for first in range(0, 80, 10)]
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(made.over, given)]
    assert [*map(bag, found)] == [bag(made.by_job(each)) for each in given]


def test_an_error_is_that_of_the_query_and_the_next_rows_are_right(local_spark: SparkSession) -> None:
    made = Made(local_spark, "SELECT k, sum(if(i = 77, raise_error('too wet'), i)) FROM t GROUP BY k")
    before = memory_of_tasks(local_spark)
    with pytest.raises(Py4JJavaError) as failed:
        made.over(rows(100))
    assert "too wet" in one_line(failed.value) and not ends_run(failed.value)
    assert memory_of_tasks(local_spark) == before
    assert local_spark._jvm.org.apache.spark.TaskContext.get() is None
    assert bag(made.over(rows(50))) == bag(made.by_job(rows(50)))


def test_a_broadcast_is_read_as_in_a_task(local_spark: SparkSession) -> None:
    """Spark keeps the value of a broadcast softly, and locks its blocks for the task to read it again."""
    catalyst, jvm = Catalyst(local_spark), cast(Any, local_spark._jvm)
    plan = analysed(frame_of_table(local_spark, SCHEMA.empty_table()))
    [leaf] = catalyst.trees.leaves(plan)
    row = frame_of_table(local_spark, rows(1))._jdf.queryExecution().executedPlan().rows().head()
    known = local_spark.sparkContext._jsc.broadcast(row)
    invoke, any_object = jvm.java.lang.invoke, jvm.java.lang.Class.forName("java.lang.Object")
    value = invoke.MethodHandles.lookup().findVirtual(
        jvm.java.lang.Class.forName("org.apache.spark.broadcast.Broadcast"),
        "value",
        invoke.MethodType.methodType(any_object),
    )
    reading = invoke.MethodHandleProxies.asInterfaceInstance(
        jvm.java.lang.Class.forName("scala.Function1"),
        invoke.MethodHandles.dropArguments(value.bindTo(known), 0, [any_object]),
    )
    session = local_spark._jsparkSession
    rdd = java_plans(local_spark).leaf(session.sparkContext(), leaf.schema())
    chain = catalyst.physical.scan_of_one(leaf.output(), rdd).execute().map(reading, jvm.scala.reflect.ClassTag.Any())
    made = java_plans(local_spark).of(chain, [rdd], leaf.schema(), session)
    with tempfile.NamedTemporaryFile() as file:
        gateway = cast(Any, local_spark.sparkContext._gateway).java_gateway_server.getGateway()
        held = held_rows(local_spark, rows(3))
        made.run(gateway, held.rows._target_id, file.name)
        found = table_of_messages(Messages().load_stream(file), SCHEMA)
    assert found.to_pylist() == rows(1).to_pylist() * 3
    assert local_spark.sparkContext._jsc.broadcast("another").value() == "another"


@pytest.mark.parametrize(
    "query",
    ["SELECT shouted(k) FROM t", "SELECT /*+ REPARTITION(2) */ k FROM t"],
    ids=["a process of Python", "a shuffle"],
)
def test_other_plans_are_jobs(local_spark: SparkSession, query: str) -> None:
    local_spark.udf.register("shouted", lambda text: text and f"{text}!", "string")
    assert Made(local_spark, query).plan.needs_job
