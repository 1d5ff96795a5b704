from __future__ import annotations

import json

import pytest

from benchmarks.bar_chart import bar_chart
from benchmarks.line_chart import line_chart
from benchmarks.result import TIMES, LinePlot, Number, Row, Table, Target, dumped, result_of
from tests.benchmarks.results import contest


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (100_942, "", "100,942"),
        (2_671_341.7, "names/s", "2,670,000 names/s"),
        (396.4, "files/s", "396 files/s"),
        (16.74, "ms", "16.7 ms"),
        (3.571, "s", "3.57 s"),
        (0.0412, "s", "0.041 s"),
        (0, "", "0"),
        (0.0, "s", "0 s"),
        (4.1, "$", "$4.10"),
        (1_296.2, "$", "$1,296"),
    ],
)
def test_counts_are_exact_and_measured_numbers_have_three_digits(value: float, unit: str, shown: str) -> None:
    assert str(Number(value, unit)) == shown


def test_a_target_judges_the_number_of_its_unit() -> None:
    row = Row("a", (Number(5, ""), Number(2.0, "s")), ratio=11.0, target=Target(3.0, "s"))
    assert row.meets_target
    row = Row("a", (Number(5, ""), Number(2.0, "s")), ratio=9.0, target=Target(10.0, TIMES, at_least=True))
    assert row.judged == Number(9.0, TIMES)
    assert row.meets_target is False
    assert Row("a", (Number(5),)).meets_target is None


def test_a_target_that_no_number_can_meet_is_refused() -> None:
    with pytest.raises(ValueError, match="row 'a': no number has the unit of its target, 'ms'"):
        Row("a", (Number(5, "s"),), target=Target(3.0, "ms"))


def test_a_row_that_does_not_fit_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="row 'a' has 1 numbers for 2 columns"):
        Table(("x", "y"), (Row("a", (Number(1),)),))
    with pytest.raises(ValueError, match="row 'a' has a ratio, and its table names no baseline"):
        Table(("x",), (Row("a", (Number(1),), ratio=2.0),))


def test_a_result_comes_back_from_json_as_it_was_shown() -> None:
    back = result_of(json.loads(dumped(contest().as_json())))
    assert back.tables[0].rows[0] == contest().tables[0].rows[0]
    assert back.tables[0].rows[1].ratio == 2.436, "floats keep four digits"
    assert (back.lines, back.bars, back.remarks) == (contest().lines, contest().bars, contest().remarks)


def test_a_bar_is_as_long_as_its_number() -> None:
    svg = bar_chart(contest().bars[0])
    widths = [float(part.partition('"')[0]) for part in svg.split('width="')[2:]]
    assert widths[0] / widths[1] == pytest.approx(3.571 / 8.7, rel=0.01)
    assert "3.57 s" in svg and "8.70 s" in svg


def test_a_line_without_points_is_a_picture_all_the_same() -> None:
    assert line_chart(LinePlot("empty", "Nothing", "x", "y", {"a": ()})).startswith("<svg")
