"""A Spark Structured Streaming file stream, warm, over a directory: prints its seconds."""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession, functions

from benchmarks.plain_spark import plain_spark

SCHEMA = "user bigint, amount double, kind string"


def stream(spark: SparkSession, directory: str, checkpoint: str) -> int:
    events = spark.readStream.schema(SCHEMA).parquet(directory)
    totals = events.groupBy("user").agg(functions.count("*").alias("n"), functions.sum("amount").alias("total"))
    query = (
        totals.writeStream.outputMode("complete")
        .format("memory")
        .queryName("totals")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return int(spark.sql("SELECT sum(n) FROM totals").first()[0])


def main() -> None:
    scratch, expected = sys.argv[1], int(sys.argv[2])
    spark = plain_spark("2g")
    stream(spark, f"{scratch}/warm", f"{scratch}/checkpoint-warm")
    started = time.perf_counter()
    counted = stream(spark, f"{scratch}/cold", f"{scratch}/checkpoint-cold")
    seconds = time.perf_counter() - started
    assert counted == expected, counted
    print(seconds)


if __name__ == "__main__":
    main()
