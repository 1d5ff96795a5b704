"""One start in a process of its own: `python startup_probe.py DIRECTORY ARCHIVE`; prints its times as JSON.

It is run by its path, with the packages to measure on PYTHONPATH, which may be those of another checkout.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil

import slackwater as sw

_LOOK_S = 0.02


def cpu_s() -> float:
    """The CPU seconds of this process and its descendants."""
    me, used = psutil.Process(), 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        used += times.user + times.system
    return used


def main() -> None:
    place, archive = Path(sys.argv[1]), sys.argv[2] == "archive"
    options: dict[str, Any] = {"class_archive": archive} if hasattr(sw.SparkSettings, "class_archive") else {}
    pipeline = sw.Pipeline("startup", place / "root", settings=sw.Settings(spark=sw.SparkSettings(**options)))
    pipeline.source("events", place / "in", format="csv", schema="k bigint, v bigint")
    pipeline.view("totals", "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k")
    began = psutil.Process().create_time()
    with pipeline.start() as run:
        while not run.report().rows and not run.wait(timeout_s=_LOOK_S):
            pass
        seconds, cpu = time.time() - began, cpu_s()
        status = run.status()
        run.wait(until="caught_up")
        assert run.stop().files == len(list((place / "in").iterdir()))
    steps = {step.name: step.seconds for step in getattr(status, "startup", ())}
    print(json.dumps({"seconds": seconds, "cpu_s": cpu, "steps": steps}))


if __name__ == "__main__":
    main()
