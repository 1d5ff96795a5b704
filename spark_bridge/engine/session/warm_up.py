"""The first job of a session: Java loads and compiles the code of small epochs."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table


def warm_up(spark: SparkSession) -> None:
    """Runs a small grouped job, so that Java has loaded and compiled the code before the first epoch."""
    table = pa.table({"word": ["slack", "water", "slack"], "weight": [1.0, 2.0, 3.0]})
    frame = frame_of_table(spark, table).repartition(1)
    frame.groupBy("word").agg({"weight": "avg", "*": "count"})._collect_as_arrow()
