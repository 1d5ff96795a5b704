"""Result of a benchmark: tables of numbers with units, ratios, targets, and the points of its plots."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIMES = "×"
"""The unit of a ratio."""


@dataclass(frozen=True)
class Number:
    """A measured value.

    Args:
        value: an integer is exact and shown so, a float is rounded to three digits.
        unit: `s`, `ms`, `MiB`, `files/s`, ...; empty for a count.
    """

    value: float
    unit: str = ""

    def __str__(self) -> str:
        if self.unit == "$":
            return f"${self.value:,.2f}" if self.value < 100 else f"${self.value:,.0f}"
        return f"{_shown(self.value)} {self.unit}".rstrip()


@dataclass(frozen=True)
class Target:
    """The upper or lower bound of a number."""

    bound: float
    unit: str = ""
    at_least: bool = False

    def is_met_by(self, number: Number) -> bool:
        return number.value >= self.bound if self.at_least else number.value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:,g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Args:
        name: of what was measured, or of the contender.
        numbers: one for each column of the table; None where there is nothing to say.
        ratio: against the baseline of the table.
        target: of the first number with the target's unit; the ratio counts as the last one.
        note: a remark without which it cannot be compared.
    """

    name: str
    numbers: tuple[Number | None, ...]
    ratio: float | None = None
    target: Target | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.target is not None and self.judged is None:
            raise ValueError(f"row {self.name!r}: no number has the unit of its target, {self.target.unit!r}")

    @property
    def judged(self) -> Number | None:
        """The number that the target is about."""
        if self.target is None:
            return None
        numbers = (*self.numbers, None if self.ratio is None else Number(self.ratio, TIMES))
        return next((each for each in numbers if each is not None and each.unit == self.target.unit), None)

    @property
    def meets_target(self) -> bool | None:
        """None without a target."""
        return None if self.target is None or self.judged is None else self.target.is_met_by(self.judged)

    @property
    def verdict(self) -> str:
        """In a word."""
        return {None: "", True: "met", False: "missed"}[self.meets_target]


@dataclass(frozen=True)
class Table:
    """Rows that are compared.

    Args:
        columns: the names of the numbers of each row.
        rows: at least one.
        ratio: the name of the baseline of the ratios.
        caption: the facts that all rows share.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    ratio: str = ""
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.numbers) != len(self.columns):
                raise ValueError(f"row {row.name!r} has {len(row.numbers)} numbers for {len(self.columns)} columns")
            if row.ratio is not None and not self.ratio:
                raise ValueError(f"row {row.name!r} has a ratio, and its table names no baseline")

    def cells(self) -> list[list[str]]:
        """As text, the heads first; ratios, targets and notes only where some row has one."""
        lines = [["", *self.columns], *([row.name, *map(_cell, row.numbers)] for row in self.rows)]
        ratios = ["" if row.ratio is None else f"{row.ratio:.2f} {TIMES}" for row in self.rows]
        targets = ["" if row.target is None else f"{row.target}: {row.verdict}" for row in self.rows]
        notes = [row.note for row in self.rows]
        for head, column in ((self.ratio, ratios), ("target", targets), ("", notes)):
            if any(column):
                for line, cell in zip(lines, [head, *column], strict=True):
                    line.append(cell)
        return lines


@dataclass(frozen=True)
class LinePlot:
    """Lines over one axis; the picture is `<name>.svg`."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class BarPlot:
    """A bar for each contender; the picture is `<name>.svg`."""

    name: str
    title: str
    unit: str
    bars: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """Everything that one run of a benchmark has found.

    Args:
        tables: in the order of the page.
        lines: plots with lines.
        bars: plots with bars.
        remarks: sentences about the numbers: a contender that could not take part, and why.
    """

    tables: tuple[Table, ...]
    lines: tuple[LinePlot, ...] = ()
    bars: tuple[BarPlot, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def targets(self) -> list[Row]:
        """The rows that have one."""
        return [row for table in self.tables for row in table.rows if row.target is not None]

    def as_json(self) -> dict[str, Any]:
        """For `result_of`."""
        return dataclasses.asdict(self)


def result_of(stored: Mapping[str, Any]) -> Result:
    """A result that was stored as JSON."""
    return Result(
        tables=tuple(_table_of(each) for each in stored["tables"]),
        lines=tuple(
            LinePlot(**{**each, "lines": {name: _points_of(line) for name, line in each["lines"].items()}})
            for each in stored["lines"]
        ),
        bars=tuple(BarPlot(**each) for each in stored["bars"]),
        remarks=tuple(stored["remarks"]),
    )


def _table_of(stored: Mapping[str, Any]) -> Table:
    rows = tuple(
        Row(
            name=each["name"],
            numbers=tuple(None if number is None else Number(**number) for number in each["numbers"]),
            ratio=each["ratio"],
            target=None if each["target"] is None else Target(**each["target"]),
            note=each["note"],
        )
        for each in stored["rows"]
    )
    return Table(tuple(stored["columns"]), rows, stored["ratio"], stored["caption"])


def _cell(number: Number | None) -> str:
    return "" if number is None else str(number)


def _points_of(line: list[list[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in line)


def dumped(stored: Mapping[str, Any]) -> str:
    """JSON that a person can compare line by line; points keep four digits."""
    return json.dumps(_rounded(stored), indent=1, ensure_ascii=False) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return value


def _shown(value: float) -> str:
    if isinstance(value, int) or value == 0:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    if digits <= 0:
        return f"{round(value, digits):,.0f}"
    # Below a thousandth, digits are noise.
    return f"{value:.{min(digits, 3)}f}"
