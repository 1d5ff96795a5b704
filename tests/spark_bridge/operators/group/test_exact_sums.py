"""Retracted sums and moments differ from the true values by less than the bound, or their group is lost."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest

from spark_bridge.operators.group import exact_sums
from spark_bridge.operators.group.exact_sums import DIGIT_BITS, TOLERANCE, FixedPoint, Sum

_BUFFERS = (["sum"], ["n", "xAvg", "xMk"], ["n", "xAvg", "yAvg", "ck"], ["n", "xAvg", "yAvg", "ck", "xMk", "yMk"])
_ALL = ["sum", "n", "xAvg", "yAvg", "ck", "xMk", "yMk"]


class History:
    """The stored sums of one group, through inserts and deletes; by the same arithmetic as Spark's expressions."""

    def __init__(self, *, is_whole: bool = False) -> None:
        products = exact_sums.WHOLE_PRODUCTS if is_whole else exact_sums.PRODUCTS
        values = exact_sums.WHOLE_VALUES if is_whole else exact_sums.VALUES
        self._layouts = {"x": values, "y": values, "xx": products, "yy": products, "xy": products}
        self._digits = {name: [0] * len(layout.exponents) for name, layout in self._layouts.items()}
        self._magnitudes = {"x": 0.0, "y": 0.0}
        self.rows: list[tuple[float, float]] = []
        self.sum = 0.0

    def insert(self, rows: Sequence[tuple[float, float]]) -> None:
        self.rows += rows
        for x, y in rows:
            self.sum += x
            for name, value in (("x", x), ("y", y)):
                with np.errstate(over="ignore", invalid="ignore"):
                    self._magnitudes[name] += float(np.abs(value) * (np.abs(value) + 1.0))
        self._add(rows, 1)

    def delete(self, rows: Sequence[tuple[float, float]]) -> None:
        for row in rows:
            self.rows.remove(row)
        self.sum -= sum(x for x, _ in rows)
        self._add(rows, -1)

    def _add(self, rows: Sequence[tuple[float, float]], sign: int) -> None:
        for x, y in rows:
            factors = {"x": x, "y": y}
            for name, layout in self._layouts.items():
                with np.errstate(over="ignore", invalid="ignore"):
                    value = math.prod(factors[each] for each in name)
                for at, digit in enumerate(digits_of(value, layout)):
                    self._digits[name][at] += sign * digit

    def buffer(self, attributes: Sequence[str] = _ALL) -> tuple[Mapping[str, float], bool]:
        """The retracted buffer, and whether the group is lost."""
        counts = np.array([len(self.rows)])
        of = {name: np.array([each]) for name, each in self._magnitudes.items()}
        sums: dict[str, Sum] = {}
        for name, layout in self._layouts.items():
            digits = [np.array([each & (1 << 64) - 1], np.uint64).view(np.int64) for each in self._digits[name]]
            sums[name] = (
                exact_sums.sum_of_values(layout, digits, counts, of[name])
                if len(name) == 1
                else exact_sums.sum_of_products(layout, digits, counts, (of[name[0]], of[name[1]]))
            )
        values, is_lost = exact_sums.retracted(attributes, sums, counts, np.array([self.sum]))
        return {name: float(each[0]) for name, each in zip(attributes, values, strict=True)}, bool(is_lost[0])


def digits_of(value: float, layout: FixedPoint) -> list[int]:
    """The digits of a value, as `retraction` writes them in expressions."""
    found, rest = [], np.float64(value) * 2.0 ** -layout.exponents[0]
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(len(layout.exponents)):
            rest = rest * 2.0**DIGIT_BITS if at else rest
            digit = np.rint(rest)
            found.append(0 if math.isnan(digit) else max(-(1 << 63), min((1 << 63) - 1, _int(digit))))
            rest = rest - digit
    return found


def _int(value: float) -> int:
    return int(value) if math.isfinite(value) else int(math.copysign(1 << 63, value))


def truth(rows: Sequence[tuple[float, float]]) -> dict[str, Fraction]:
    """The exact values of the buffer."""
    n = len(rows)
    x, y = ([Fraction(row[at]) for row in rows] for at in (0, 1))
    means = sum(x) / n, sum(y) / n

    def moment(one: Sequence[Fraction], other: Sequence[Fraction], mean: tuple[Fraction, Fraction]) -> Fraction:
        return sum(((a - mean[0]) * (b - mean[1]) for a, b in zip(one, other, strict=True)), Fraction(0))

    return {
        "sum": sum(x, Fraction(0)),
        "n": Fraction(n),
        "xAvg": Fraction(means[0]),
        "yAvg": Fraction(means[1]),
        "ck": moment(x, y, (Fraction(means[0]), Fraction(means[1]))),
        "xMk": moment(x, x, (Fraction(means[0]), Fraction(means[0]))),
        "yMk": moment(y, y, (Fraction(means[1]), Fraction(means[1]))),
    }


