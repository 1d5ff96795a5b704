"""The retraction of rows from sums, averages and moments of doubles, by stored sums of digits.

A view whose rows can leave stores hidden sums for such a call: of the digits of its values and of their products, and
the magnitude of the values (see `exact_sums`).  A retraction subtracts the sums of digits, and makes the function's own
buffer of them; the next rows are merged into this buffer by the function's own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, simple_name
from spark_bridge.operators.group import exact_sums
from spark_bridge.operators.group.exact_sums import DIGIT_BITS, Digits, Doubles, FixedPoint, Flags, Sum

_SUMS = frozenset({"Sum", "Average"})
_MOMENTS = frozenset({"StddevPop", "StddevSamp", "VariancePop", "VarianceSamp", "RegrReplacement"})
_COVARIANCES = frozenset({"CovPopulation", "CovSample", "RegrSXY"})
_CORRELATIONS = frozenset({"Corr", "RegrR2"})
_SLOPES = frozenset({"RegrSlope"})
RETRACTABLE = _SUMS | _MOMENTS | _COVARIANCES | _CORRELATIONS | _SLOPES
"""Functions over doubles whose buffers can be made of sums.  The intercept of a regression is a difference that may
cancel, and the third and fourth moments of skewness and kurtosis need more digits."""

_INTEGERS = frozenset({"ByteType$", "ShortType$", "IntegerType$", "LongType$"})


@dataclass(frozen=True)
class Term:
    """The sum of one kind of values.

    Args:
        digits: calls that sum its digits.
        factors: the names of the values that it is made of, one or two.
    """

    layout: FixedPoint
    digits: Sequence[Expression]
    factors: str


@dataclass(frozen=True)
class Terms:
    """The helper aggregates of one call.

    Args:
        count: the call that counts its values; None if its own buffer has their number.
        terms: `x`, `y`, `xx`, `yy` and `xy`, as far as it needs them.
        magnitudes: `x` and `y` → the call that sums the magnitudes of these values.
    """

    count: Expression | None
    terms: Mapping[str, Term]
    magnitudes: Mapping[str, Expression]

    @property
    def helpers(self) -> list[Expression]:
        """The calls for its digits and magnitudes."""
        return [*(each for term in self.terms.values() for each in term.digits), *self.magnitudes.values()]


def terms_of(catalyst: Catalyst, function: Expression, condition: Expression | None) -> Terms:
    """The helper aggregates of a call.

    Args:
        function: one of `RETRACTABLE`, over doubles.
        condition: of FILTER, if any.
    """
    return _TermsOf(catalyst, condition).of(function)


class _TermsOf:
    """Makes the helper aggregates over rows with a condition."""

    def __init__(self, catalyst: Catalyst, condition: Expression | None) -> None:
        self._catalyst, self._condition = catalyst, condition
        self._expressions, self._classes = catalyst.expressions, catalyst.expressions.classes

    def of(self, function: Expression) -> Terms:
        kind, children = simple_name(function), self._catalyst.trees.items(function.children())
        names = self._names(kind)
        children = children[::-1] if kind in _SLOPES else children
        values = {name: self._double(child) for name, child in zip("xy", children, strict=False)}
        whole = {name: _is_whole(child) for name, child in zip("xy", children, strict=False)}
        if len(values) > 1:
            # Functions over pairs ignore a row in which one of the values is null.
            x, y = values["x"], values["y"]
            values = {"x": self._with(x, y), "y": self._with(y, x)}
        terms = {}
        for name in names:
            value = values[name[0]] if len(name) == 1 else self._product(*(values[each] for each in name))
            layout = _layout(name, is_whole=all(whole[each] for each in name))
            terms[name] = Term(layout, [self._sum(each) for each in self._digits(value, layout)], name)
        functions = self._catalyst.functions
        count = functions.count(children[0], self._condition) if kind == "Sum" else None
        return Terms(count, terms, {name: self._sum(self._magnitude(each)) for name, each in values.items()})

    @staticmethod
    def _names(kind: str) -> Sequence[str]:
        if kind in _SUMS:
            return ("x",)
        if kind in _MOMENTS:
            return ("x", "xx")
        if kind in _COVARIANCES:
            return ("x", "y", "xy")
        return ("x", "y", "xx", "xy") if kind in _SLOPES else ("x", "y", "xx", "yy", "xy")

    def _digits(self, value: Expression, layout: FixedPoint) -> list[Expression]:
        """The digits of a value: its sum in units of the first digit, rounded; then the rest in units of the next."""
        digits = []
        rest = self._product(value, self._number(2.0 ** -layout.exponents[0]))
        for number in range(len(layout.exponents)):
            if number:
                rest = self._product(rest, self._number(2.0**DIGIT_BITS))
            digit = self._classes.Rint(rest)
            # The cast of NaN and of a value that does not fit is an arbitrary number, and the same number for a delete.
            digits.append(self._expressions.cast(digit, self._expressions.long_type))
            rest = self._classes.Subtract(rest, digit, self._expressions.legacy_mode)
        return digits

    def _magnitude(self, value: Expression) -> Expression:
        absolute = self._classes.Abs(value, False)
        more = self._classes.Add(absolute, self._number(1.0), self._expressions.legacy_mode)
        return self._product(absolute, more)

    def _product(self, one: Expression, other: Expression) -> Expression:
        return self._classes.Multiply(one, other, self._expressions.legacy_mode)

    def _with(self, value: Expression, other: Expression) -> Expression:
        """The value; null if the other value is null."""
        nothing = self._expressions.null(self._expressions.double_type)
        return self._expressions.when(self._classes.IsNotNull(other), value, nothing)

    def _double(self, value: Expression) -> Expression:
        is_double = simple_name(value.dataType()) == "DoubleType$"
        return value if is_double else self._expressions.cast(value, self._expressions.double_type)

    def _number(self, value: float) -> Expression:
        return self._classes.Literal(value, self._expressions.double_type)

    def _sum(self, value: Expression) -> Expression:
        """A sum that does not fail: of integers it is modulo 2^64."""
        function = self._classes.aggregate.Sum(value, self._expressions.legacy_mode)
        return function.toAggregateExpression(False, self._catalyst.scala.option(self._condition))


def _is_whole(value: Expression) -> bool:
    """True if a double is a cast integer."""
    return simple_name(value) == "Cast" and simple_name(value.child().dataType()) in _INTEGERS


def _layout(name: str, *, is_whole: bool) -> FixedPoint:
    if len(name) == 1:
        return exact_sums.WHOLE_VALUES if is_whole else exact_sums.VALUES
    return exact_sums.WHOLE_PRODUCTS if is_whole else exact_sums.PRODUCTS


@dataclass(frozen=True)
class RetractedCall:
    """A call of a function over doubles, and where its helper aggregates are.

    Args:
        columns: the columns of its own buffer.
        attributes: Spark's names of the values of the buffer.
        count: the column with the number of its values.
        terms: name → the layout, the columns of the digits, and the names of the factors.
        magnitudes: name of a value → the column of its magnitude.
        is_null_at_end: whether the buffer of no values is null, and not zeros.
    """

    columns: Sequence[str]
    attributes: Sequence[str]
    count: str
    terms: Mapping[str, tuple[FixedPoint, Sequence[str]]]
    magnitudes: Mapping[str, str]
    is_null_at_end: bool

    def retract(self, stored: pa.Table, gone: Mapping[str, pa.Array]) -> tuple[dict[str, pa.Array], Flags]:
        """The buffer and the helper aggregates without deleted rows, and whether the group must be computed again.

        Args:
            stored: the stored groups.
            gone: column → the partial of the deleted rows of each group; null without one.
        """
        leaving = _integers(gone[self.count])
        counts = _integers(stored.column(self.count)) - leaving
        some = np.maximum(counts, 1)
        magnitudes = {name: _doubles(stored.column(column)) for name, column in self.magnitudes.items()}
        sums, helpers = dict[str, Sum](), dict[str, Digits | Doubles]()
        for name, (layout, columns) in self.terms.items():
            digits = [exact_sums.remaining(_integers(stored.column(each)), _integers(gone[each])) for each in columns]
            helpers |= zip(columns, digits, strict=True)
            sums[name] = (
                exact_sums.sum_of_values(layout, digits, some, magnitudes[name])
                if len(name) == 1
                else exact_sums.sum_of_products(layout, digits, some, (magnitudes[name[0]], magnitudes[name[1]]))
            )
        helpers |= {self.magnitudes[name]: each for name, each in magnitudes.items()}
        subtracted = None
        if "sum" in self.attributes:
            own = self.columns[self.attributes.index("sum")]
            with np.errstate(invalid="ignore"):
                subtracted = _doubles(stored.column(own)) - _doubles(gone[own])
        values, is_lost = exact_sums.retracted(self.attributes, sums, some, subtracted)

        def changed(name: str, value: Digits | Doubles, *, is_null_at_end: bool) -> pa.Array:
            before = stored.column(name).combine_chunks()
            ended = pa.scalar(None if is_null_at_end else 0, before.type)
            left = pa.array(value).cast(before.type, safe=False)
            return pc.if_else(pa.array(leaving == 0), before, pc.if_else(pa.array(counts == 0), ended, left))

        after = {name: changed(name, each, is_null_at_end=True) for name, each in helpers.items()}
        for name, value in zip(self.columns, values, strict=True):
            after[name] = changed(name, value, is_null_at_end=self.is_null_at_end)
        # A version without these helper aggregates may have written the group.
        is_lost |= np.logical_or.reduce([np.asarray(stored.column(name).is_null()) for name in helpers])
        return after, (leaving > 0) & ((counts < 0) | ((counts > 0) & is_lost))


def _integers(column: pa.Array | pa.ChunkedArray) -> Digits:
    return np.asarray(pc.fill_null(column, 0).cast(pa.int64()))


def _doubles(column: pa.Array | pa.ChunkedArray) -> Doubles:
    return np.asarray(pc.fill_null(column, 0.0))
