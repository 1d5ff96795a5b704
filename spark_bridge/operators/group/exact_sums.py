"""The arithmetic of retraction: sums and central moments of doubles, from sums of integers that no retraction rounds.

Each value is rounded once, to a fixed point: a few digits of 32 bits, whose sums are 64-bit integers modulo 2^64.  The
same row gives the same digits when it is inserted and when it is deleted.  So the sums of the digits depend on the
remaining rows alone, and no sequence of corrections accumulates an error.  The fixed units follow Demmel
and Nguyen, "Fast Reproducible Floating-Point Summation" (2013).

Notation, for n values x:  X, XX, XY are the sums of x, x² and xy; u = 2^-53 is the unit roundoff.

    rounding of a value     at most half a unit of its last digit; none of an integer below 2^53
    rounding of a product   at most u |xy| before that
    sum                     e(X)  <= n unit / 2                       e(XY) <= n unit / 2 + u sum |xy|
    central moment          C = XY - X Y / n                          (Chan, Golub and LeVeque, 1983, equation 1.2)
                            e(C)  <= e(XY) + (|X| e(Y) + |Y| e(X) + e(X) e(Y)) / n

The textbook formula of C cancels; it is computed here in integers of unlimited size, so that only e(X), e(Y) and e(XY)
count.  A group whose bound exceeds `TOLERANCE` of the value is lost: it is computed again from its rows.  So is a group
with NaN, infinities or values too large for the digits, which its magnitude shows: the sum of |x| (1 + |x|) over all
rows that it has had.  A magnitude is never subtracted, so it is at least the sum over the remaining rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

TOLERANCE = 1e-10
"""The largest relative error of a value of a buffer.

The value of a function has at most the errors of four of them (`regr_r2`).  Verification accepts a difference of 1e-9.
"""

DIGIT_BITS = 32
_ROUNDOFF = 2.0**-52
"""Twice the unit roundoff: the magnitudes are sums of doubles, which are a little too small at worst."""
_MOST_VALUES = 1 << 30
_EXACT_INTEGERS = 2.0**52
"""The product of two integers is rounded only above twice this number."""

Doubles = npt.NDArray[np.float64]
Digits = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[Any]
"""Python's integers, which have no limit."""


@dataclass(frozen=True)
class FixedPoint:
    """The digits of a value.

    Args:
        exponents: of the units of the digits as powers of two, the largest first, each `DIGIT_BITS` below the last.
        is_exact: whether all values are integers, so that no value is rounded.
    """

    exponents: tuple[int, ...]
    is_exact: bool = False

    def holds(self, absolute: Doubles, counts: Digits) -> Flags:
        """True if the sums of all digits fit into 64 bits; False with NaN.

        Args:
            absolute: the sums of the absolute values, or more.
            counts: the numbers of values.
        """
        return (absolute < 2.0 ** (61 + self.exponents[0])) & (counts < _MOST_VALUES)

    @property
    def unit(self) -> float:
        """The unit of the last digit."""
        return 2.0 ** self.exponents[-1]

    def sums(self, digits: Sequence[Digits]) -> Integers:
        """The sums of values, in units of the last digit, from the sums of their digits."""
        together = digits[0].astype(object)
        for each in digits[1:]:
            together = together * (1 << DIGIT_BITS) + each.astype(object)
        return together


VALUES = FixedPoint((-12, -44))
PRODUCTS = FixedPoint((12, -20, -52))
WHOLE_VALUES = FixedPoint((0,), is_exact=True)
WHOLE_PRODUCTS = FixedPoint((32, 0), is_exact=True)


@dataclass(frozen=True)
class Sum:
    """The sums of one kind of values in several groups.

    Args:
        units: in units of 2^exponent.
        error: a bound of the absolute error of each.
        is_known: whether the digits of all values fit.
    """

    units: Integers
    exponent: int
    error: Doubles
    is_known: Flags


@dataclass(frozen=True)
class Retracted:
    """Values of several groups after a retraction.

    Args:
        values: meaningless where the group is lost.
        is_lost: whether the group must be computed again.
    """

    values: Doubles
    is_lost: Flags


def remaining(stored: Digits, gone: Digits) -> Digits:
    """The sums of digits after the subtraction of deleted rows, modulo 2^64."""
    return (stored.view(np.uint64) - gone.view(np.uint64)).view(np.int64)


