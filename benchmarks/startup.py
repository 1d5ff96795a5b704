"""Seconds from `slackwater run` to the first committed epoch on 100 small files, in fresh processes, in turns.

    python -m benchmarks.startup [--turns 3] [--before CHECKOUT]

Without and with the archive of classes; then in a Ray cluster that runs, in which a pipeline ran before.  `--before`
also starts what another checkout of this project has, after `make setup` in it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.servers.ray_cluster import RayCluster

_FILES = 100
_PROBE = Path(__file__).with_name("startup_probe.py")
_HERE = Path(__file__).parent.parent
_BUILD_S = 600.0
_START_S = 120.0
_WITHOUT, _WITH, _JOINED = "without the archive", "with the archive", "in a Ray cluster that runs"
_TARGETS = {_WITH: Target(10.0, "s"), _JOINED: Target(5.0, "s")}


def measure(options: argparse.Namespace) -> Result:
    place = Path(tempfile.mkdtemp(prefix="slackwater-startup-"))
    try:
        return measured(place, options.turns, options.before)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measured(place: Path, turns: int, before: Path | None) -> Result:
    variants = {_WITHOUT: (_HERE, "none"), _WITH: (_HERE, "archive")}
    if before is not None:
        variants = {f"before, {_WITH}": (before, "archive"), **variants}
    write_files(place)
    if before is not None:
        noting_start(place, before)
    first, build_s = noting_start(place, _HERE)
    starts: dict[str, list[dict[str, Any]]] = {name: [] for name in variants}
    for _ in range(turns):
        for name, (packages, archive) in variants.items():
            starts[name].append(start(place, packages, archive))
    with RayCluster(num_cpus=8) as cluster:
        joined = [start(place, _HERE, "archive", cluster.environment) for _ in range(turns + 1)]
    starts[_JOINED] = joined[1:]
    built = next((place / "cache").rglob("*.jsa"))
    remark = (
        f"The first start of all notes the classes: {first['seconds']:.1f} s, {first['cpu_s']:.1f} CPU seconds; "
        f"the archive is there {build_s:.1f} s after its end, {built.stat().st_size / 2**20:.0f} MiB."
    )
    tables = [starts_table(starts), steps_table(_WITH, starts[_WITH]), steps_table(_JOINED, starts[_JOINED])]
    tables += [processes_table(name, each) for name, each in starts.items() if name not in (_WITHOUT, _JOINED)]
    return Result(tuple(tables), remarks=(remark,))


def write_files(place: Path) -> None:
    """The files of the probe."""
    (place / "in").mkdir()
    for number in range(_FILES):
        rows = "".join(f"{row % 7},{row}\n" for row in range(20))
        (place / "in" / f"{number:03}.csv").write_text(f"k,v\n{rows}")


def starts_table(starts: dict[str, list[dict[str, Any]]]) -> Table:
    reference = median(each["seconds"] for each in next(iter(starts.values())))
    rows = []
    for name, each in starts.items():
        seconds = median(one["seconds"] for one in each)
        spread = ", ".join(f"{one['seconds']:.1f}" for one in each)
        numbers = Number(seconds, "s"), Number(median(one["cpu_s"] for one in each), "s")
        ratio = seconds / reference
        rows.append(Row(name, numbers, ratio=ratio, target=_TARGETS.get(name), note=f"each: {spread} s"))
    return Table(("to the first epoch", "CPU"), tuple(rows), ratio=f"of {next(iter(starts))}")


def steps_table(variant: str, starts: list[dict[str, Any]]) -> Table:
    # A start has shown its rows before its last steps are over.
    steps = [step for step in starts[0]["steps"] if all(step in each["steps"] for each in starts)]
    rows = [Row(step, (Number(median(each["steps"][step] for each in starts), "s"),)) for step in steps]
    return Table(("took",), tuple(rows), caption=f"The steps of a start {variant}, side by side")


def processes_table(variant: str, starts: list[dict[str, Any]]) -> Table:
    spent = {kind: median(each["processes"].get(kind, 0.0) for each in starts) for kind in starts[0]["processes"]}
    rows = [Row(kind, (Number(spent[kind], "s"),)) for kind in sorted(spent, key=lambda kind: -spent[kind])]
    return Table(("CPU",), tuple(rows), caption=f"The processes of a start, {variant}")


def noting_start(place: Path, packages: Path) -> tuple[dict[str, Any], float]:
    """The first start of a checkout, and the seconds until the archive is built behind it."""
    archives = len(list((place / "cache").rglob("*.jsa")))
    first = start(place, packages, "archive")
    ended = time.perf_counter()
    while len(list((place / "cache").rglob("*.jsa"))) == archives:
        assert time.perf_counter() < ended + _BUILD_S, "the archive was not built"
        time.sleep(0.1)
    return first, time.perf_counter() - ended


def start(
    place: Path,
    packages: Path,
    archive: str,
    cluster: Mapping[str, str] = MappingProxyType({}),
    *,
    prefix: Sequence[str] = (),
    timeout_s: float = _START_S,
) -> dict[str, Any]:
    shutil.rmtree(place / "root", ignore_errors=True)
    environment = {**os.environ, **cluster, "PYTHONPATH": str(packages), "XDG_CACHE_HOME": str(place / "cache")}
    # Ray's workers take what is installed in their Python, and what is where their driver stands.
    python = sys.executable if packages == _HERE else str(packages / ".venv" / "bin" / "python")
    command = [*prefix, python, str(_PROBE), str(place), archive]
    done = subprocess.run(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout_s
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--before", type=Path, help="another checkout, to compare with")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
