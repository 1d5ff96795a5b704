"""One start in a process of its own: `python startup_probe.py DIRECTORY ARCHIVE`; prints its times as JSON.

It is run by its path, with the packages to measure on PYTHONPATH, which may be those of another checkout.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil

import slackwater as sw

_LOOK_S = 0.02
# A mark of a command line → the kind of its process; the first one counts.
_KINDS = (
    ("ray::DashboardAgent", "Ray's agents"),
    ("ray::RuntimeEnvAgent", "Ray's agents"),
    ("ray::", "actors"),
    ("fork_server", "the fork server"),
    ("SparkSubmit", "JVM of the driver"),
    ("app-master", "JVM of the master"),
    ("DefaultWorker", "JVM of the executor"),
    ("/core/src/ray/", "Ray's servers"),
)


def spent() -> dict[str, float]:
    """Kind of process → the CPU seconds of this process and its descendants, with those that have ended."""
    me, used = psutil.Process(), defaultdict[str, float](float)
    for process in (me, *me.children(recursive=True)):
        try:
            times, command = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        kind = "the driver" if process == me else next((name for mark, name in _KINDS if mark in command), "others")
        used[kind] += times.user + times.system
        used["ended"] += times.children_user + times.children_system
    return dict(used)


def main() -> None:
    place, archive = Path(sys.argv[1]), sys.argv[2] == "archive"
    options: dict[str, Any] = {"class_archive": archive} if hasattr(sw.settings.SparkSettings, "class_archive") else {}
    pipeline = sw.Pipeline("startup", place / "root", settings=sw.Settings(spark=sw.settings.SparkSettings(**options)))
    pipeline.source("events", place / "in", format="csv", schema="k bigint, v bigint")
    pipeline.view("totals", "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k")
    began = psutil.Process().create_time()
    with pipeline.start() as run:
        while not run.report().rows and not run.wait(timeout_s=_LOOK_S):
            pass
        seconds, processes = time.time() - began, spent()
        status = run.status()
        run.wait(until="caught_up")
        assert run.stop().files == len(list((place / "in").iterdir()))
    steps = {step.name: step.seconds for step in getattr(status, "startup", ())}
    cpu_s = sum(processes.values())
    print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "steps": steps, "processes": processes}))


if __name__ == "__main__":
    main()
