"""A program of its own: runs on a Ray that is there already, and then in a SparkSession of the user's.

    python -m tests.real.borrowing_job EMPTY_DIRECTORY RAY_ADDRESS

Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import ray
import raydp
from pyspark.sql import SparkSession

import slackwater as sw
from spark_bridge.engine.application.java import prepare_java
from tests.real.events import events, parquet, write

PLACE, ADDRESS = Path(sys.argv[1]), sys.argv[2]
SETTINGS = sw.Settings(
    ray=sw.settings.RaySettings(address=ADDRESS),
    fetch=sw.settings.FetchSettings(num_fetchers=1),
    spark=sw.settings.SparkSettings(executor_memory="600m"),
)

QUERY = "SELECT user, string(timestamp'2020-01-01 12:00:00Z') AS noon, count(*) AS n FROM events GROUP BY user"


def run(number: int) -> dict[str, Any]:
    """Takes one more file in, and gives the view; its times are text as the session's time zone writes them."""
    write(PLACE / "in", f"{number}.parquet", parquet(events(10 * number)))
    pipeline = sw.Pipeline("events", PLACE / "root", settings=SETTINGS)
    pipeline.source("events", PLACE / "in", format="parquet", discovery=sw.Listing(interval_s=0.1))
    pipeline.view("zones", QUERY)
    report = pipeline.run(until="caught_up")
    rows = sw.open(PLACE / "root").snapshot().view("zones").to_arrow().to_pylist()
    return {"files": report.files, "n": sum(row["n"] for row in rows), "noon": sorted({row["noon"] for row in rows})}


def java() -> int:
    return sum(each.name() == "java" for each in psutil.Process().children(recursive=True))


def refusal() -> str:
    try:
        run(3)
    except sw.errors.SettingsError as error:
        return str(error)
    return "ran"


def main() -> None:
    answer: dict[str, Any] = {"attached": run(0), "java_after": java(), "still_connected": ray.is_initialized()}
    prepare_java()
    ray.init(address=ADDRESS, namespace="users", log_to_driver=False, logging_level="error")
    configs = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": "7"}
    spark = raydp.init_spark("users", 1, 1, "600m", configs=configs)
    answer["borrowed"] = run(1)
    answer["borrowed_again"] = run(2)
    answer["users_rows"] = spark.range(5).count()
    answer["users_zone"] = spark.conf.get("spark.sql.session.timeZone")
    answer["users_connection"] = ray.is_initialized()
    raydp.stop_spark()
    local = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    answer["refused"] = refusal()
    answer["local_rows"] = local.range(5).count()
    local.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
