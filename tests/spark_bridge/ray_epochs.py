"""A program of its own, since a process has one Spark session: epochs over RayDP, compared with DuckDB.

Prints one JSON object; everything else that reaches the terminal is noise that the test refuses.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import warnings

import duckdb
import lance
import pyarrow as pa
import ray

from actors.messages import Block
from spark_bridge.materializer import Materializer
from spark_bridge.session import SparkSettings, prepare_java, start_session, stop_session, warm_up
from spark_bridge.view_definition import ViewDefinition
from state.location import Location
from tests.spark_bridge.random_rows import SCHEMA, random_rows

GROUPED = "SELECT k, count(*) AS n, sum(i) AS s, avg(p) AS a FROM t GROUP BY k"
APPENDED = "SELECT * FROM t"


def ipc_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def blocks(table: pa.Table, pieces: int) -> list[Block]:
    step = -(-table.num_rows // pieces)
    cuts = [table.slice(start, step) for start in range(0, table.num_rows, step)]
    return [Block("test", "t", ray.put(ipc_bytes(each)), each.num_rows, each.nbytes) for each in cuts]


def main() -> None:
    chance = random.Random(21)
    seconds: dict[str, float] = {}
    # Ray forks to start its processes, which at once become others.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    prepare_java()
    started = time.monotonic()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    seconds["ray"] = time.monotonic() - started
    started = time.monotonic()
    spark = start_session(SparkSettings(executor_memory="600m"), "slackwater-ray-epochs")
    seconds["spark"] = time.monotonic() - started
    started = time.monotonic()
    warm_up(spark)
    seconds["warm_up"] = time.monotonic() - started

    root = Location(tempfile.mkdtemp())
    materializer = Materializer(spark, root)
    definitions = [ViewDefinition("grouped", GROUPED), ViewDefinition("appended", APPENDED)]
    materializer.declare(definitions, {"t": SCHEMA}, {})
    rows = SCHEMA.empty_table()
    views = {}
    for epoch in range(1, 5):
        new = random_rows(chance, 60)
        rows = pa.concat_tables([rows, new])
        views = dict(materializer.run_epoch(epoch, {"t": blocks(new, pieces=3)}).views)
    stored = {
        name: lance.dataset(root.child(view.path).lance_uri, version=view.version).to_table()
        for name, view in views.items()
    }

    # Each type of the schema arrives as it was put in.
    def text(table: pa.Table) -> list[str]:
        return sorted(repr(row) for row in table.to_pylist())

    # DuckDB has its own mind about the average of decimals, so it is given the sum and the count.
    expected = duckdb.sql("SELECT k, count(*) AS n, sum(i)::BIGINT AS s FROM rows GROUP BY k").to_arrow_table()
    grouped = stored["grouped"]

    floors = []
    measured = Materializer(spark, root)
    measured.declare([ViewDefinition("floor", GROUPED)], {"t": SCHEMA}, {})
    for epoch in range(100, 130):
        floors.append(measured.run_epoch(epoch, {"t": blocks(random_rows(chance, 100), 1)}).seconds)
    seconds["epoch_of_100_rows_median"] = sorted(floors[10:])[10]
    pool = pa.concat_tables([random_rows(chance, 2000)] * 100)
    large = [measured.run_epoch(epoch, {"t": blocks(pool, 4)}).seconds for epoch in range(200, 203)]
    seconds["epoch_of_200000_rows"] = min(large)

    materializer.close()
    measured.close()
    stop_session()
    ray.shutdown()
    answer = {
        "appended": text(stored["appended"]) == text(rows),
        "types": stored["appended"].schema == SCHEMA,
        "grouped": text(grouped.select(["k", "n", "s"])) == text(expected),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