def require_near(history: History, attributes: Sequence[str] = _ALL) -> bool:
    """Fails if a value is beyond the bound and the group is not lost.  Returns whether it is lost."""
    values, is_lost = history.buffer(attributes)
    if is_lost:
        return True
    exact = truth(history.rows)
    for name, value in values.items():
        allowed = abs(exact[name]) * Fraction(TOLERANCE)
        if name in ("xAvg", "yAvg"):
            spread = exact["xMk" if name == "xAvg" else "yMk"] / len(history.rows)
            allowed = max(allowed, Fraction(TOLERANCE) * Fraction(math.sqrt(spread)))
        assert math.isfinite(value), name
        assert abs(Fraction(value) - exact[name]) <= allowed * Fraction(1.01), (name, value, float(exact[name]))
    return False


SCALES: Mapping[str, tuple[float, float]] = {
    "delays": (12.0, 40.0), "prices": (100.0, 30.0), "near zero": (0.0, 1e-3), "tiny": (1e-9, 1e-9),
    "tiniest": (1e-200, 1e-201), "large": (1e9, 1e8), "huge": (1e16, 1e16), "overflowing": (1e200, 1e199),
    "times": (1.7e9, 1e5), "equal": (5.0, 0.0), "zeros": (0.0, 0.0), "ill conditioned": (1e7, 1e-6),
}  # fmt: skip
"""Name → average and spread of values."""


@pytest.mark.parametrize("name", SCALES)
def test_a_value_is_within_the_bound_or_its_group_is_lost(name: str) -> None:
    mean, spread = SCALES[name]
    lost = 0
    for seed in range(12):
        chance = random.Random(f"{name} {seed}")
        history, other = History(), SCALES[chance.choice([*SCALES])]
        for _ in range(chance.randrange(1, 8)):
            history.insert(
                [(chance.gauss(mean, spread), chance.gauss(*other)) for _ in range(chance.choice([1, 2, 30]))]
            )
            history.delete(chance.sample(history.rows, chance.randrange(len(history.rows))))
            lost += sum(require_near(history, attributes) for attributes in _BUFFERS)
    assert lost > 0 or name not in ("tiniest", "huge", "overflowing"), "the digits cannot hold these values"


@pytest.mark.parametrize("name", ["delays", "prices", "large"])
def test_the_groups_of_usual_data_are_not_lost(name: str) -> None:
    chance = random.Random(name)

    def rows(count: int) -> list[tuple[float, float]]:
        values = [chance.gauss(*SCALES[name]) for _ in range(count)]
        return [(x, x + chance.gauss(*SCALES[name])) for x in values]

    history = History()
    history.insert(rows(300))
    for _ in range(20):
        history.delete(chance.sample(history.rows, 5))
        history.insert(rows(5))
        assert not require_near(history)


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, 1e16, -1e300, 2.0**50])
def test_a_group_that_has_had_a_value_beyond_the_digits_is_lost(special: float) -> None:
    history = History()
    history.insert([(1.5, 2.5), (2.5, 4.5), (7.25, 1.0)])
    assert not require_near(history)
    history.insert([(special, 1.0)])
    history.delete([history.rows[-1]])
    assert all(history.buffer(attributes)[1] for attributes in _BUFFERS)


def test_small_values_that_have_had_a_large_one_beside_them_are_lost() -> None:
    history = History()
    history.insert([(1e-20, 1.0), (2e-20, 2.0), (1.0, 3.0)])
    history.delete([(1.0, 3.0)])
    assert require_near(history, ["sum"])


def test_integers_are_exact_and_never_lost_below_their_limit() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        history, width = History(is_whole=True), chance.choice([1, 10, 2**20, 2**26])
        for _ in range(6):
            rows = [(float(chance.randrange(-width, width)), float(chance.randrange(width))) for _ in range(9)]
            history.insert([*rows, rows[0]])
            history.delete(chance.sample(history.rows, chance.randrange(len(history.rows))))
            values, is_lost = history.buffer()
            assert not is_lost
            assert values == {name: float(each) for name, each in truth(history.rows).items()}


def test_a_sum_that_was_exact_stays_exact() -> None:
    """Values of few bits below the last digit: the difference of the sums has no error, but the digits have one."""
    small = 2.0**-50
    history = History()
    history.insert([(1.0 + small, 1.0), (1.0 - small, 2.0), (0.5, 3.0)])
    history.delete([(1.0 - small, 2.0)])
    values, is_lost = history.buffer()
    assert (values["sum"], is_lost) == (1.5 + small, False)
    history.sum += 1e-3
    assert history.buffer()[0]["sum"] == pytest.approx(1.5, rel=TOLERANCE), "a difference with an error is not taken"


def test_sums_of_digits_wrap_and_come_back() -> None:
    """The sum of the digits of 2^61 + 2^61 + 2^62 - 2^62, as Spark adds them: modulo 2^64."""
    wrapped = np.array([3 << 62], np.uint64).view(np.int64)
    assert wrapped[0] < 0
    assert exact_sums.remaining(wrapped, np.array([1 << 62])).tolist() == [-(1 << 63)]
    assert exact_sums.remaining(np.array([-(1 << 63)]), np.array([1 << 62])).tolist() == [1 << 62]
