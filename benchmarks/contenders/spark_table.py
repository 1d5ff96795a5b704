"""A view kept by Spark alone, as its users do it without us; each way in a process of its own.

    python -m benchmarks.contenders.spark_table complete|update|nightly DIRECTORY FILES_PER_BATCH

`complete` writes the whole result over a Parquet table at every batch, `update` merges the groups that changed into a
Lance table, and `nightly` computes the view from all files that have come, five times.  Prints a JSON array with
seconds and bytes of each batch, the bytes of the checkpoint behind the last.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lance
from pyspark.sql import DataFrame, SparkSession

from benchmarks.directory_size import directory_size
from benchmarks.line_items import QUERY, SCHEMA
from benchmarks.plain_spark import plain_spark
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame

_NIGHTS = 5


def main() -> None:
    way, scratch, files_per_batch = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    # What is deleted again was written, too.
    kept = {"minBatchesToRetain": "1000000", "numRecentProgressUpdates": "1000000"}
    spark = plain_spark("4g", {f"spark.sql.streaming.{name}": value for name, value in kept.items()})
    measured = nightly(spark, scratch) if way == "nightly" else stream(spark, scratch, way, files_per_batch)
    print(json.dumps(measured))


def stream(spark: SparkSession, scratch: Path, mode: str, files_per_batch: int) -> list[tuple[float, int]]:
    """Seconds and bytes of each batch of a stream over all files."""
    table, checkpoint = scratch / f"{mode}-table", scratch / f"{mode}-checkpoint"
    written: list[int] = []
    write = {"complete": _overwrite, "update": _merge}[mode]
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_per_batch)
    source.parquet(str(scratch / "in")).createOrReplaceTempView("lineitem")
    query = (
        spark.sql(QUERY)
        .writeStream.outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(_noting(write, table, written))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = [each["durationMs"]["triggerExecution"] / 1e3 for each in query.recentProgress if each["numInputRows"]]
    written[-1] += directory_size(checkpoint)
    return list(zip(seconds, written, strict=True))


def nightly(spark: SparkSession, scratch: Path) -> list[tuple[float, int]]:
    """Seconds and bytes of each night's recompute, over a fifth more of the files each."""
    files = sorted(map(str, (scratch / "in").iterdir()))
    measured = []
    for night in range(1, _NIGHTS + 1):
        started = time.perf_counter()
        spark.read.schema(SCHEMA).parquet(*files[: len(files) * night // _NIGHTS]).createOrReplaceTempView("lineitem")
        table = scratch / "nightly-table"
        _overwrite(spark.sql(QUERY), table)
        measured.append((time.perf_counter() - started, directory_size(table)))
    return measured


def _noting(
    write: Callable[[DataFrame, Path], None], table: Path, written: list[int]
) -> Callable[[DataFrame, int], None]:
    def noting(frame: DataFrame, batch: int) -> None:
        before = directory_size(table) if write is _merge else 0
        write(frame, table)
        written.append(directory_size(table) - before)

    return noting


def _overwrite(frame: DataFrame, table: Path) -> None:
    frame.write.mode("overwrite").parquet(str(table))


def _merge(frame: DataFrame, table: Path) -> None:
    rows = table_of_frame(frame, arrow_schema(frame.schema))
    if not table.exists():
        lance.write_dataset(rows, str(table))
        return
    merge = lance.dataset(str(table)).merge_insert("l_orderkey")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)


if __name__ == "__main__":
    main()
