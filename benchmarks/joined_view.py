"""Cost of a join that is kept up to date: orders and customers, epochs of new orders and of customers that move.

    python -m benchmarks.joined_view [--orders 5000000] [--epochs 50] [--life 1000]

In one local session, in turns: an aggregation of the orders alone, an aggregation of orders joined with customers, with
    and
without the memory for rows of joins, and the rows of a left join.  There are a tenth as many customers as orders.  An
epoch has 1,000 new orders and 100 customers: half of them are new, and half move to another region, as their file is
replaced.  Beside it, the same query by Spark and by DuckDB over all rows.  Last, ten joined views beside one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction, StoredBlock
from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from benchmarks.view_life import measure_life
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.fragment_stager import FragmentStager
from state.location import Location
from state.tables.fingerprint import path_fingerprint
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, LINEAGE, stored_rows_path

ORDERS = pa.schema([("customer", pa.int64()), ("amount", pa.int64())])
CUSTOMERS = pa.schema([("id", pa.int64()), ("region", pa.string())])
SCHEMAS = {"orders": ORDERS, "customers": CUSTOMERS}
JOINED = (
    "SELECT region, count(*) AS n, sum(amount) AS total FROM orders JOIN customers ON customer = id GROUP BY region"
)
ALONE, GROUPED = "an aggregation of the orders alone", "an aggregation of orders and customers"
IN_MEMORY, LEFT = "the same, its sides in memory", "the rows of a left join, its sides in memory"
VIEWS: Mapping[str, str] = {
    ALONE: "SELECT amount % 200 AS region, count(*) AS n, sum(amount) AS total FROM orders GROUP BY amount % 200",
    GROUPED: JOINED,
    IN_MEMORY: JOINED,
    LEFT: "SELECT customer, amount, region FROM orders LEFT JOIN customers ON customer = id",
}
_OF_BOTH = "FROM orders JOIN customers ON customer = id"
TEN = (
    JOINED,
    f"SELECT region, count(*) AS n, avg(amount) AS mean {_OF_BOTH} GROUP BY region",
    f"SELECT region, max(amount) AS largest, min(customer) AS first {_OF_BOTH} GROUP BY region",
    f"SELECT region, count(DISTINCT customer) AS buyers, sum(amount) AS total {_OF_BOTH} GROUP BY region",
    f"SELECT customer, region, sum(amount) AS total {_OF_BOTH} WHERE amount > 500000 GROUP BY customer, region",
    f"SELECT customer, region, amount {_OF_BOTH} WHERE amount > 990000",
    f"SELECT amount % 10 AS band, region, count(*) AS n, sum(customer) AS s {_OF_BOTH} GROUP BY amount % 10, region",
    f"SELECT left(region, 8) AS area, count(*) AS n, max(customer) AS last {_OF_BOTH} GROUP BY left(region, 8)",
    "SELECT customer, amount, region FROM orders LEFT JOIN customers ON customer = id WHERE amount < 10000",
    f"SELECT region, customer % 100 AS part, sum(amount) AS total {_OF_BOTH} GROUP BY region, customer % 100",
)
MEMORY = {ALONE: 0, GROUPED: 0, IN_MEMORY: 512 << 20, LEFT: 512 << 20}
TARGETS = {GROUPED: Target(0.25, "s"), IN_MEMORY: Target(0.18, "s")}
OF_TEN = Target(3, TIMES)
NEW_ORDERS, CUSTOMERS_A_FILE, WARM_EPOCHS = 1_000, 50, 5


class Followed:
    """Views over two sources, with their first rows."""

    def __init__(
        self, spark: SparkSession, root: Location, queries: Sequence[str], orders: int, memory_bytes: int
    ) -> None:
        self._random = np.random.default_rng(1)
        self._epoch = self._versions = 0
        self.customers, self.root, self.seconds, self.tidied_s = orders // 10, root, list[float](), list[float]()
        self.views: Mapping[str, ViewVersion] = {}
        self.materializer = Materializer(
            spark, root, materialized=["customers"], replacing=["customers"], join_memory_bytes=memory_bytes
        )
        definitions = [ViewDefinition(f"v{number}", query) for number, query in enumerate(queries)]
        self.materializer.declare(definitions, SCHEMAS, {})
        self.orders, self.regions = [self._new_orders(orders)], dict[str, pa.Table]()
        files = {f"{at}": self._customers(at, CUSTOMERS_A_FILE) for at in range(0, self.customers, CUSTOMERS_A_FILE)}
        started = time.perf_counter()
        self._run(self.orders[0], files, {})
        while not all(each.name in self.views for each in definitions):
            self._run(self.orders[0].slice(0, 0), {}, {})
            time.sleep(0.1)
        self.first_s = time.perf_counter() - started

    def turn(self, new_orders: int = NEW_ORDERS) -> None:
        """An epoch of new orders, a file of new customers, and one whose customers move."""
        moved = str(CUSTOMERS_A_FILE * int(self._random.integers(0, self.customers // CUSTOMERS_A_FILE)))
        new = {str(self.customers): self._customers(self.customers, CUSTOMERS_A_FILE)}
        self.customers += CUSTOMERS_A_FILE
        self.orders.append(self._new_orders(new_orders))
        self.seconds.append(self._run(self.orders[-1], new, {moved: self._customers(int(moved), CUSTOMERS_A_FILE)}))

    def _new_orders(self, count: int) -> pa.Table:
        customers = self._random.integers(0, self.customers, count)
        return pa.table([customers, self._random.integers(0, 1_000_000, count)], schema=ORDERS)

    def _customers(self, first: int, count: int) -> pa.Table:
        regions = [f"region-{each:03}" for each in self._random.integers(0, 200, count)]
        return pa.table([np.arange(first, first + count), regions], schema=CUSTOMERS)

    def _run(self, orders: pa.Table, new: Mapping[str, pa.Table], replaced: Mapping[str, pa.Table]) -> float:
        blocks = {"orders": [Block("benchmark", "orders", orders, orders.num_rows, orders.nbytes, tuple(ORDERS.names))]}
        if new:
            rows = pa.concat_tables(_with_file(path, each) for path, each in new.items())
            names, stored = tuple(rows.column_names), self._stored(new)
            blocks["customers"] = [Block("benchmark", "customers", rows, rows.num_rows, rows.nbytes, names, stored)]
        corrections = [
            Correction("customers", path, b"12345678", (self._stored({path: each}),)) for path, each in replaced.items()
        ]
        self.regions.update({**new, **replaced})
        self._epoch += 1
        started = time.perf_counter()
        done = self.materializer.run_epoch(self._epoch, blocks, corrections)
        ended = time.perf_counter()
        self.views = done.views
        self.materializer.tidy()
        self.tidied_s.append(time.perf_counter() - ended)
        return ended - started

    def _stored(self, files: Mapping[str, pa.Table]) -> StoredBlock:
        self._versions += 1
        rows = pa.concat_tables(files.values())
        paths = [path for path, each in files.items() for _ in range(each.num_rows)]
        lineage = [paths, [self._versions] * rows.num_rows, range(rows.num_rows)]
        arrays = [pa.array(values, field.type) for values, field in zip(lineage, LINEAGE, strict=True)]
        table = pa.table([*arrays, *rows.columns], schema=pa.schema([*LINEAGE, *CUSTOMERS]))
        place = stored_rows_path("customers", 1)
        return StoredBlock(place, table.schema, FragmentStager(self.root.child(place)).stage(table))


def _with_file(path: str, rows: pa.Table) -> pa.Table:
    files = pa.repeat(pa.scalar(path_fingerprint("customers", path), FILE_FIELD.type), rows.num_rows)
    return rows.append_column(FILE_FIELD, files)


@contextmanager
def shown_to_spark(spark: SparkSession, tables: Mapping[str, pa.Table]) -> Iterator[None]:
    """Spark's queries see these tables by their names."""
    for name, rows in tables.items():
        frame_of_table(spark, rows).createOrReplaceTempView(name)
    yield
    for name in tables:
        spark.catalog.dropTempView(name)


