"""A run of many random graphs of views: `python -m tests.spark_bridge.random_graphs --epochs 10000 --start 0`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from spark_bridge.session.local_session import start_local_session
from spark_bridge.session.settings import SparkSettings
from tests.spark_bridge.random_graph_story import EPOCHS_OF_A_STORY, tell_graph


def main() -> None:
    """Prints each difference with the seed that repeats it.  Exit code 1 if a view differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark_bridge.random_graphs")
    parser.add_argument("--epochs", type=int, default=1_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    spark = start_local_session(SparkSettings(), "slackwater-random-graphs")
    compared = wrong = 0
    stories = range(arguments.start, arguments.start + -(-arguments.epochs // EPOCHS_OF_A_STORY))
    for seed in stories:
        with tempfile.TemporaryDirectory() as directory:
            try:
                compared += tell_graph(spark, Path(directory), seed, EPOCHS_OF_A_STORY)
            except AssertionError as error:
                wrong += 1
                print(f"seed {seed}: {error}", flush=True)
    print(f"{len(stories) * EPOCHS_OF_A_STORY} epochs, {compared} answers compared, {wrong} stories differ")
    spark.stop()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
