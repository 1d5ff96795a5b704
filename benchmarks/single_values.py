"""Cost of values of subqueries, and of windows over all rows, that are kept up to date.

    python -m benchmarks.single_values [--rows 1000000] [--epochs 10]

In one local session: a million rows, then epochs of 1,000 rows, in turns of one view for each kind.  Beside it, the
same query by Spark and by DuckDB over all rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.command import run_benchmark
from benchmarks.followed_view import COLUMNS, NEW_ROWS, FollowedView, compared, follow_in_turns
from benchmarks.result import Result, Table, Target
from benchmarks.windows import ROWS_A_KEY, Scores, recomputed_s
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.location import Location

CASES: Mapping[str, str] = {
    "above a share of the greatest value, which stays": (
        "SELECT id, score FROM t WHERE score > (SELECT 0.9 * max(score) FROM t)"
    ),
    "of the newest thousand, which change": (
        "SELECT id, score FROM t WHERE floor(id / 1000) = (SELECT max(floor(id / 1000)) FROM t)"
    ),
    "above the average, which changes": "SELECT id, score FROM t WHERE score > (SELECT avg(score) FROM t)",
    "a number for each of all rows, by time": "SELECT id, row_number() OVER (ORDER BY id) AS number FROM t",
    "the first hundred ranks of all rows": (
        "SELECT id, score, place FROM (SELECT *, rank() OVER (ORDER BY score DESC) AS place FROM t) WHERE place <= 100"
    ),
}


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "single values")
    warm_up(spark)
    with ExitStack() as stack:
        followed = {}
        for name, query in CASES.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            make = Scores(options.rows // ROWS_A_KEY).rows
            followed[name] = FollowedView(spark, root, query, make, options.rows, 0)
            stack.callback(followed[name].materializer.close)
        follow_in_turns(followed, options.epochs)
        recomputed = {name: recomputed_s(spark, followed[name], query) for name, query in CASES.items()}
        rows = compared(followed, recomputed, Target(0.3, "s"))
    spark.stop()
    return Result(
        (Table(COLUMNS, rows, "of a recomputation by Spark", f"An epoch of {NEW_ROWS:,} rows, {options.rows:,} rows"),)
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=10)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
