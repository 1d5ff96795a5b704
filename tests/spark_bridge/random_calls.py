"""Random calls of aggregate functions, each with the comparison of its values."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Comparison(Enum):
    """The meaning of "the same value" for a call."""

    EXACT = "equal"
    NEAR = "equal up to the last digits"
    LIST = "equal as multisets"
    SET = "equal as sets"
    COUNTED = "equal up to the error of a sketch"


_EXACT = [
    *["count(*)", "count(x)", "count(k, g)", "count(1)", "sum(i)", "sum(g)", "sum(p)", "sum(w)", "sum(big)", "avg(p)"],
    *["avg(w)", "try_sum(big)", "try_sum(w)", "try_avg(p)", "min(x)", "max(x)", "min(k)", "max(k)", "min(day)"],
    *["max(at)", "min(raw)", "max(b)", "min(w)", "max(f)", "min(array(g, i))", "max(struct(g, k))"],
    *["min_by(k, id)", "max_by(x, id)", "max_by(tags, id)", "min_by(struct(k, g), struct(y, id))", "max_by(w, id)"],
    *["bool_and(b)", "every(i > 0)", "bool_or(b)", "some(g = 1)", "any(x > 1)", "count_if(b)", "count_if(x > 0)"],
    *["bit_and(i)", "bit_or(g)", "bit_xor(big)", "regr_count(y, i)", "percentile(y, 0.5)", "median(i)"],
    *["percentile(i, array(0.0, 0.25, 1.0))", "percentile(i, 0.5, abs(g))", "percentile_approx(i, 0.5)"],
    *["approx_percentile(y, array(0.2, 0.8), 1000)", "percentile_disc(0.4) WITHIN GROUP (ORDER BY y)"],
    *["percentile_cont(0.4) WITHIN GROUP (ORDER BY i DESC)", "hex(count_min_sketch(i, 0.1d, 0.9d, 7))"],
    *["max(i) - min(i)", "count(*) * 2 + coalesce(sum(g), 0)", "size(collect_list(k))", "coalesce(max(k), 'none')"],
    *["CASE WHEN count(*) > 3 THEN max(g) ELSE -1 END", "array_max(collect_list(i))", "concat('n', count(b))"],
]
_NEAR = [
    *["sum(x)", "avg(x)", "sum(y)", "avg(y)", "avg(i)", "avg(big)", "sum(f)", "avg(f)", "avg(x) * 2 + count(*)"],
    *["var_pop(y)", "var_samp(i)", "stddev(y)", "stddev_pop(p)", "variance(g)", "skewness(y)", "kurtosis(y)"],
    *["covar_pop(y, i)", "covar_samp(y, g)", "corr(y, i)", "regr_avgx(y, i)", "regr_avgy(y, i)", "regr_sxx(y, i)"],
    *["regr_sxy(y, i)", "regr_syy(y, i)", "regr_r2(y, i)", "regr_slope(y, i)", "regr_intercept(y, i)"],
]
_LISTS = ["collect_list(k)", "array_agg(i)", "collect_list(x)", "collect_list(struct(id, k))", "collect_list(tags)"]
_SETS = ["collect_set(k)", "collect_set(g)", "collect_set(i)", "collect_set(day)"]
_COUNTED = ["approx_count_distinct(k)", "approx_count_distinct(x, 0.03)", "approx_count_distinct(id)"]
_SKETCHES = ["hll_sketch_estimate(hll_sketch_agg(i))", "hll_sketch_estimate(hll_sketch_agg(k, 14))"]
_DISTINCT = [
    *[
        (f"count(DISTINCT {values})", Comparison.EXACT)
        for values in ("k", "g", "x", "f", "k, g", "day, b", "raw", "w", "1", "at")
    ],
    *[(f"sum(DISTINCT {value})", Comparison.EXACT) for value in ("g", "i", "p")],
    *[
        ("avg(DISTINCT y)", Comparison.NEAR),
        ("avg(DISTINCT p)", Comparison.EXACT),
        ("stddev(DISTINCT y)", Comparison.NEAR),
    ],
    *[
        ("collect_list(DISTINCT k)", Comparison.SET),
        ("max(DISTINCT i)", Comparison.EXACT),
        ("median(DISTINCT i)", Comparison.EXACT),
    ],
    *[("count(DISTINCT k) + count(DISTINCT g)", Comparison.EXACT), ("collect_set(DISTINCT g)", Comparison.SET)],
]
_FILTERS = ["b", "g = 1", "x > 0", "k IS NOT NULL AND NOT b", "false", "i % 2 = 0"]
_SINGLE = frozenset("()")


@dataclass(frozen=True)
class RandomCall:
    """An expression over aggregate functions.

    Args:
        text: in SQL.
        compares: comparison of its value with Spark's own.
        truth: the expression for Spark's own answer.
    """

    text: str
    compares: Comparison
    truth: str


def random_call(chance: random.Random) -> RandomCall:
    """One of the calls, sometimes with FILTER."""
    kind = chance.random()
    if kind < 0.4:
        text, compares = chance.choice(_EXACT), Comparison.EXACT
    elif kind < 0.6:
        text, compares = chance.choice(_NEAR), Comparison.NEAR
    elif kind < 0.8:
        text, compares = chance.choice(_DISTINCT)
    elif kind < 0.87:
        text, compares = chance.choice(_LISTS), Comparison.LIST
    elif kind < 0.93:
        text, compares = chance.choice(_SETS), Comparison.SET
    elif kind < 0.97:
        text, compares = chance.choice(_COUNTED), Comparison.COUNTED
    else:
        text, compares = chance.choice(_SKETCHES), Comparison.COUNTED
    if _is_one_call(text) and chance.random() < 0.25:
        text = f"{text} FILTER (WHERE {chance.choice(_FILTERS)})"
    return RandomCall(text, compares, _exactly(text))


def _is_one_call(text: str) -> bool:
    """Whether an expression is a single call, which FILTER may follow."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return at == len(text) - 1 and not text.startswith(("hex(", "size(", "coalesce(", "array_", "hll_", "conc"))
    return False


def _exactly(text: str) -> str:
    """The exact expression for a sketch's estimate."""
    if not text.startswith("approx_count_distinct("):
        return text
    value = text.removeprefix("approx_count_distinct(").partition(")")[0].partition(",")[0]
    return f"count(DISTINCT {value})" + text.partition(")")[2]
