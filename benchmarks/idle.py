"""An idle pipeline: CPU, memory and requests of `slackwater run` over a bucket without new files.

    python -m benchmarks.idle [--seconds 120] [--settle 30] [--before CHECKOUT]

The pipeline has the form of the quickstart: one source of CSV with the default listing, and one view.  `--before`
also measures another checkout of this project, in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from benchmarks.command import run_benchmark
from benchmarks.idle_processes import ProcessUse, ProcessUses
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.proxies.request_log import RequestLog
from slackwater.testing.proxies.reverse_proxy import Request
from slackwater.testing.servers.s3_server import S3Server

_HERE = Path(__file__).parent.parent
_START_S, _STOP_S, _LOOK_S = 300.0, 60.0, 0.5
_HOUR_S = 3_600.0
_APP = """\
import json, os

import slackwater as sw

options = json.loads(os.environ["IDLE_OPTIONS"])
pipeline = sw.Pipeline("quickstart", root="s3://{bucket}/lake", storage_options=options)
pipeline.source("events", "s3://{bucket}/raw", format="csv", storage_options=options)
pipeline.view("totals", "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k")
"""
_CPU, _MEMORY = Target(4.0, "% of a core"), Target(1_229.0, "MiB")


def measure(options: argparse.Namespace) -> Result:
    checkouts = {"now": _HERE}
    if options.before is not None:
        checkouts["before"] = options.before
    tables = []
    with S3Server() as s3:
        for name, checkout in checkouts.items():
            uses, requests = rested(s3, name, checkout, options.settle, options.seconds)
            caption = "An idle pipeline" if name == "now" else "The same, of the checkout before"
            tables.append(uses_table(uses, options.seconds, caption, has_target=name == "now"))
            if name == "now":
                tables.append(requests_table(requests, options.seconds))
    return Result(tuple(tables))


def rested(
    s3: S3Server, name: str, checkout: Path, settle_s: float, seconds: float
) -> tuple[Mapping[str, ProcessUse], Mapping[str, int]]:
    """The use of each kind of process while a caught-up pipeline rests, and its requests by kind."""
    bucket = s3.create_bucket(f"idle-{name}")
    rows = "".join(f"{row % 7},{row}\n" for row in range(1_000))
    s3.put(bucket, "raw/events.csv", f"k,v\n{rows}".encode())
    proxy = s3.proxy()
    with _running(proxy, bucket, checkout) as pid:
        time.sleep(settle_s)
        uses, start = ProcessUses(pid), len(proxy.requests)
        time.sleep(seconds)
        return uses.since(), Counter(map(_kind_of, proxy.requests[start:]))


@contextmanager
def _running(proxy: RequestLog, bucket: str, checkout: Path) -> Iterator[int]:
    """A pipeline that has committed its file; the id of its process."""
    with tempfile.TemporaryDirectory(prefix="slackwater-idle-") as place, open(Path(place) / "log", "w+") as log:
        (Path(place) / "app.py").write_text(_APP.format(bucket=bucket))
        run = subprocess.Popen(
            [sys.executable, "-m", "slackwater", "run", "app.py:pipeline"],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(checkout), "IDLE_OPTIONS": json.dumps(proxy.storage_options)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for_view(proxy, run, log)
            yield run.pid
        finally:
            run.send_signal(signal.SIGINT)
            try:
                run.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()


def _wait_for_view(proxy: RequestLog, run: subprocess.Popen[bytes], log: TextIO) -> None:
    """Returns when a version of the view is tagged, which follows its first commit."""
    deadline_s = time.monotonic() + _START_S
    while not any("/_refs/tags/" in each.key and each.method == "PUT" for each in proxy.requests):
        if run.poll() is not None or time.monotonic() > deadline_s:
            log.seek(0)
            raise RuntimeError(f"the run has committed no view:\n{log.read()}")
        time.sleep(_LOOK_S)


def _kind_of(request: Request) -> str:
    place = "source" if request.query.get("prefix", request.key).startswith("raw") else "root"
    return f"{'LIST' if request.is_list else request.method}, {place}"


def uses_table(uses: Mapping[str, ProcessUse], seconds: float, caption: str, *, has_target: bool) -> Table:
    total = ProcessUse(
        sum(each.processes for each in uses.values()),
        sum(each.cpu_s for each in uses.values()),
        sum(each.wakeups for each in uses.values()),
        sum(each.pss_mib for each in uses.values()),
    )
    rows = [_row("all processes", total, seconds, _CPU if has_target else None)]
    if has_target:
        rows.append(Row("their memory", (None, None, None, Number(total.pss_mib, "MiB")), target=_MEMORY))
    rows += [_row(name, use, seconds) for name, use in uses.items()]
    return Table(("processes", "CPU", "wakeups", "memory (PSS)"), tuple(rows), caption=caption)


def _row(name: str, use: ProcessUse, seconds: float, target: Target | None = None) -> Row:
    numbers = (
        Number(use.processes),
        Number(100 * use.cpu_s / seconds, "% of a core"),
        Number(use.wakeups / seconds, "/s"),
        Number(use.pss_mib, "MiB"),
    )
    return Row(name, numbers, target=target)


def requests_table(requests: Mapping[str, int], seconds: float) -> Table:
    rows = [Row(kind, (Number(round(count * _HOUR_S / seconds)),)) for kind, count in sorted(requests.items())]
    return Table(("requests an hour",), tuple(rows), caption="Its requests")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=120.0)
    arguments.add_argument("--settle", type=float, default=30.0)
    arguments.add_argument("--before", type=Path)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
