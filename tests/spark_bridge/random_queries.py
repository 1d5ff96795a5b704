"""A run of many random stories: `python -m tests.spark_bridge.random_queries --queries 5000 --start 0`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from spark_bridge.session.local_session import start_local_session
from spark_bridge.session.settings import SparkSettings
from tests.spark_bridge.random_story import QUERIES_OF_A_STORY, tell


def main() -> None:
    """Prints each difference with the seed that repeats it.  Exit code 1 if a view differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark_bridge.random_queries")
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    spark = start_local_session(SparkSettings(), "slackwater-random-queries")
    queries = skipped = wrong = 0
    for seed in range(arguments.start, arguments.start + -(-arguments.queries // QUERIES_OF_A_STORY)):
        with tempfile.TemporaryDirectory() as directory:
            report = tell(spark, Path(directory), seed)
        queries, skipped = queries + report.queries, skipped + len(report.skipped)
        wrong += len(report.differences)
        for each in report.differences:
            print(f"seed {seed}: {each}", flush=True)
        for each in report.skipped:
            print(f"seed {seed}: Spark raises at {each}", flush=True)
    print(f"{queries} answers compared, {wrong} differ; Spark itself raises at {skipped}")
    spark.stop()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
