"""A program of its own: a run whose Ray and Spark start plainly, with the parts that it has loaded.

    python -m tests.real.plain_job EMPTY_DIRECTORY [settings]

With `settings` the settings ask for the plain start.  Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw

PLACE, IS_ASKED = Path(sys.argv[1]), "settings" in sys.argv
ROWS = 400_000
"""Of one file: their block is read by Spark's tasks, and not by the driver."""


def main() -> None:
    fast_start = not IS_ASKED
    (PLACE / "in").mkdir()
    pq.write_table(
        pa.table({"user": [f"u{row % 7}" for row in range(ROWS)], "n": range(ROWS)}), PLACE / "in" / "a.parquet"
    )
    settings = sw.Settings(
        ray=sw.settings.RaySettings(address="local", fast_start=fast_start),
        fetch=sw.settings.FetchSettings(num_fetchers=1),
        spark=sw.settings.SparkSettings(executor_memory="600m", fast_start=fast_start),
    )
    pipeline = sw.Pipeline("plain", PLACE / "root", settings=settings)
    pipeline.source("events", PLACE / "in", format="parquet", discovery=sw.Listing(interval_s=0.1))
    pipeline.view("totals", "SELECT user, count(*) AS rows, sum(n) AS n FROM events GROUP BY user")
    with pipeline.start() as run:
        run.wait(until="caught_up")
        commands = []
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # one that ends just now
                commands.append(" ".join(each.cmdline()))
        report = run.stop()
    left = [each.name() for each in psutil.Process().children(recursive=True)]
    view = sw.open(PLACE / "root").snapshot().view("totals").to_arrow().to_pylist()
    loaded = [name for name in sys.modules if ".fast_start." in name]
    answer = {
        "recoveries": report.recoveries,
        "rows": sum(each["rows"] for each in view),
        "n": sum(each["n"] for each in view),
        "loaded": loaded,
        "forks": sum("fork_server" in each for each in commands),
        "jvms": sum("java" in each.partition(" ")[0] for each in commands),
        "left": left,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
