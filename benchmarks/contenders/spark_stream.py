"""Spark Structured Streaming over a directory: a file stream whose whole result is in memory after each batch.

python -m benchmarks.contenders.spark_stream all|arrivals DIRECTORY [ROWS_OF_A_FILE]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession, functions
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from benchmarks.contenders.answer import Answer, Groups
from benchmarks.contenders.arrivals import arrivals
from benchmarks.plain_spark import plain_spark

SCHEMA = "user bigint, amount double, kind string"


def totals(spark: SparkSession, files: Path, checkpoint: Path) -> DataStreamWriter:
    """The stream, not started yet."""
    events = spark.readStream.schema(SCHEMA).parquet(str(files))
    grouped = events.groupBy("user").agg(functions.count("*").alias("n"), functions.sum("amount").alias("total"))
    stream = grouped.writeStream.outputMode("complete").format("memory").queryName("totals")
    return stream.option("checkpointLocation", str(checkpoint))


def take_all(spark: SparkSession, files: Path, checkpoint: Path) -> Groups:
    """All files that are there, in as many batches as it likes."""
    totals(spark, files, checkpoint).trigger(availableNow=True).start().awaitTermination()
    return groups(spark)


def groups(spark: SparkSession) -> Groups:
    return [tuple(row) for row in spark.sql("SELECT user, n, total FROM totals").collect()]


class _Taken:
    """The number of rows in the finished batches of a query."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query, self._batches = query, dict[int, int]()

    def rows(self) -> int:
        progress = self._query.lastProgress
        if progress is not None and progress["numInputRows"]:
            self._batches[progress["batchId"]] = progress["numInputRows"]
        return sum(self._batches.values())


def main() -> None:
    started = time.perf_counter()
    how, directory = sys.argv[1], Path(sys.argv[2])
    spark = plain_spark("2g")
    if how == "all":
        take_all(spark, directory / "warm", directory / "checkpoint-warm")
        ready = time.perf_counter()
        found = take_all(spark, directory / "cold", directory / "checkpoint-cold")
        Answer(ready - started, (time.perf_counter() - ready,), found).print()
        return
    query = totals(spark, directory / "in", directory / "checkpoint").start()
    ready = time.perf_counter()
    seconds = arrivals(directory, int(sys.argv[3]), _Taken(query).rows)
    query.stop()
    Answer(ready - started, seconds, groups(spark)).print()


if __name__ == "__main__":
    main()
