"""A run of many random graphs of views: `python -m tests.spark_bridge.random_graphs --epochs 10000 --start 0`."""

from __future__ import annotations

import sys

from tests.spark_bridge.random_graph_story import EPOCHS_OF_A_STORY, Compared, tell_graph
from tests.spark_bridge.story_run import stories


def main() -> None:
    """Prints each difference with the seed that repeats it.  Exit code 1 if a view differs."""
    told = wrong = 0
    compared = Compared()
    for spark, directory, seed in stories("graphs", "epochs", EPOCHS_OF_A_STORY):
        told += 1
        try:
            answers = tell_graph(spark, directory, seed, EPOCHS_OF_A_STORY)
            compared.spark += answers.spark
            compared.duckdb += answers.duckdb
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}: {error}", flush=True)
    both = f"{compared.spark} answers of Spark and {compared.duckdb} of DuckDB"
    print(f"{told * EPOCHS_OF_A_STORY} epochs, {both} compared, {wrong} stories differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
