"""Runs the readers over the files of a directory: `python -m tests.corpus DIRECTORY`, or `make corpus DIR=...`.

Each file is read in a process with limits, with the schema that it suggests, and compared with pyarrow (Parquet,
ORC) or DuckDB (CSV, JSON).  A line a file:

    equal:        the other reader has the same rows
    different:    it has other rows; the difference is either a fault, or in the table of formats
    read:         the format lacks another reader, or that reader refuses the file
    bad records:  some records are quarantined; not compared
    refused:      the file is quarantined
    skipped:      no format has files of this name, or a listing skips it
    crashed:      the reader raised an undocumented error, or ended the process
    excess:       the reader took more than the limits

The exit code is 1 if a file crashed a reader or exceeded a limit.
"""

from __future__ import annotations

import argparse
import json
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpus.worker import FORMATS
from tests.repository import REPOSITORY

_COMPRESSED = {".gz", ".bz2", ".xz", ".zst", ".lz4"}
_FAILURES = ("crashed", "excess")
_SLOWEST = 5
# A process that waits for nothing but the CPU may get a fraction of it.
_WALL_PER_CPU = 10


@dataclass(frozen=True)
class FileResult:
    """The result of one file."""

    path: str
    status: str
    detail: str
    seconds: float

    @property
    def line(self) -> str:
        shown = self.path.encode("unicode_escape").decode()
        return f"{self.status:<11} {self.seconds:8.3f} s  {shown}  {' '.join(self.detail.split())[:300]}"


class Worker:
    """A process of one role, started again when a file has ended it.

    Args:
        role: see `tests.corpus.worker`.
        cpu_s, memory_mib: the limits of one file.
    """

    def __init__(self, role: str, cpu_s: int, memory_mib: int) -> None:
        self._arguments = [sys.executable, "-m", "tests.corpus.worker", role, str(cpu_s), str(memory_mib)]
        self._wall_s = cpu_s * _WALL_PER_CPU
        self._process: subprocess.Popen[str] | None = None

    def result(self, job: dict[str, str]) -> dict[str, Any]:
        """The result of a job; of a process that ended, the reason."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._arguments, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], self._wall_s)[0]:
            self.close()
            return {"status": "excess", "detail": f"no result in {self._wall_s} s"}
        if answer := process.stdout.readline():
            result: dict[str, Any] = json.loads(answer)
            return result
        code = process.wait()
        self.close()
        if code == -signal.SIGXCPU:
            return {"status": "excess", "detail": "CPU time"}
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {"status": "crashed", "detail": f"the process ended with {name}"}

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def results(directory: Path, cpu_s: int, memory_mib: int) -> Iterator[FileResult]:
    """Yields what became of each file below a directory, in the order of the names."""
    ours, others = (Worker(role, cpu_s, memory_mib) for role in ("ours", "others"))
    try:
        with tempfile.TemporaryDirectory() as kept:
            for path in sorted(directory.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    yield _result(path, path.relative_to(directory), Path(kept) / "rows", ours, others)
    finally:
        ours.close()
        others.close()


def _result(path: Path, name: Path, kept: Path, ours: Worker, others: Worker) -> FileResult:
    if str(name).encode(errors="replace").decode() != str(name):
        return FileResult(str(name), "skipped", "a listing skips names that are not text", 0)
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in _COMPRESSED]
    kind = suffixes[-1][1:] if suffixes else ""
    if kind not in FORMATS:
        return FileResult(str(name), "skipped", "no format has files of this name", 0)
    job = {"path": str(path.resolve()), "format": kind, "kept": str(kept)}
    began = time.monotonic()
    result = ours.result(job)
    seconds = result.get("cpu_s", time.monotonic() - began)
    status, detail = result["status"], result["detail"]
    if status == "read":
        compared = others.result(job)
        # A failure of the other reader is not a difference.
        status = "read" if compared["status"] in _FAILURES else compared["status"]
        detail = f"{detail}; {compared['detail']}"
    return FileResult(str(name), status, detail, seconds)


def main(arguments: list[str] | None = None) -> int:
    """Prints the result of each file and a summary; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cpu", type=int, default=60, metavar="SECONDS", help="CPU time of one file (60)")
    parser.add_argument("--memory", type=int, default=4096, metavar="MIB", help="memory of one file (4096)")
    given = parser.parse_args(arguments)
    if not given.directory.is_dir():
        parser.error(f"{given.directory} is not a directory")
    found = []
    for result in results(given.directory, given.cpu, given.memory):
        print(result.line, flush=True)
        found.append(result)
    counts = Counter(result.status for result in found)
    print(f"\n{len(found)} files: {', '.join(f'{count} {status}' for status, count in counts.most_common())}")
    for result in sorted(found, key=lambda result: -result.seconds)[:_SLOWEST]:
        print(f"slowest: {result.seconds:8.3f} s  {result.path}")
    return 1 if any(result.status in _FAILURES for result in found) else 0


if __name__ == "__main__":
    sys.exit(main())
