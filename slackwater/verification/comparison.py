"""Comparison of two tables in any row order: missing, extra and changed rows.

Rows are matched by the key of the view; without a key they are compared as a multiset.  Values are compared by SQL
equality, see `state.equality`: an engine may return either zero as the least value of both.  There are two
exceptions in aggregate views: floating columns, since the last digits of a sum depend on the order of its
terms, and arrays of collected values, since rows have no order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from state.equality.value_texts import Equality, element_texts, has_far_times, value_texts
from state.tables.group_key import group_keys

TOLERANCE = 1e-9
"""The tolerance for floating columns: relative, and absolute near zero."""

_WEIGHT = "__sw_weight"
_SUM = f"{_WEIGHT}_sum"
_EXAMPLES = 5


@dataclass(frozen=True)
class RowDifference:
    """One row that differs; `view` or `expected` is None on the side without the row."""

    view: Mapping[str, Any] | None
    expected: Mapping[str, Any] | None


@dataclass(frozen=True)
class Differences:
    """The numbers of rows that differ, and examples.

    Args:
        missing: the number of expected rows that the view lacks.
        extra: the number of rows of the view that are not expected.
        changed: the number of keys with other values.
        examples: whole rows, some of each kind.
    """

    missing: int
    extra: int
    changed: int
    examples: tuple[RowDifference, ...]


def differences(
    view: pa.Table, expected: pa.Table, *, key: Sequence[str], is_aggregate: bool, collects: bool = False
) -> Differences | None:
    """The differences between a view and its expected rows; None if they are equal.

    Args:
        view: the rows of the view.
        expected: the expected rows, with the same schema.
        key: the columns that identify a row of an aggregate view; empty without a key.
        is_aggregate: True lets floating columns outside the key differ in their last digits.
        collects: True lets arrays differ in the order of their elements.
    """
    far = {name for name in view.column_names if has_far_times(view[name]) or has_far_times(expected[name])}
    extra, missing = _unmatched(_comparable(view, collects, far), _comparable(expected, collects, far))
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


def _comparable(table: pa.Table, collects: bool, far: Collection[str]) -> pa.Table:
    """The table with columns that can be grouped: one zero, one NaN, and texts of nested values and of far times."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if collects and pa.types.is_list(field.type):
            texts: Any = _unordered_texts(column)
        elif pa.types.is_nested(field.type) or field.name in far:
            texts = value_texts(column, Equality.SQL)
        elif pa.types.is_floating(field.type):
            positive_zero = pc.add(column, pa.scalar(0, field.type))
            nan = pa.scalar(math.nan, field.type)
            table = table.set_column(index, field.name, pc.if_else(pc.is_nan(column), nan, positive_zero))
            continue
        else:
            continue
        texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))
        table = table.set_column(index, field.name, texts)
    return table


def _unordered_texts(column: pa.ChunkedArray) -> pa.Array:
    """The texts of arrays, the same for arrays of equal elements in another order."""
    elements = element_texts(column.combine_chunks(), Equality.SQL).to_pylist()
    return pa.array(["[" + ", ".join(sorted(each)) + "]" for each in elements], pa.string())


def _unmatched(view: pa.Table, expected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The extra rows and the missing rows, each with the number of its surplus copies."""
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
    """The positions of rows with the same key on both sides; a key with two rows on one side has no pair."""
    ours, theirs = (group_keys([side[name] for name in key]) for side in (extra, missing))
    once = _once(ours, theirs)
    at = pc.index_in(ours, value_set=theirs)
    # Two copies of a row are never a pair: one of them is extra or missing.
    alone = pc.and_(pc.equal(extra[_SUM], 1), pc.equal(missing[_SUM].take(at), 1))
    paired = pc.and_(alone, pc.is_in(ours, value_set=once)).combine_chunks()
    paired = pc.fill_null(paired, False)
    positions = pa.array(range(len(ours)), pa.int64())
    return positions.filter(paired), at.filter(paired)


def _once(*sides: pa.Array) -> pa.Array:
    """The keys without a duplicate on either side."""
    twice = [
        counted.field("values").filter(pc.greater(counted.field("counts"), 1))
        for counted in map(pc.value_counts, sides)
    ]
    every = pa.concat_arrays(sides).unique()
    return every.filter(pc.invert(pc.is_in(every, value_set=pa.concat_arrays(twice))))


def _near(ours: pa.Table, theirs: pa.Table) -> pa.ChunkedArray:
    """True for each pair of rows that is equal up to the last digits of its floating columns."""
    near: Any = pa.scalar(True)
    for field in ours.schema:
        left, right = ours[field.name], theirs[field.name]
        same = pc.fill_null(pc.equal(left, right), False)
        same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
        if pa.types.is_floating(field.type):
            left, right = left.cast(pa.float64()), right.cast(pa.float64())
            larger = pc.max_element_wise(pc.abs(left), pc.abs(right), skip_nulls=False)
            allowed = pc.max_element_wise(pc.multiply(larger, TOLERANCE), TOLERANCE)
            # An infinity would be within the tolerance of any value.
            close = pc.and_(pc.is_finite(larger), pc.less_equal(pc.abs(pc.subtract(left, right)), allowed))
            both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
            same = pc.or_(same, pc.fill_null(pc.or_(close, both_nan), False))
        near = pc.and_(near, same)
    return near


def _without_near_rows(extra: pa.Table, missing: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both sides without the rows that have a near row on the other side; each row is used once."""
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
    """The rows with each copy as a row of its own."""
    positions = [position for position, count in enumerate(rows[_SUM].to_pylist()) for _ in range(count)]
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(positions))
    return rows.take(pa.array(positions, pa.int64())).drop_columns([_SUM]).append_column(_SUM, ones)


def _split(row: Mapping[str, Any], floats: Sequence[str]) -> tuple[tuple[Any, ...], list[float]]:
    """The values that must be equal, and the finite numbers that must be near."""
    numbers = [row[name] for name in floats if row[name] is not None and math.isfinite(row[name])]
    exact = [(name, str(value)) for name, value in row.items() if name not in floats or _is_special(value)]
    return tuple(exact), numbers


def _is_special(value: float | None) -> bool:
    return value is None or not math.isfinite(value)


def _take_near(rows: list[tuple[list[float], int]], numbers: list[float]) -> int | None:
    """Removes the first row with near numbers, and returns its position; None without one."""
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
