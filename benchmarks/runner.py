"""One benchmark in a process of its own, with a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchmarks.catalogue import Entry
from benchmarks.machine import this_machine, today
from benchmarks.record import Record, Run
from benchmarks.result import Result, result_of

_LAST_LINES = 3


class Runner:
    """Runs benchmarks one after the other.

    Args:
        directory: it keeps the output of each, in `<name>.log`.
        quick: whether the quick forms are run.
    """

    def __init__(self, directory: Path, *, quick: bool) -> None:
        self._directory, self._quick = directory, quick

    def run(self, entry: Entry) -> Record:
        """Runs a benchmark; whatever becomes of it, there is a record."""
        self._directory.mkdir(parents=True, exist_ok=True)
        found, log = self._directory / f"{entry.name}.result.json", self._directory / f"{entry.name}.log"
        found.unlink(missing_ok=True)
        started = time.perf_counter()
        reason = self._process(entry, found, log)
        result: Result | None = None
        if not reason:
            result = result_of(json.loads(found.read_text(encoding="utf-8")))
            found.unlink()
        run = Run(entry.command(quick=self._quick), today(), this_machine(), time.perf_counter() - started)
        return Record(entry.name, run, result) if result else Record(entry.name, failed=run, reason=reason)

    def _process(self, entry: Entry, found: Path, log: Path) -> str:
        """Why there is no result; empty if there is one."""
        command = [sys.executable, "-m", f"benchmarks.{entry.name}", *entry.arguments(quick=self._quick)]
        with log.open("w", encoding="utf-8") as printed:
            process = subprocess.Popen([*command, "--json", str(found)], stdout=printed, stderr=subprocess.STDOUT)
            try:
                code = process.wait(entry.limit_s)
            except subprocess.TimeoutExpired:
                return f"it took longer than {entry.limit_s:.0f} s, and was ended"
            finally:
                end_tree(process.pid)
                process.wait()
        if code:
            return f"exit code {code}: {_last_words(log)}"
        return "" if found.exists() else "it ended without a result"


def end_tree(pid: int) -> None:
    """Kills a process with all that it has started; nothing happens if it has ended."""
    try:
        root = psutil.Process(pid)
        processes = [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-_LAST_LINES:]) or "it printed nothing"
