"""Starts on a machine without free processors: how many show their first committed rows within three minutes.

    python -m benchmarks.busy_start [--starts 20] [--busy 4] [--cores 0.5]

Each start competes with `--busy` processes per core that never sleep, and then within `--cores` of a processor; the
limit of the processor needs root and cgroups.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from benchmarks.startup import noting_start, start, write_files

_HERE = Path(__file__).parent.parent
_LIMIT_S = 180.0
_GIVEN_UP_S = 900.0
_END_S = 60.0
_PERIOD_US = 100_000
_CGROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))


def measure(options: argparse.Namespace) -> Result:
    place = Path(tempfile.mkdtemp(prefix="slackwater-busy-"))
    try:
        write_files(place)
        noting_start(place, _HERE)
        rows = []
        if options.busy:
            with busy_processes(options.busy * (os.cpu_count() or 1)):
                seconds = [started(place) for _ in range(options.starts)]
            rows.append(row(f"{options.busy} busy processes per core", seconds))
        if options.cores:
            with limited_processor(options.cores) as prefix:
                seconds = [started(place, prefix) for _ in range(options.starts)]
            rows.append(row(f"{options.cores:g} of a processor", seconds))
        return Result((Table(("in time", "median", "worst"), tuple(rows)),))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def started(place: Path, prefix: Sequence[str] = ()) -> float:
    """Seconds until the first committed rows; infinite without rows."""
    try:
        return float(start(place, _HERE, "archive", prefix=prefix, timeout_s=_GIVEN_UP_S)["seconds"])
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(error, flush=True)
        return float("inf")


def row(name: str, seconds: Sequence[float]) -> Row:
    in_time = sum(each <= _LIMIT_S for each in seconds)
    numbers = Number(in_time, "starts"), Number(median(seconds), "s"), Number(max(seconds), "s")
    spread = ", ".join(f"{each:.0f}" for each in seconds)
    return Row(name, numbers, target=Target(float(len(seconds)), "starts", at_least=True), note=f"each: {spread} s")


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for each in processes:
            each.kill()
            each.wait()


@contextmanager
def limited_processor(cores: float) -> Iterator[list[str]]:
    """A prefix of commands, which gives a process and its descendants a part of a processor."""
    controller = next(each for each in _CGROUPS if (each / "cgroup.procs").exists())
    group = controller / f"slackwater-{os.getpid()}"
    group.mkdir()
    try:
        quota = group / "cpu.cfs_quota_us"
        if quota.exists():
            quota.write_text(f"{cores * _PERIOD_US:.0f}")
        else:
            (group / "cpu.max").write_text(f"{cores * _PERIOD_US:.0f} {_PERIOD_US}")
        yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs")]
    finally:
        deadline_s = time.monotonic() + _END_S
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline_s:
            time.sleep(0.1)
        group.rmdir()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--starts", type=int, default=20)
    arguments.add_argument("--busy", type=int, default=4, help="busy processes per core; 0 leaves the trial out")
    arguments.add_argument("--cores", type=float, default=0.5, help="part of a processor; 0 leaves the trial out")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
