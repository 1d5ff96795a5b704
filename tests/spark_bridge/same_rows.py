"""Comparison of two results, up to differences that the promises allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.spark_bridge.random_calls import Comparison

_RELATIVE = 1e-9
# Values are below 1,000 and groups have some hundred rows; an exact zero may come out as a rounding error.
_ABSOLUTE = 1e-6
# Six standard errors of the smallest sketch, and the error of rounding to whole numbers.
_SKETCH_RELATIVE, _SKETCH_ABSOLUTE = 6 * 0.0163, 1.0


def difference(ours: pa.Table, sparks: pa.Table, key: Sequence[str], compares: Mapping[str, Comparison]) -> str | None:
    """The first difference, or None.

    Args:
        ours: the rows of a view.
        sparks: Spark's own answer.
        key: columns that identify a row; if empty, rows are compared as a multiset.
        compares: column → comparison of its values; exact by default.
    """
    if ours.schema != sparks.schema:
        return f"schema {ours.schema} instead of {sparks.schema}"
    if ours.num_rows != sparks.num_rows:
        return f"{ours.num_rows} rows instead of {sparks.num_rows}"
    sort_by = key or ours.column_names
    for left, right in zip(_sorted(ours, sort_by), _sorted(sparks, sort_by), strict=True):
        for name in ours.column_names:
            if not _same(left[name], right[name], compares.get(name, Comparison.EXACT)):
                return f"{name} is {left[name]!r} instead of {right[name]!r} in {left}"
    return None


def _sorted(table: pa.Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: [_text(row[name]) for name in columns])


def _same(left: Any, right: Any, compares: Comparison) -> bool:
    if left is None or right is None:
        return left is right
    match compares:
        case Comparison.NEAR:
            return _near(left, right, _RELATIVE, _ABSOLUTE)
        case Comparison.COUNTED:
            return _near(left, right, _SKETCH_RELATIVE, _SKETCH_ABSOLUTE)
        case Comparison.LIST | Comparison.SET:
            return sorted(map(_text, left)) == sorted(map(_text, right))
        case Comparison.EXACT:
            return _text(left) == _text(right)


def _near(left: float, right: float, relative: float, absolute: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=relative, abs_tol=absolute)


def _text(value: Any) -> str:
    """A text that is equal for equal values, for all NaNs, and for both zeros."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(map(_text, value.values()))}}}"
    return repr(value)
