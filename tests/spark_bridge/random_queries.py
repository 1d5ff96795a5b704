"""A run of many random stories: `python -m tests.spark_bridge.random_queries --queries 5000 --start 0`."""

from __future__ import annotations

import sys

from tests.spark_bridge.random_story import QUERIES_OF_A_STORY, tell
from tests.spark_bridge.story_run import stories


def main() -> None:
    """Prints each difference with the seed that repeats it.  Exit code 1 if a view differs."""
    queries = skipped = wrong = 0
    for spark, directory, seed in stories("queries", "queries", QUERIES_OF_A_STORY):
        report = tell(spark, directory, seed)
        queries, skipped = queries + report.queries, skipped + len(report.skipped)
        wrong += len(report.differences)
        for each in report.differences:
            print(f"seed {seed}: {each}", flush=True)
        for each in report.skipped:
            print(f"seed {seed}: Spark raises at {each}", flush=True)
    print(f"{queries} answers compared, {wrong} differ; Spark itself raises at {skipped}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
