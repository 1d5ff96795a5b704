"""A run of many random stories from the command line, each in a directory of its own."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings

_TOLD_BETWEEN = 5
_MEMORY = "3g"  # the sides of joins of many stories, until Java looks for what nobody uses


def stories(name: str, unit: str, of_a_story: int) -> Iterator[tuple[SparkSession, Path, int]]:
    """Yields the session, an empty directory and the seed of each story, and prints how many are over, now and then.

    The session ends after the last one.

    Args:
        name: of the run: the module is `random_NAME`.
        unit: what a user counts, as in `--queries 1000 --start 0`.
        of_a_story: how many of them a story has.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.spark_bridge.random_{name}")
    parser.add_argument(f"--{unit}", dest="wanted", type=int, default=1_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    spark = start_local_session(SparkSettings(driver_memory=_MEMORY), f"slackwater-random-{name}")
    for told in range(-(-arguments.wanted // of_a_story)):
        with tempfile.TemporaryDirectory() as directory:
            yield spark, Path(directory), arguments.start + told
        if (told + 1) % _TOLD_BETWEEN == 0:
            print(f"{(told + 1) * of_a_story} {unit} so far", flush=True)
    spark.stop()
