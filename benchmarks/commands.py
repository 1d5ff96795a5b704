"""Commands in processes of their own: those that read a root, and a second run, which is refused.

    python -m benchmarks.commands [--times 7]

The root is on a local disk: one view of 10,000 groups, a ledger of 10,000 files, and a hundred epochs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.branch import FILES, made_root
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.cli.terminal.edge import OWNED
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.ownership.owner import Ownership
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings

GROUPS = 10_000
READ, REFUSED = Target(1, "s"), Target(2, "s")
APP = """import slackwater as sw

pipeline = sw.Pipeline("events", root={root!r})
pipeline.source("events", "/events", format="parquet")
pipeline.view("by_user", "SELECT user, count(*) AS n FROM events GROUP BY user")
"""


def measured(name: str, command: list[str], times: int, code: int, target: Target) -> Row:
    """The median and the longest time of a command, from its start to its end."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        ended = subprocess.run([sys.executable, "-m", "slackwater", *command], capture_output=True, text=True)
        taken.append(time.perf_counter() - started)
        if ended.returncode != code:
            raise RuntimeError(f"slackwater {' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    taken.sort()
    return Row(name, (Number(taken[times // 2], "s"), Number(taken[-1], "s")), target=target)


def measure(options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        root, app = Path(directory) / "root", Path(directory) / "app.py"
        app.write_text(APP.format(root=str(root)), encoding="utf-8")
        place = Location(str(root))
        made_root(place, GROUPS)
        kept = LanceRoot(place, SystemClock())
        store = kept.open()
        store.take_over()
        Housekeeping(kept, SystemClock(), RetentionSettings()).run(store)  # as a run folds its log
        reading = {
            "`--help`": ["--help"],
            "`status`": ["status", place.url],
            "`why`": ["why", place.url, f"file:///events/{FILES // 2:06}.parquet"],
            "`sql`": ["sql", place.url, "SELECT count(*) FROM by_user"],
            "`views`": ["views", place.url],
            "`files --status`": ["files", place.url, "--status", "waiting"],
        }
        rows = [measured(name, command, options.times, 0, READ) for name, command in reading.items()]
        owner = Ownership(place, SystemClock(), run_id="run", pipeline="events", interval_s=1)
        owner.acquire()
        try:
            refused = ["run", f"{app}:pipeline"]
            rows.append(measured("a second `run`, refused", refused, options.times, OWNED, REFUSED))
        finally:
            owner.release()
    return Result((Table(("median", "longest"), tuple(rows), caption="From the start of a process to its end"),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--times", type=int, default=7, help="how often each command is called")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
