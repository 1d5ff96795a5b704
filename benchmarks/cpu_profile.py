"""Profiles the CPU of a run over small files, by process and function.

    python -m benchmarks.cpu_profile [--files 2000] [--rows 500] [--top 25]

py-spy samples the processes of a run from outside; a thread counts while it holds the interpreter.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.cpu_meter import CpuMeter, kind_of
from benchmarks.events import QUERY, event_files
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from slackwater.testing.servers.s3_server import S3Server

_RATE = 40
"""Samples a second; each of them stops the process, and there are eight."""
_WARM_FILES = 200
_ACTORS = ("Coordinator", "ListActor", "FetchActor")
_ROOMS = ("actors/", "state/", "spark_bridge/", "slackwater/")


def main() -> None:
    """Runs the files and prints the profiles."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--files", type=int, default=2_000)
    arguments.add_argument("--rows", type=int, default=500, help="of each file")
    arguments.add_argument("--top", type=int, default=25, help="functions to show of each process")
    options = arguments.parse_args()
    files = list(event_files(options.files, options.rows))
    with tempfile.TemporaryDirectory() as scratch, S3Server() as s3:
        bucket = s3.create_bucket("profile")
        with paused_run(s3, bucket, QUERY, files[:_WARM_FILES]) as run:
            count = upload(s3, bucket, "cold", files)
            meter = CpuMeter()
            with _sampled(Path(scratch)) as profiles:
                seconds = seconds_to_commit(run, count)
                spent = meter.seconds()
        print(f"{count:,} files in {seconds:.2f} s, with the profiler beside it")
        for kind, each in spent.items():
            print(f"  {1e3 * each / count:6.2f} ms of CPU a file: {kind}")
        for name, path in profiles.items():
            _show(name, path, options.top)


@contextmanager
def _sampled(directory: Path) -> Iterator[dict[str, Path]]:
    """Samples every Python process of the run while it is open.  Yields process → the file of its stacks."""
    profiles: dict[str, Path] = {}
    samplers = []
    for process in _python_processes():
        name = f"{kind_of(process.cmdline())} {process.name()} {process.pid}"
        profiles[name] = directory / str(process.pid)
        command = [_py_spy(), "record", "--format", "raw", "--rate", str(_RATE), "--nonblocking"]
        command += ["--gil", "--output", str(profiles[name]), "--pid", str(process.pid)]
        samplers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        yield profiles
    finally:
        for sampler in samplers:
            sampler.send_signal(signal.SIGINT)
        for sampler in samplers:
            sampler.wait(60)


def _python_processes() -> Iterator[psutil.Process]:
    own = psutil.Process()
    yield own
    for process in own.children(recursive=True):
        try:
            command = process.cmdline()
        except psutil.Error:  # it has ended meanwhile
            continue
        if command and command[0].startswith("ray::") and command[0].removeprefix("ray::").startswith(_ACTORS):
            yield process


def _py_spy() -> str:
    found = shutil.which("py-spy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if found is None:
        raise SystemExit("py-spy is not installed: `make profile` installs it")
    return found


def _show(name: str, path: Path, top: int) -> None:
    """Prints the functions of a process: the share of its samples in each itself, and in all that each calls."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, samples in _stacks(path):
        own[stack[-1]] += samples
        for frame in {frame for frame in stack if any(room in frame for room in _ROOMS)}:
            whole[frame] += samples
    total = sum(own.values())
    print(f"\n{name}: {total / _RATE:.2f} s in Python")
    for title, counts in (("in the function itself", own), ("with what it calls, of this project", whole)):
        print(f"  {title}:")
        for frame, samples in counts.most_common(top):
            print(f"  {100 * samples / total:6.1f} %  {frame}")


def _stacks(path: Path) -> Iterable[tuple[list[str], int]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, samples = line.rpartition(" ")
        # Lines of one function count together.
        yield [frame.rpartition(":")[0] for frame in stack.split(";")], int(samples)


if __name__ == "__main__":
    main()
