from __future__ import annotations

import pytest

from benchmarks.calibration import REFERENCE_S, calibrate, in_calibrations
from benchmarks.result import TIMES, Number, Result, Row, Table, Target


def row(value: float, unit: str, target: Target | None) -> Row:
    return Row(f"{value} {unit}", (Number(value, unit),), target=target)


def judged(*rows: Row, calibration_s: float) -> Table:
    return in_calibrations(Result((Table(("measured",), rows),)), calibration_s).tables[0]


@pytest.mark.parametrize(("value", "unit", "bound"), [(2.0, "s", 3.0), (2_000.0, "ms", 3_000.0)])
def test_a_target_in_seconds_is_a_ratio_to_the_calibration(value: float, unit: str, bound: float) -> None:
    table = judged(row(value, unit, Target(bound, unit)), calibration_s=REFERENCE_S)
    assert table.columns == ("measured", "in calibrations")
    [found] = table.rows
    assert found.judged == Number(2.0 / REFERENCE_S, "cal")
    assert found.target == Target(3.0 / REFERENCE_S, "cal")
    assert found.numbers[0] == Number(value, unit), "the seconds stay beside it"


@pytest.mark.parametrize(
    ("unit", "target", "slower"),
    [("s", Target(3.0, "s"), 4.0), ("look-ups/s", Target(600, "look-ups/s", at_least=True), 400.0)],
)
def test_a_machine_of_half_the_speed_may_take_twice_the_time(unit: str, target: Target, slower: float) -> None:
    measured = row(slower, unit, target)
    assert not measured.meets_target
    assert judged(measured, calibration_s=2 * REFERENCE_S).rows[0].meets_target
    assert not judged(measured, calibration_s=REFERENCE_S).rows[0].meets_target


@pytest.mark.parametrize(
    ("unit", "target"), [(TIMES, Target(2, TIMES)), ("", Target(7)), ("MiB", Target(9, "MiB")), ("s", None)]
)
def test_other_targets_stay_as_they_are(unit: str, target: Target | None) -> None:
    measured = row(1.0, unit, target)
    assert judged(measured, calibration_s=1.0) == Table(("measured",), (measured,))


def test_the_rows_beside_it_have_an_empty_cell() -> None:
    table = judged(row(1.0, "s", Target(2.0, "s")), row(1.0, "s", None), calibration_s=REFERENCE_S)
    assert [len(each.numbers) for each in table.rows] == [2, 2]
    assert table.rows[1].numbers[1] is None


def test_the_calibration_takes_a_while() -> None:
    assert 0 < calibrate() < 100 * REFERENCE_S
