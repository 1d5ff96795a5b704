"""Two tables row by row, in any order: what one has and the other has not, and which values differ.

A row is told apart by the view's key; without one, rows are compared as a multiset.  Values are compared exactly, with
two exceptions in aggregate views: floating columns, whose sums depend on the order of their terms in the last digits,
and arrays where values are collected, since rows have no order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from state.tables.group_key import group_keys

TOLERANCE = 1e-9
"""Relative, and absolute for what should be zero."""

_WEIGHT = "__sw_weight"
_SUM = f"{_WEIGHT}_sum"
_EXAMPLES = 5


@dataclass(frozen=True)
class RowDifference:
    """One row; `view` or `expected` is None on the side that does not have it."""

    view: Mapping[str, Any] | None
    expected: Mapping[str, Any] | None


@dataclass(frozen=True)
class Differences:
    """How many rows differ, and the first of each kind.

    Args:
        missing: rows that the view should have.
        extra: rows that it should not have.
        changed: rows of one key with other values.
        examples: some of each kind, whole rows.
    """

    missing: int
    extra: int
    changed: int
    examples: tuple[RowDifference, ...]


def differences(
    view: pa.Table, expected: pa.Table, *, key: Sequence[str], is_aggregate: bool, collects: bool = False
) -> Differences | None:
    """What differs between a view and what it should be; None when nothing does.

    Args:
        view: its rows.
        expected: the rows that it should have, with the same schema.
        key: the columns that tell its rows apart, in an aggregate view that has them.
        is_aggregate: whether floating columns that are no key may differ in their last digits.
        collects: whether arrays may differ in the order of their elements.
    """
    extra, missing = _unmatched(_comparable(view, collects), _comparable(expected, collects))
    if not is_aggregate:
        return _found(extra, missing, extra.slice(0, 0), missing.slice(0, 0))
    if not key:
        return _found(*_without_near_rows(extra, missing), extra.slice(0, 0), missing.slice(0, 0))
    extra_at, missing_at = _pairs(extra, missing, key)
    theirs, ours = missing.take(missing_at), extra.take(extra_at)
    is_changed = pc.invert(_near(ours, theirs))
    return _found(
        _without(extra, extra_at), _without(missing, missing_at), ours.filter(is_changed), theirs.filter(is_changed)
    )


def _found(extra: pa.Table, missing: pa.Table, changed: pa.Table, changed_expected: pa.Table) -> Differences | None:
    if not (extra.num_rows or missing.num_rows or changed.num_rows):
        return None
    pairs = zip(_examples(changed), _examples(changed_expected), strict=True)
    return Differences(
        missing=pc.sum(missing[_SUM]).as_py() or 0,
        extra=pc.sum(extra[_SUM]).as_py() or 0,
        changed=changed.num_rows,
        examples=(
            *(RowDifference(ours, theirs) for ours, theirs in pairs),
            *(RowDifference(None, row) for row in _examples(missing)),
            *(RowDifference(row, None) for row in _examples(extra)),
        ),
    )


def _examples(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.slice(0, _EXAMPLES).drop_columns([_SUM]).to_pylist()
    return found


def _comparable(table: pa.Table, collects: bool) -> pa.Table:
    """Columns that can be grouped by: one zero, one NaN, and nested values as text."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if pa.types.is_nested(field.type):
            in_any_order = collects and pa.types.is_list(field.type)
            texts = [None if value is None else _text(value, in_any_order) for value in column.to_pylist()]
            table = table.set_column(index, field.name, pa.chunked_array([pa.array(texts, pa.string())]))
        elif pa.types.is_floating(field.type):
            positive_zero = pc.add(column, pa.scalar(0, field.type))
            nan = pa.scalar(math.nan, field.type)
            table = table.set_column(index, field.name, pc.if_else(pc.is_nan(column), nan, positive_zero))
    return table


def _text(value: Any, in_any_order: bool) -> str:
    return repr(sorted(map(repr, value)) if in_any_order else value)


