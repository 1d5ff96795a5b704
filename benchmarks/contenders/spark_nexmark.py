"""Queries of Nexmark by Spark Structured Streaming, one after the other, over the same files.

    python -m benchmarks.contenders.spark_nexmark DIRECTORY WARM_FILES QUERY...

A batch takes the next file of each stream.  A query runs in the first of the modes that Spark accepts for it: `append`,
`append` with a watermark, which shows a window when it has closed, or `update`.  Its rows are thrown away.  Prints a
JSON object: query → mode and seconds of all batches after the first files, or the reason for which Spark refuses the
last one.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from benchmarks.nexmark_events import SCHEMAS
from benchmarks.nexmark_queries import QUERIES
from benchmarks.plain_spark import plain_spark
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table

MODES = {"append": ("append", False), "closed windows": ("append", True), "update": ("update", False)}
"""Name → output mode, and whether the streams have a watermark; in the order in which they are tried."""
_STREAMS = ("person", "auction", "bid")
_WARM_UP = ("q0", "q17", "q20")


def main() -> None:
    directory, warm, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    spark = plain_spark("4g", {"spark.sql.streaming.numRecentProgressUpdates": "1000000"})
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.sparkContext.setLogLevel("OFF")
    for name in _WARM_UP:
        measured(spark, directory, warm, name)
    print(json.dumps({name: measured(spark, directory, warm, name) for name in names}))


def measured(spark: SparkSession, directory: Path, warm: int, name: str) -> dict[str, Any]:
    reason = ""
    for mode, (output, has_watermark) in MODES.items():
        _views(spark, directory, has_watermark=has_watermark)
        try:
            seconds = _seconds(spark, QUERIES[name], output, warm)
        except AnalysisException as error:
            reason = _first_sentence(str(error))
        except StreamingQueryException:
            # Spark accepts windows below a join without a watermark, and fails over the first rows.
            continue
        else:
            return {"mode": mode, "seconds": seconds}
    return {"refused": reason}


def _views(spark: SparkSession, directory: Path, *, has_watermark: bool) -> None:
    for name in _STREAMS:
        source = spark.readStream.schema(frame_of_table(spark, SCHEMAS[name].empty_table()).schema)
        stream = source.option("maxFilesPerTrigger", 1).parquet(str(directory / name))
        (stream.withWatermark("at", "0 seconds") if has_watermark else stream).createOrReplaceTempView(name)
    spark.read.parquet(str(directory / "side")).createOrReplaceTempView("side")


def _seconds(spark: SparkSession, query: str, output: str, warm: int) -> float:
    with tempfile.TemporaryDirectory() as checkpoint:
        stream = spark.sql(query).writeStream.format("noop").outputMode(output)
        running = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        running.awaitTermination()
        batches = [each["durationMs"]["triggerExecution"] for each in running.recentProgress]
        return float(sum(batches[warm:])) / 1e3


def _first_sentence(message: str) -> str:
    return re.split(r"[.;\n]", re.sub(r"^\[\w+(\.\w+)*\] ", "", message))[0]


if __name__ == "__main__":
    main()
