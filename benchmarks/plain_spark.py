"""A Spark session with defaults only, as in a first program."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from spark_bridge.engine.application.java import prepare_java


def plain_spark(memory: str, configs: Mapping[str, str] = {}) -> SparkSession:
    """A local session with two cores, two shuffle partitions, and so much memory (`2g`)."""
    prepare_java()
    own = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
    }
    spark = SparkSession.builder.master("local[2]").config(map={**own, **configs}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
