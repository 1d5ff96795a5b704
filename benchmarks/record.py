"""Record of one benchmark run: command, day, machine and result; one JSON file for each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.result import Result, dumped, result_of


@dataclass(frozen=True)
class Run:
    """One run of a benchmark.

    Args:
        command: that repeats it.
        day: in UTC, as `2026-11-22`.
        machine: cores, memory, Python, packages.
        seconds: that all of it took.
    """

    command: str
    day: str
    machine: str
    seconds: float


@dataclass(frozen=True)
class Record:
    """The last result of a benchmark, and how its last run failed if it did.

    Args:
        name: of the benchmark.
        run: that gave the result; None if none ever did.
        result: its result; None without `run`.
        failed: the last run, if it gave no result.
        reason: why it gave none.
    """

    name: str
    run: Run | None = None
    result: Result | None = None
    failed: Run | None = None
    reason: str = ""

    def after(self, earlier: Record | None) -> Record:
        """This record with the result of an earlier one, where it has none of its own."""
        if self.result is not None or earlier is None:
            return self
        return replace(self, run=earlier.run, result=earlier.result)


class Archive:
    """A directory of records."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get(self, name: str) -> Record | None:
        """The record of a benchmark, if it ever ran.

        Raises:
            ValueError: its file holds something else.
        """
        path = self._path(name)
        if not path.exists():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return Record(
                stored["name"],
                None if stored["run"] is None else Run(**stored["run"]),
                None if stored["result"] is None else result_of(stored["result"]),
                None if stored["failed"] is None else Run(**stored["failed"]),
                stored["reason"],
            )
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no record of a benchmark ({error}); remove it and measure again") from error

    def put(self, record: Record) -> Record:
        """Stores a record over the earlier one of its name; returns what is stored."""
        merged = record.after(self.get(record.name))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._path(record.name).write_text(dumped(asdict(merged)), encoding="utf-8")
        return merged

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.json"
