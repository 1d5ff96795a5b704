"""The aggregate functions that can be maintained, and advice for the others.

    declarative   the buffer is a few values, merged by expressions: count, sum, min_by, corr, bit_and, ...
    typed         the buffer is an object, stored as bytes: lists, sets, percentiles, sketches

The buffer of `approx_count_distinct` is neither.  It becomes an HLL sketch of the values' hashes: Flajolet, Fusy,
Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007).
The columns of a PIVOT become greatest values.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, simple_name
from spark_bridge.plans.operators import refuse

_MOMENTS = frozenset({"StddevPop", "StddevSamp", "VariancePop", "VarianceSamp", "Skewness", "Kurtosis"})
_PAIRS = frozenset({"CovPopulation", "CovSample", "Corr"})
_REGRESSION = frozenset({"RegrR2", "RegrSlope", "RegrIntercept", "RegrSXY", "RegrReplacement"})
_BITS = frozenset({"BitAndAgg", "BitOrAgg", "BitXorAgg"})
_DECLARATIVE = (
    frozenset({"Count", "Sum", "Average", "Min", "Max", "MinBy", "MaxBy", "Product"})
    | _MOMENTS
    | _PAIRS
    | _REGRESSION
    | _BITS
)
_COLLECTIONS = frozenset({"CollectList", "CollectSet"})
_PERCENTILES = frozenset({"ApproximatePercentile", "Percentile", "PercentileDisc"})
_SKETCHES = frozenset({"HllSketchAgg", "HllUnionAgg", "CountMinSketchAgg"})
_TYPED = _COLLECTIONS | _PERCENTILES | _SKETCHES
_ONE_OF_SEVERAL = "its value depends on the order of rows, and rows have no order; use min_by or max_by"
_ADVICE = {
    "First": _ONE_OF_SEVERAL,
    "Last": _ONE_OF_SEVERAL,
    "AnyValue": _ONE_OF_SEVERAL,
    "Mode": "of several most frequent values, its value depends on the order of rows; group by the value too, and take "
    "max_by(value, n) when reading",
    "HistogramNumeric": "its bins depend on the order of rows; use percentile_approx",
    "PivotFirst": "PIVOT looks for floats, to which NaN never equals itself; cast the column to a decimal or a text",
    "PythonUDAF": "Python functions over groups cannot merge buffers; use Spark's own aggregate functions",
    "ScalaAggregator": "the merging of a user's function over groups is not known; use Spark's own aggregate functions",
}
_WITH_NAN = frozenset({"FloatType$", "DoubleType$"})
"""PIVOT looks for values as Java does, to which NaN never equals itself."""
_SUPPORTED = (
    "use count, sum, avg, min, max, min_by, max_by, variances, correlations, bit operations, collect_list, "
    "collect_set, percentiles or sketches"
)
_SMALLEST_LG_K, _LARGEST_LG_K = 12, 21


@dataclass(frozen=True)
class MaintainedFunction:
    """The function that is maintained in place of the called one.

    Args:
        function: Spark's AggregateFunction.
        is_typed: whether its buffer is an object.
        estimates: whether the function gives a sketch, and the value is the estimate of that sketch.
    """

    function: Expression
    is_typed: bool
    estimates: bool = False


def maintained_function(catalyst: Catalyst, view: str, function: Expression) -> MaintainedFunction:
    """The function to maintain.  A function that Spark replaces by another one becomes that one.

    Raises:
        NotIncrementalError: the function cannot be maintained.
    """
    called = function
    while catalyst.trees.is_instance(function, "catalyst.expressions.RuntimeReplaceable"):
        function = function.replacement()
    kind = simple_name(function)
    if kind in _DECLARATIVE:
        return MaintainedFunction(function, is_typed=False)
    if kind in _TYPED:
        return MaintainedFunction(function, is_typed=True)
    if kind == "HyperLogLogPlusPlus":
        return MaintainedFunction(_sketch(catalyst, view, function), is_typed=True, estimates=True)
    raise refuse(
        view,
        f"the aggregate function {_name(called)}",
        _ADVICE.get(simple_name(called), _ADVICE.get(kind, _SUPPORTED)),
    )


def error_of(lg_k: int) -> float:
    """The relative standard error of an HLL sketch with 2 to this power counters."""
    return float(1.04 / 2 ** (lg_k / 2))


def _sketch(catalyst: Catalyst, view: str, function: Expression) -> Expression:
    """The smallest sketch whose error is at most the requested one."""
    wanted = float(function.relativeSD())
    lg_k = next((each for each in range(_SMALLEST_LG_K, _LARGEST_LG_K + 1) if error_of(each) <= wanted), None)
    if lg_k is None:
        raise refuse(
            view,
            f"approx_count_distinct with an error of {wanted:g}",
            f"the smallest is {error_of(_LARGEST_LG_K):.2g}; use count(DISTINCT ...)",
        )
    value = catalyst.expressions.normalised(function.child())
    hashed = F.when(catalyst.queries.column(value).isNotNull(), F.xxhash64(catalyst.queries.column(value)))
    return catalyst.expressions.classes.aggregate.HllSketchAgg(
        catalyst.queries.expression(hashed), catalyst.queries.expression(F.lit(lg_k)), 0, 0
    )


def _name(function: Expression) -> str:
    return str(function.name() if simple_name(function) == "PythonUDAF" else function.prettyName())


def with_plain_pivot(catalyst: Catalyst, aggregate: Plan) -> Plan:
    """An Aggregate whose columns of a PIVOT are calls that are maintained; an equal plan without such columns.

        Aggregate  k                        Aggregate  k
          pivotfirst(g, s, [1, 2])   ──→      array(max(s) FILTER (WHERE g <=> 1), max(s) FILTER (WHERE g <=> 2))
          Aggregate  k, g                     Aggregate  k, g
            sum(i) AS s                         sum(i) AS s

    The lower Aggregate has one row for each k and g, so the greatest value is that of the row.

    Args:
        aggregate: analysed.
    """
    if simple_name(aggregate.child()) != "Aggregate":
        return aggregate

    def plain(column: Expression) -> Expression:
        calls = _calls_of(catalyst, column)
        return column if calls is None else catalyst.expressions.alias_as(calls, column)

    return catalyst.plans.with_expressions(aggregate, plain) or aggregate


def _calls_of(catalyst: Catalyst, column: Expression) -> Expression | None:
    """The calls for a column of a PIVOT; None for another column, or if it looks for floats."""
    if simple_name(column) != "Alias" or simple_name(column.child()) != "AggregateExpression":
        return None
    function = column.child().aggregateFunction()
    return _greatest(catalyst, function) if simple_name(function) == "PivotFirst" else None


def _greatest(catalyst: Catalyst, pivot: Expression) -> Expression | None:
    """The values of a `pivotfirst`, as an array of calls; None if it looks for floats."""
    key, value = pivot.pivotColumn(), pivot.valueColumn()
    if simple_name(key.dataType()) in _WITH_NAN:
        return None
    calls = list[Expression]()
    for wanted in catalyst.expressions.constants(pivot.pivotColumnValues(), key.dataType()):
        condition = catalyst.expressions.classes.EqualNullSafe(key, wanted)
        function = catalyst.expressions.classes.aggregate.Max(value)
        calls.append(function.toAggregateExpression(False, catalyst.scala.option(condition)))
    return catalyst.expressions.classes.CreateArray(catalyst.scala.seq(calls))
