"""Which aggregate functions can be maintained, and what to say about the others.

    declarative   a buffer of a few values that Spark merges by expressions: count, sum, min_by, corr, bit_and, ...
    typed         a buffer that is an object, and bytes where it is stored: lists, sets, percentiles, sketches

`approx_count_distinct` has a buffer of neither kind.  It becomes an HLL sketch of the values' hashes: Flajolet, Fusy,
Gandouet and Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

from spark_bridge.analysis.operators import refuse
from spark_bridge.catalyst.catalyst import Catalyst, Expression, simple_name

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
_ONE_OF_SEVERAL = "which row's value it is depends on an order that rows do not have; use min_by or max_by"
_ADVICE = {
    "First": _ONE_OF_SEVERAL,
    "Last": _ONE_OF_SEVERAL,
    "AnyValue": _ONE_OF_SEVERAL,
    "Mode": "which of several most frequent values it is depends on the order of rows; group by the value too, and "
    "take max_by(value, n) when reading",
    "HistogramNumeric": "its bins depend on the order of rows; use percentile_approx",
    "PythonUDAF": "Python functions over groups have nothing to merge; use Spark's own aggregate functions",
    "ScalaAggregator": "what a user's function over groups merges is not known; use Spark's own aggregate functions",
}
_SUPPORTED = (
    "use count, sum, avg, min, max, min_by, max_by, variances, correlations, bit operations, collect_list, "
    "collect_set, percentiles or sketches"
)
_SMALLEST_LG_K, _LARGEST_LG_K = 12, 21


@dataclass(frozen=True)
class MaintainedFunction:
    """The function that is maintained in place of the one that was called.

    Args:
        function: Spark's AggregateFunction.
        is_typed: whether its buffer is an object.
        estimates: whether the value is the estimate of the sketch that the function gives.
    """

    function: Expression
    is_typed: bool
    estimates: bool = False


def maintained_function(catalyst: Catalyst, view: str, function: Expression) -> MaintainedFunction:
    """What is maintained for a function; those that Spark only knows as another one become that one.

    Raises:
        NotIncrementalError: the function cannot be maintained.
    """
    called = function
    while catalyst.is_instance(function, "catalyst.expressions.RuntimeReplaceable"):
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
    """The sketch whose estimate is at least as good as what was asked for."""
    wanted = float(function.relativeSD())
    lg_k = next((each for each in range(_SMALLEST_LG_K, _LARGEST_LG_K + 1) if error_of(each) <= wanted), None)
    if lg_k is None:
        raise refuse(
            view,
            f"approx_count_distinct with an error of {wanted:g}",
            f"the smallest is {error_of(_LARGEST_LG_K):.2g}; use count(DISTINCT ...)",
        )
    value = catalyst.normalised(function.child())
    hashed = F.when(catalyst.column(value).isNotNull(), F.xxhash64(catalyst.column(value)))
    return catalyst.expressions.aggregate.HllSketchAgg(
        catalyst.expression(hashed), catalyst.expression(F.lit(lg_k)), 0, 0
    )


def _name(function: Expression) -> str:
    return str(function.name() if simple_name(function) == "PythonUDAF" else function.prettyName())
