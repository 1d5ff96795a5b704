"""Speed of this machine, as the seconds of a fixed amount of work in Python and Arrow.

A target in seconds holds on the machine of `REFERENCE_S`.  On every machine it is judged as a ratio: the measured value
and the calibration of the same run, against the target and `REFERENCE_S`.
"""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from benchmarks.result import Number, Result, Row, Table, Target

REFERENCE_S = 0.05
"""Seconds of the calibration on the machine for which the targets in seconds are written."""
CALIBRATIONS, PER_CALIBRATION = "cal", "per cal"
_SECONDS = {"s": 1.0, "ms": 1e-3}
_PER_SECOND = "/s"
_TIMES, _LOOPS, _ROWS = 5, 250_000, 75_000


def calibrate() -> float:
    """Seconds of the fixed work, a part of which uses all cores: the median of some turns after a first one."""
    work, seconds = _work(), []
    for _ in range(1 + _TIMES):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return median(seconds[1:])


def _work() -> Callable[[], int]:
    random = np.random.default_rng(0)
    names = pa.array([f"name-{number % 500}" for number in range(_ROWS)])
    table = pa.table([names, random.integers(0, 1_000, _ROWS), random.random(_ROWS)], ["name", "key", "amount"])
    sink = io.BytesIO()
    arrow_csv.write_csv(table, sink)
    content = sink.getvalue()

    def work() -> int:
        total = 0
        for number in range(_LOOPS):
            total += number % 7
        rows = arrow_csv.read_csv(pa.BufferReader(content))
        groups = rows.group_by(["name", "key"]).aggregate([("amount", "sum"), ([], "count_all")])
        return total + len(groups.sort_by([("amount_sum", "descending")]))

    return work


def in_calibrations(result: Result, calibration_s: float) -> Result:
    """The result with each target in seconds, or in a number per second, expressed as a ratio to the calibration.

    Args:
        calibration_s: seconds of the calibration in the same run.
    """
    return dataclasses.replace(result, tables=tuple(_table(each, calibration_s) for each in result.tables))


def _table(table: Table, calibration_s: float) -> Table:
    judged = [_judged(row, calibration_s) for row in table.rows]
    if not any(judged):
        return table
    rows = []
    for row, ratio in zip(table.rows, judged, strict=True):
        number, target = ratio or (None, row.target)
        rows.append(dataclasses.replace(row, numbers=(*row.numbers, number), target=target))
    return dataclasses.replace(table, columns=(*table.columns, "in calibrations"), rows=tuple(rows))


def _judged(row: Row, calibration_s: float) -> tuple[Number, Target] | None:
    """The number and the target of a row as ratios; None if its target does not depend on the machine's speed."""
    if row.target is None or row.judged is None:
        return None
    bound, value, unit = row.target.bound, row.judged.value, row.target.unit
    if scale := _SECONDS.get(unit):
        number = Number(value * scale / calibration_s, CALIBRATIONS)
        return number, dataclasses.replace(row.target, bound=bound * scale / REFERENCE_S, unit=CALIBRATIONS)
    if unit.endswith(_PER_SECOND):
        number = Number(value * calibration_s, PER_CALIBRATION)
        return number, dataclasses.replace(row.target, bound=bound * REFERENCE_S, unit=PER_CALIBRATION)
    return None