def recomputed_s(spark: SparkSession, view: Followed) -> tuple[float, float]:
    """Seconds in which Spark and DuckDB compute the joined groups from all rows in memory."""
    tables = {"orders": pa.concat_tables(view.orders), "customers": pa.concat_tables(view.regions.values())}
    with shown_to_spark(spark, tables):
        started = time.perf_counter()
        frame = spark.sql(JOINED)
        expected = table_of_frame(frame, arrow_schema(frame.schema))
        by_spark = time.perf_counter() - started
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    started = time.perf_counter()
    found = connection.sql(JOINED).to_arrow_table()
    by_duckdb = time.perf_counter() - started
    assert found.num_rows == expected.num_rows, "both have every region"
    return by_spark, by_duckdb


def measure_ten(spark: SparkSession, orders: int, epochs: int) -> Table:
    """Epochs of ten joined views, and of the first of them, in turns."""
    with ExitStack() as stack:
        followed = []
        for queries in (TEN[:1], TEN):
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            followed.append(Followed(spark, root, queries, orders, MEMORY[IN_MEMORY]))
            stack.callback(followed[-1].materializer.close)
        for _ in range(WARM_EPOCHS + epochs):
            for views in followed:
                views.turn()
    one, ten = (median(views.seconds[WARM_EPOCHS:]) for views in followed)
    rows = (
        Row("one joined view", (Number(one, "s"), Number(followed[0].first_s, "s")), 1.0),
        Row("ten joined views", (Number(ten, "s"), Number(followed[1].first_s, "s")), ten / one, OF_TEN),
    )
    columns = ("p50", "the first rows, until they show")
    return Table(columns, rows, "of one view", f"Ten views over the same two sources, {orders:,} orders")


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "joined-view")
    warm_up(spark)
    with ExitStack() as stack:
        followed = {}
        for name, query in VIEWS.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            followed[name] = Followed(spark, root, [query], options.orders, MEMORY[name])
            stack.callback(followed[name].materializer.close)
        for _ in range(WARM_EPOCHS + options.epochs):
            for view in followed.values():
                view.turn()
        alone = median(followed[ALONE].seconds[WARM_EPOCHS:])
        by_spark, by_duckdb = recomputed_s(spark, followed[GROUPED])
        rows = []
        for name, view in followed.items():
            seconds = sorted(view.seconds[WARM_EPOCHS:])
            numbers = (
                Number(median(seconds), "s"),
                Number(seconds[int(0.95 * len(seconds))], "s"),
                Number(view.first_s, "s"),
                Number(by_spark, "s") if name == GROUPED else None,
                Number(by_duckdb, "s") if name == GROUPED else None,
            )
            rows.append(Row(name, numbers, median(seconds) / alone, TARGETS.get(name)))
        life = measure_life(followed[IN_MEMORY], options.life, "of the grouped join")
    ten = measure_ten(spark, options.orders // 5, options.epochs)
    spark.stop()
    columns = ("p50", "p95", "the first rows, until they show", "recomputed by Spark", "recomputed by DuckDB")
    caption = f"An epoch of {NEW_ORDERS:,} orders and 100 customers, {options.orders:,} orders"
    return Result((Table(columns, tuple(rows), "of an aggregation alone", caption), life, ten))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--orders", type=int, default=5_000_000)
    arguments.add_argument("--epochs", type=int, default=50)
    arguments.add_argument("--life", type=int, default=1_000)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