def _unmatched(view: pa.Table, expected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that only the view has, and those that only the other has, each with how many of them are too many."""
    names = view.column_names
    sides = [
        side.append_column(_WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), side.num_rows))
        for side, weight in ((view, 1), (expected, -1))
    ]
    weights = pa.concat_tables(sides).group_by(names).aggregate([(_WEIGHT, "sum")]).select([*names, _SUM])
    extra = weights.filter(pc.greater(weights[_SUM], 0))
    missing = weights.filter(pc.less(weights[_SUM], 0))
    return extra, missing.set_column(len(names), _SUM, pc.negate(missing[_SUM]))


def _pairs(extra: pa.Table, missing: pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """The positions of rows with the same key on both sides; a key that is there twice on one side pairs nothing."""
    ours, theirs = (group_keys([side[name] for name in key]) for side in (extra, missing))
    once = _once(ours, theirs)
    at = pc.index_in(ours, value_set=theirs)
    # A row that is there twice is one too many, whatever its values.
    alone = pc.and_(pc.equal(extra[_SUM], 1), pc.equal(missing[_SUM].take(at), 1))
    paired = pc.and_(alone, pc.is_in(ours, value_set=once)).combine_chunks()
    paired = pc.fill_null(paired, False)
    positions = pa.array(range(len(ours)), pa.int64())
    return positions.filter(paired), at.filter(paired)


def _once(*sides: pa.Array) -> pa.Array:
    """The keys that no side has twice."""
    twice = [
        counted.field("values").filter(pc.greater(counted.field("counts"), 1))
        for counted in map(pc.value_counts, sides)
    ]
    every = pa.concat_arrays(sides).unique()
    return every.filter(pc.invert(pc.is_in(every, value_set=pa.concat_arrays(twice))))


def _near(ours: pa.Table, theirs: pa.Table) -> pa.ChunkedArray:
    """For each pair of rows whether it is equal but for the last digits of its floating columns."""
    near: Any = pa.scalar(True)
    for field in ours.schema:
        left, right = ours[field.name], theirs[field.name]
        same = pc.fill_null(pc.equal(left, right), False)
        same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
        if pa.types.is_floating(field.type):
            left, right = left.cast(pa.float64()), right.cast(pa.float64())
            larger = pc.max_element_wise(pc.abs(left), pc.abs(right), skip_nulls=False)
            allowed = pc.max_element_wise(pc.multiply(larger, TOLERANCE), TOLERANCE)
            # An infinity is within the tolerance of everything.
            close = pc.and_(pc.is_finite(larger), pc.less_equal(pc.abs(pc.subtract(left, right)), allowed))
            both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
            same = pc.or_(same, pc.fill_null(pc.or_(close, both_nan), False))
        near = pc.and_(near, same)
    return near


def _without_near_rows(extra: pa.Table, missing: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both sides without the rows that have a near one on the other, each row used once."""
    extra, missing = _each_alone(extra), _each_alone(missing)
    floats = [field.name for field in extra.schema if pa.types.is_floating(field.type)]
    candidates: dict[tuple[Any, ...], list[tuple[list[float], int]]] = defaultdict(list)
    for position, row in enumerate(missing.to_pylist()):
        exact, numbers = _split(row, floats)
        candidates[exact].append((numbers, position))
    for rows in candidates.values():
        rows.sort()
    kept, used = [], set()
    for position, row in enumerate(extra.to_pylist()):
        exact, numbers = _split(row, floats)
        found = _take_near(candidates.get(exact, []), numbers)
        if found is None:
            kept.append(position)
        else:
            used.add(found)
    left = [position for position in range(missing.num_rows) if position not in used]
    return extra.take(pa.array(kept, pa.int64())), missing.take(pa.array(left, pa.int64()))


def _each_alone(rows: pa.Table) -> pa.Table:
    """Equal rows beside each other instead of one with their number."""
    positions = [position for position, count in enumerate(rows[_SUM].to_pylist()) for _ in range(count)]
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(positions))
    return rows.take(pa.array(positions, pa.int64())).drop_columns([_SUM]).append_column(_SUM, ones)


def _split(row: Mapping[str, Any], floats: Sequence[str]) -> tuple[tuple[Any, ...], list[float]]:
    """What must be equal, and the finite numbers that must be near."""
    numbers = [row[name] for name in floats if row[name] is not None and math.isfinite(row[name])]
    exact = [(name, str(value)) for name, value in row.items() if name not in floats or _is_special(value)]
    return tuple(exact), numbers


def _is_special(value: float | None) -> bool:
    return value is None or not math.isfinite(value)


def _take_near(rows: list[tuple[list[float], int]], numbers: list[float]) -> int | None:
    """Removes the first row whose numbers are near, and returns its position."""
    if not rows:
        return None
    lowest = numbers[0] - max(abs(numbers[0]) * 2 * TOLERANCE, TOLERANCE) if numbers else 0.0
    for index in range(bisect_left(rows, ([lowest], -1)) if numbers else 0, len(rows)):
        theirs, position = rows[index]
        if all(map(_is_near, numbers, theirs)):
            del rows[index]
            return position
        if numbers and theirs[0] > numbers[0] and not _is_near(numbers[0], theirs[0]):
            return None
    return None


def _is_near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _without(rows: pa.Table, positions: pa.Array) -> pa.Table:
    every = pa.array(range(rows.num_rows), pa.int64())
    return rows.filter(pc.invert(pc.is_in(every, value_set=positions.cast(pa.int64()))))