def sum_of_values(layout: FixedPoint, digits: Sequence[Digits], counts: Digits, magnitude: Doubles) -> Sum:
    """The sums of single values.

    Args:
        counts: the number of values of each group.
        magnitude: of each group, see the module.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        absolute = np.minimum(magnitude, np.sqrt(magnitude * counts))
        error = np.where(magnitude == 0, 0.0, 0.0 if layout.is_exact else counts * layout.unit / 2)
    return Sum(layout.sums(digits), layout.exponents[-1], error, layout.holds(absolute, counts))


def sum_of_products(
    layout: FixedPoint, digits: Sequence[Digits], counts: Digits, magnitudes: tuple[Doubles, Doubles]
) -> Sum:
    """The sums of products of two values, or of squares.

    Args:
        counts: the number of products of each group.
        magnitudes: of the two values.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        # By the inequality of Cauchy and Schwarz; the square of a magnitude may overflow.
        absolute = np.sqrt(magnitudes[0]) * np.sqrt(magnitudes[1])
        rounded = np.where(layout.is_exact & (absolute < _EXACT_INTEGERS), 0.0, absolute * _ROUNDOFF)
        error = np.where(absolute == 0, 0.0, rounded + (0.0 if layout.is_exact else counts * layout.unit / 2))
    return Sum(layout.sums(digits), layout.exponents[-1], error, layout.holds(absolute, counts))


def rounded_sum(of: Sum, subtracted: Doubles) -> Retracted:
    """The sums as doubles.

    Args:
        subtracted: the differences of the sums of doubles.  Such a difference has no error if no sum has had one, and
            it is taken if it is within the bound.
    """
    values = _doubles(of.units, of.exponent)
    with np.errstate(invalid="ignore"):
        near = np.abs(subtracted - values) <= of.error
    values = np.where(near & (of.error > 0), subtracted, values)
    # The difference may be on the other side of the true sum.
    is_near = 2 * of.error <= TOLERANCE * np.abs(values)
    return Retracted(values, ~of.is_known | ~is_near)


def mean(of: Sum, counts: Digits, spread: Doubles) -> Retracted:
    """The averages of the values of each group, to which further values can be merged.

    Args:
        counts: the number of values of each group, one at least.
        spread: the sum of squared differences from the average.
    """
    values = _doubles(of.units, of.exponent, counts)
    error = of.error / counts
    with np.errstate(invalid="ignore"):
        is_near = (error <= TOLERANCE * np.abs(values)) | (error <= TOLERANCE * np.sqrt(spread / counts))
    return Retracted(values, ~of.is_known | ~is_near)


def central_moment(one: Sum, other: Sum, products: Sum, counts: Digits) -> Retracted:
    """The sums of products of differences from the averages.

    Args:
        one: the sums of the first values.
        other: the sums of the second values; the first sums again for squares.
        products: the sums of their products.
        counts: the number of values of each group, one at least.
    """
    exponent = min(products.exponent, one.exponent + other.exponent)
    numbers = counts.astype(object)
    of_products = products.units * numbers * (1 << (products.exponent - exponent))
    of_averages = one.units * other.units * (1 << (one.exponent + other.exponent - exponent))
    values = np.where(counts == 1, 0.0, _doubles(of_products - of_averages, exponent, counts))
    first, second = (np.abs(_doubles(each.units, each.exponent)) for each in (one, other))
    error = products.error + (first * other.error + second * one.error + one.error * other.error) / counts
    is_near = (counts == 1) | (error <= TOLERANCE * np.abs(values))
    return Retracted(values, ~(one.is_known & other.is_known & products.is_known) | ~is_near)


def _doubles(units: Integers, exponent: int, divisors: Digits | None = None) -> Doubles:
    """Numbers in units of 2^exponent, divided by others: the nearest doubles."""
    ones = np.ones(len(units), np.int64) if divisors is None else divisors
    above, below = max(exponent, 0), max(-exponent, 0)
    numbers: Integers = units * (1 << above) / (ones.astype(object) * (1 << below))
    return np.asarray(numbers, np.float64)


def retracted(
    attributes: Sequence[str], sums: Mapping[str, Sum], counts: Digits, subtracted: Doubles | None = None
) -> tuple[list[Doubles], Flags]:
    """The buffer of a function in each group, and whether the group is lost.

    Args:
        attributes: the names of the values of the buffer, as Spark's functions have them.
        sums: `x`, `y`, `xx`, `yy` and `xy`, as far as the buffer needs them.
        counts: the number of values of each group, one at least.
        subtracted: see `rounded_sum`; for a buffer with a sum.
    """
    values, is_lost = list[Doubles](), np.zeros(len(counts), np.bool_)
    moments = {
        name: central_moment(sums[name[0]], sums[name[1]], products, counts)
        for name, products in sums.items()
        if len(name) > 1
    }
    for name in attributes:
        match name:
            case "n" | "count":
                found = Retracted(counts.astype(np.float64), is_lost)
            case "sum":
                assert subtracted is not None, "a buffer with a sum"
                found = rounded_sum(sums["x"], subtracted)
            case "avg" | "xAvg" | "yAvg":
                of = "y" if name == "yAvg" else "x"
                # A covariance has no sums of squares.
                spread = moments[of + of].values if of + of in moments else np.zeros(len(counts))
                found = mean(sums[of], counts, spread)
            case "m2" | "xMk":
                found = moments["xx"]
            case "yMk":
                found = moments["yy"]
            case "ck":
                found = moments["xy"]
            case _:
                raise ValueError(f"invalid value of a buffer: {name}")
        values.append(found.values)
        is_lost = is_lost | found.is_lost
    return values, is_lost
