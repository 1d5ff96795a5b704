"""The subtraction of rows that leave: the stored buffers of groups, without those of the rows of corrected files.

    count                                        less
    sum, avg of integers and decimals; bit_xor   less if values remain, else as at the beginning
    min, max                                     as before, if what leaves is above or below it, or if a new row is not
    sum, avg and moments of doubles              by the sums of their digits, see `retraction`; lost beyond the bound
    anything else                                lost: the group is computed again from all of its rows

A buffer does not show whether values remain.  So a view whose rows can leave stores hidden counts: of the rows of a
group, and of the values of a sum.  The average of integers is a sum of doubles, which rounds; beside it stands a hidden
sum of decimals.  A call with DISTINCT is the same over the values that no row of the group has any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, simple_name
from spark_bridge.engine.execution.planned_once import TableQuery
from spark_bridge.operators.group.aggregate_calls import helper_aggregates_of
from spark_bridge.operators.group.merge_plan import CallBuffer, EpochPartials
from spark_bridge.operators.group.retraction import RetractedCall, terms_of
from state.tables.group_key import KEY_COLUMN

_LOST_COLUMN = "__sw_lost"


@dataclass(frozen=True)
class Subtracted:
    """The groups of rows that leave.

    Args:
        left: `__sw_key` and the buffers of those in which rows remain, and that could be subtracted.
        lost: `__sw_key` of those that must be computed again.
    """

    left: pa.Table
    lost: pa.ChunkedArray


class SubtractionPlan:
    """Subtracts the buffers of deleted rows by a projection in the driver, and retracts from doubles by `retraction`.

    Args:
        buffers: the buffers of the calls of the query, and of their helper aggregates.
        has_groups: whether the query has an aggregation, so that a group ends with its last row.
    """

    def __init__(self, catalyst: Catalyst, buffers: Sequence[CallBuffer], has_groups: bool) -> None:
        self._catalyst, self._has_groups = catalyst, has_groups
        by_digits = _retracted_calls(catalyst, buffers)
        parts = 1 + max(each.part for each in buffers)
        self._retracted = [*by_digits.values()]
        self._retracted_columns = [
            (each.part, field.name)
            for number, each in enumerate(buffers)
            if number in by_digits or each.call.removal == "helper" or simple_name(each.call.function) == "Count"
            for field in each.fields
        ]
        buffers = [
            each for number, each in enumerate(buffers) if number not in by_digits and each.call.removal != "helper"
        ]
        self._calls = calls = [each.call for each in buffers]
        fields = [each.fields for each in buffers]
        self._parts = [each.part for each in buffers]
        self._columns = [(each.part, field.name) for each in buffers for field in each.fields]
        key, flat = pa.field(KEY_COLUMN, pa.string()), [field for each in fields for field in each]
        self._names = [field.name for field in flat]
        ends = [each[0] for call, each in zip(calls, fields, strict=True) if call.removal == "kept"]
        self._ends = [(each.part, each.fields[0].name) for each in buffers if each.call.removal == "kept"]
        flags = [pa.field(f"__sw_found_{part}", pa.bool_()) for part in range(1, parts)]
        gone = [field.with_name(f"{field.name}_gone") for field in flat]
        new = [field.with_name(f"{field.name}_new") for field in ends]
        self._relation = pa.schema([key, *[each.with_nullable(True) for each in (*flat, *gone, *new)], *flags])
        output = catalyst.schemas.attributes(self._relation)
        columns = iter(map(catalyst.queries.column, output[1:]))
        self._stored = [[next(columns) for _ in each] for each in fields]
        self._gone = [[next(columns) for _ in each] for each in fields]
        self._new = {field.name: next(columns) for field in ends}
        self._found = [F.lit(True), *columns]
        self._fields = fields
        self._lost: list[Column] = []
        left = [[*map(catalyst.queries.expression, self._left(index))] for index in range(len(calls))]
        self._rows_column = fields[self._position(catalyst.functions.count_of_rows())][0].name
        rows = catalyst.queries.column(left[self._position(catalyst.functions.count_of_rows())][0])
        remain = (rows != 0) if has_groups else F.lit(True)
        lost = catalyst.queries.expression(remain & reduce(Column.__or__, self._lost, rows < 0))
        values = [value for each in left for value in each]
        named = [output[0], *map(catalyst.expressions.alias, [*values, lost], [*self._names, _LOST_COLUMN])]
        plan = catalyst.queries.analyse(
            catalyst.plans.project(named, catalyst.rows.local_relation(catalyst.scala.seq(output)))
        )
        self._schema = pa.schema([key, *flat, pa.field(_LOST_COLUMN, pa.bool_())])
        self._query = TableQuery(catalyst, plan)

    def subtract(self, stored: pa.Table, gone: EpochPartials, new: EpochPartials) -> Subtracted:
        """The groups of rows that leave, without these.

        Args:
            stored: `__sw_key` and the buffers of the stored groups.
            gone: the partials of the rows that leave; the first part has all of their groups.
            new: those of the rows that come; they are not merged.
        """
        keys = gone.groups.column(KEY_COLUMN)
        at = pc.index_in(keys, value_set=stored.column(KEY_COLUMN))
        is_stored = at.is_valid()
        there = stored.take(at.filter(is_stored)).select([KEY_COLUMN, *self._names])
        leaving, found = _columns_of(gone, keys.filter(is_stored), self._columns)
        coming, _ = _columns_of(new, keys.filter(is_stored), self._ends)
        columns = [*there.columns, *leaving, *coming, *found[1:]]
        left = self._query.table(pa.table(columns, names=self._relation.names), self._schema)
        left = self._with_retracted(left, stored.take(at.filter(is_stored)), gone)
        is_lost = left.column(_LOST_COLUMN)
        lost = [*keys.filter(pc.invert(is_stored)).chunks, *left.column(KEY_COLUMN).filter(is_lost).chunks]
        left = left.filter(pc.invert(is_lost)).drop_columns(_LOST_COLUMN)
        if self._has_groups:
            left = left.filter(pc.greater(left.column(self._rows_column), 0))
        return Subtracted(left, pa.chunked_array(lost, keys.type))

    def _with_retracted(self, left: pa.Table, stored: pa.Table, gone: EpochPartials) -> pa.Table:
        """The groups with the buffers of the retracted calls; those beyond the bound of the error are lost, too.

        Args:
            left: the subtracted groups.
            stored: the same groups before, in the same order.
            gone: the partials of the deleted rows.
        """
        if not self._retracted:
            return left
        leaving, _ = _columns_of(gone, stored.column(KEY_COLUMN), self._retracted_columns)
        of_gone = dict(zip([name for _, name in self._retracted_columns], leaving, strict=True))
        is_lost = np.zeros(left.num_rows, np.bool_)
        columns = dict[str, pa.Array]()
        for each in self._retracted:
            changed, lost = each.retract(stored, of_gone)
            columns |= changed
            is_lost |= lost
        remain = pc.not_equal(left.column(self._rows_column), 0) if self._has_groups else True
        lost = pc.or_(left.column(_LOST_COLUMN), pc.and_(pa.array(is_lost), remain))
        left = left.drop_columns(_LOST_COLUMN).append_column(_LOST_COLUMN, lost)
        for name, values in columns.items():
            left = left.append_column(stored.schema.field(name), values)
        return left

    def _left(self, index: int) -> list[Column]:
        """The buffer of a call after the subtraction; of a group without values that leave, as it is."""
        found, stored = self._found[self._parts[index]], self._stored[index]
        left, is_lost = self._subtracted(index)
        self._lost.append(found & is_lost)
        return [F.when(found, each).otherwise(before) for each, before in zip(left, stored, strict=True)]

    def _subtracted(self, index: int) -> tuple[list[Column], Column]:
        """The buffer of a call in a group with values that leave, and whether the group is lost."""
        catalyst, call, stored, gone = self._catalyst, self._calls[index], self._stored[index], self._gone[index]
        kind, initial = simple_name(call.function), [*map(catalyst.queries.column, call.buffer.initial())]
        if kind == "Count":
            return [stored[0] - gone[0]], F.lit(False)
        if call.removal in ("lost", "retracted"):
            return stored, F.lit(True)
        if call.removal == "kept":
            # The smallest value that leaves may be there several times: only a greater one says that it stays.
            new = self._new[self._fields[index][0].name]
            stays, is_passed = (
                (gone[0] > stored[0], new <= stored[0]) if kind == "Min" else (gone[0] < stored[0], new >= stored[0])
            )
            return stored, ~F.coalesce(stays | is_passed, gone[0].isNull())
        helpers = helper_aggregates_of(catalyst, call)
        count = self._left(self._position(helpers[-1]))[0]
        if len(helpers) > 1:
            left = self._left(self._position(helpers[0]))[0].cast("double")
        elif kind == "BitXorAgg":
            left = stored[0].bitwiseXOR(F.coalesce(gone[0], F.lit(0)))
        else:
            left = self._difference(stored[0], gone[0] if len(stored) > 1 else F.coalesce(gone[0], F.lit(0)))
        rest = [count] if kind == "Average" else [count == 0] * (len(stored) - 1)
        return [F.when(count == 0, initial[0]).otherwise(left), *rest], (count > 0) & left.isNull()

    def _difference(self, stored: Column, gone: Column) -> Column:
        """The difference of two sums; null if one of them has overflowed, or the difference does."""
        catalyst = self._catalyst
        expression = catalyst.queries.expression(stored)
        if isinstance(catalyst.schemas.data_type(expression), DecimalType):
            return catalyst.queries.column(
                catalyst.expressions.decimal_difference(expression, catalyst.queries.expression(gone))
            )
        return F.try_subtract(stored, gone)

    def _position(self, expression: Expression) -> int:
        return next(at for at, each in enumerate(self._calls) if each.is_call(expression))


def _retracted_calls(catalyst: Catalyst, buffers: Sequence[CallBuffer]) -> dict[int, RetractedCall]:
    """Number of a call → how rows are retracted from it; without a call whose helper aggregates are not stored."""
    found = {}
    for number, each in enumerate(buffers):
        if each.call.removal == "retracted":
            made = _retracted_call(catalyst, each, buffers)
            if made is not None:
                found[number] = made
    return found


def _retracted_call(catalyst: Catalyst, buffer: CallBuffer, buffers: Sequence[CallBuffer]) -> RetractedCall | None:
    def column_of(expression: Expression, *, is_helper: bool = True) -> str:
        found = (each for each in buffers if each.call.is_helper == is_helper and each.call.is_call(expression))
        return str(next(found).fields[0].name)

    if not any(each.call.is_helper for each in buffers):
        return None
    call = buffer.call
    terms = terms_of(catalyst, call.function, call.filter)
    attributes = [str(each.name()) for each in call.buffer.attributes]
    own = [field.name for field in buffer.fields]
    if terms.count is None:
        count = next(column for column, name in zip(own, attributes, strict=True) if name in ("n", "count"))
    else:
        count = column_of(terms.count, is_helper=False)
    return RetractedCall(
        own,
        attributes,
        count,
        {name: (each.layout, [column_of(digit) for digit in each.digits]) for name, each in terms.terms.items()},
        {name: column_of(each) for name, each in terms.magnitudes.items()},
        is_null_at_end=simple_name(call.function) == "Sum",
    )


def _columns_of(
    partials: EpochPartials, keys: pa.ChunkedArray, columns: Sequence[tuple[int, str]]
) -> tuple[list[pa.ChunkedArray], list[pa.ChunkedArray]]:
    """Columns of the parts for these groups, null where a part lacks the group; and for each part whether it has it.

    Args:
        columns: (part, name) of each.
    """
    at = [pc.index_in(keys, value_set=part.column(KEY_COLUMN)) for part in partials.parts]
    return [partials.parts[part].column(name).take(at[part]) for part, name in columns], [e.is_valid() for e in at]
