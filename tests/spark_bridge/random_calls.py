"""Random calls of aggregate functions, with how their values compare."""

from __future__ import annotations

import random
from dataclasses import dataclass

EXACT, NEAR, LIST, SET, COUNTED = "exact", "near", "list", "set", "counted"
"""Equal; equal but for the last digits; equal as multisets; as sets; a number within the error of a sketch."""

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
    *[(f"count(DISTINCT {values})", EXACT) for values in ("k", "g", "x", "f", "k, g", "day, b", "raw", "w", "1", "at")],
    *[(f"sum(DISTINCT {value})", EXACT) for value in ("g", "i", "p")],
    *[("avg(DISTINCT y)", NEAR), ("avg(DISTINCT p)", EXACT), ("stddev(DISTINCT y)", NEAR)],
    *[("collect_list(DISTINCT k)", SET), ("max(DISTINCT i)", EXACT), ("median(DISTINCT i)", EXACT)],
    *[("count(DISTINCT k) + count(DISTINCT g)", EXACT), ("collect_set(DISTINCT g)", SET)],
]
_FILTERS = ["b", "g = 1", "x > 0", "k IS NOT NULL AND NOT b", "false", "i % 2 = 0"]
_SINGLE = frozenset("()")


@dataclass(frozen=True)
class RandomCall:
    """An expression over aggregate functions.

    Args:
        text: in SQL.
        compares: how its value compares with that of Spark's own.
        truth: what Spark is asked in its place.
    """

    text: str
    compares: str
    truth: str


def random_call(chance: random.Random) -> RandomCall:
    """One of the calls, at times with FILTER."""
    kind = chance.random()
    if kind < 0.4:
        text, compares = chance.choice(_EXACT), EXACT
    elif kind < 0.6:
        text, compares = chance.choice(_NEAR), NEAR
    elif kind < 0.8:
        text, compares = chance.choice(_DISTINCT)
    elif kind < 0.87:
        text, compares = chance.choice(_LISTS), LIST
    elif kind < 0.93:
        text, compares = chance.choice(_SETS), SET
    elif kind < 0.97:
        text, compares = chance.choice(_COUNTED), COUNTED
    else:
        text, compares = chance.choice(_SKETCHES), COUNTED
    if _is_one_call(text) and chance.random() < 0.25:
        text = f"{text} FILTER (WHERE {chance.choice(_FILTERS)})"
    return RandomCall(text, compares, _exactly(text))


def _is_one_call(text: str) -> bool:
    """Whether FILTER may follow."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return at == len(text) - 1 and not text.startswith(("hex(", "size(", "coalesce(", "array_", "hll_", "conc"))
    return False


def _exactly(text: str) -> str:
    """The number that a sketch estimates."""
    if not text.startswith("approx_count_distinct("):
        return text
    value = text.removeprefix("approx_count_distinct(").partition(")")[0].partition(",")[0]
    return f"count(DISTINCT {value})" + text.partition(")")[2]
