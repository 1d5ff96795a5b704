"""The merge of an epoch's groups with the stored ones: merged buffers, and the view's rows.

    state      new and stored buffers of each group -> merged buffers
    result     new and stored buffers of each group -> the query's own expressions over the merged buffers, and all
               operators above its Aggregate

Both are projections over a small relation in the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, simple_name
from spark_bridge.engine.execution.planned_once import TableQuery
from spark_bridge.operators.group.aggregate_calls import AggregateCall
from spark_bridge.plans.columns import aggregate_of, same, unchanged_columns
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.group_key import KEY_COLUMN

_FOUND_COLUMN = "__sw_found"
KEY_FIELD = pa.field(KEY_COLUMN, pa.string(), nullable=False)


@dataclass(frozen=True)
class StateColumn:
    """One stored value of a group: a grouping column, or one value of an aggregate function's buffer.

    Args:
        name: its name in the partials, and in the store unless the result has the value.
        result_name: the column of the result with the same value, if any.
        field: name and type as stored.
    """

    name: str
    result_name: str | None
    field: pa.Field


@dataclass(frozen=True)
class CallBuffer:
    """The buffer of one call of an aggregate function.

    Args:
        part: index of the part of `EpochPartials` that has it.
        fields: its columns in that part.
    """

    call: AggregateCall
    part: int
    fields: Sequence[pa.Field]


@dataclass(frozen=True)
class EpochPartials:
    """The partial aggregates of an epoch's rows.

    Args:
        groups: `__sw_key` and the grouping of each touched group.
        parts: tables of `__sw_key` and the buffers of some calls, for all or some of these groups.
        distinct: `__sw_key` of the new values of DISTINCT calls within their groups; if their rows are counted, of all
            values, each with the number of all its rows; with the end of its window, if that closes.
    """

    groups: pa.Table
    parts: Sequence[pa.Table]
    distinct: pa.Table


@dataclass(frozen=True)
class MergedGroups:
    """The touched groups after a merge.

    Args:
        result: the view's rows with `__sw_key` and the columns stored beside them; if a filter stands above the
            grouping, only the rows that pass.
        state: `__sw_key`, grouping and buffers of all touched groups if they are stored separately, else None.
    """

    result: pa.Table
    state: pa.Table | None

    def __add__(self, others: MergedGroups) -> MergedGroups:
        """Both, of other groups."""
        result = pa.concat_tables([self.result, others.result])
        if self.state is None or others.state is None:
            return MergedGroups(result, None)
        return MergedGroups(result, pa.concat_tables([self.state, others.state]))


class MergePlan:
    """Merges the buffers of new rows into the stored ones.

    Buffers are stored in the rows of the result.  They are stored separately if the result has other rows, because of a
    filter above the aggregation or of open windows, or if they are objects, which other programs that read the view
    cannot use.

    Attributes:
        columns: the stored values of a group: the grouping, then the buffers.
        buffers: the buffer of each call, in the order of the calls.

    Args:
        view: the plan of the view.
        grouping: the columns of the grouping in the partials.
        parts: number of parts of an epoch's partials.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: ViewPlan,
        grouping: Sequence[pa.Field],
        buffers: Sequence[CallBuffer],
        parts: int,
    ) -> None:
        self._catalyst = catalyst
        self._view = view
        self.grouping = grouping
        self._grouping = catalyst.trees.items(aggregate_of(view.plan).groupingExpressions())
        self.buffers = buffers
        self._parts = parts
        self.has_filter = _has_filter(view.plan)
        self._has_state = (
            self.has_filter or view.closing is not None or any(each.call.buffer.is_opaque for each in buffers)
        )
        self.columns = self._state_columns([*grouping, *(field for each in buffers for field in each.fields)])
        self._make_plans()

    @property
    def buffer_columns(self) -> list[StateColumn]:
        """The buffers, without the grouping."""
        return self.columns[len(self._grouping) :]

    def merge(self, partials: EpochPartials, stored: pa.Table | None) -> MergedGroups:
        """Merges the touched groups.

        Args:
            stored: `__sw_key` and the buffers, under their own names, of the groups that are stored; None for none.
        """
        keys = partials.groups.column(KEY_COLUMN)
        if stored is None:
            stored = pa.schema([KEY_FIELD, *[column.field for column in self.buffer_columns]]).empty_table()
        at_stored = _positions(keys, stored)
        at_part = [_positions(keys, part) for part in partials.parts]
        arrays = [keys, at_stored.is_valid(), *[each.is_valid() for each in at_part], *partials.groups.columns[1:]]
        for each in self.buffers:
            part = partials.parts[each.part]
            arrays += [part.column(field.name).combine_chunks().take(at_part[each.part]) for field in each.fields]
        arrays += [stored.column(column.name).combine_chunks().take(at_stored) for column in self.buffer_columns]
        rows = pa.table(arrays, schema=self._relation_schema)
        result = self._result.table(rows, self._result_schema)
        return MergedGroups(result, None if self._state is None else self._state.table(rows, self._state_schema))

    @property
    def _state_schema(self) -> pa.Schema:
        return pa.schema([KEY_FIELD, *[column.field for column in self.columns]])

    # Making the plans

    def _state_columns(self, fields: Sequence[pa.Field]) -> list[StateColumn]:
        """The grouping, then the buffers, in the order of the partials."""
        origins = [] if self._has_state else list(unchanged_columns(self._catalyst.trees, self._view.plan))
        values: list[Expression | None] = list(self._grouping)
        for each in self.buffers:
            own = each.call.buffer.value_position()
            values += [each.call.expression if position == own else None for position in range(len(each.fields))]
        columns = []
        for field, value in zip(fields, values, strict=True):
            name = next((name for name, origin in origins if value is not None and same(origin, value)), None)
            columns.append(StateColumn(field.name, name, field))
        return columns

    def _make_plans(self) -> None:
        catalyst = self._catalyst
        groups, buffers = len(self._grouping), self.buffer_columns
        flags = [_FOUND_COLUMN, *[f"{_FOUND_COLUMN}_{part}" for part in range(self._parts)]]
        fields = [column.field for column in self.columns]
        fields += [pa.field(f"{column.name}_stored", column.field.type) for column in buffers]
        self._relation_schema = pa.schema(
            [KEY_FIELD.with_nullable(True), *[pa.field(flag, pa.bool_()) for flag in flags], *fields]
        )
        output = catalyst.schemas.attributes(self._relation_schema)
        relation = catalyst.rows.local_relation(catalyst.scala.seq(output))
        key, found, *rest = output
        in_part, rest = rest[: self._parts], rest[self._parts :]
        new, stored = rest[groups : groups + len(buffers)], rest[groups + len(buffers) :]

        merged: list[Expression] = []
        for each in self.buffers:
            here = slice(len(merged), len(merged) + len(each.fields))
            together = each.call.buffer.merged(stored[here], new[here])
            initial = each.call.buffer.initial()
            for field, *values in zip(each.fields, together, new[here], stored[here], initial, strict=True):
                with_new = catalyst.expressions.when(found, values[0], values[1])
                without = catalyst.expressions.when(found, values[2], values[3])
                merged.append(
                    catalyst.expressions.alias(
                        catalyst.expressions.when(in_part[each.part], with_new, without), field.name
                    )
                )
        named_groups = [
            catalyst.expressions.alias(each, self.columns[index].name) for index, each in enumerate(rest[:groups])
        ]
        state = catalyst.queries.analyse(catalyst.plans.project([key, *named_groups, *merged], relation))
        state_output = catalyst.trees.items(state.output())

        carried = [state_output[0]]
        result_schema = self._view.schema.append(KEY_FIELD)
        if not self._has_state:
            # The result and its state have the same rows, so the result carries the columns that it lacks.
            for column, value in zip(self.columns, state_output[1:], strict=True):
                if column.result_name is None:
                    carried.append(value)
                    result_schema = result_schema.append(column.field)
        result = catalyst.queries.analyse(self._result_plan(self._view.plan, state, state_output[1:], carried))
        self._result, self._result_schema = TableQuery(catalyst, result), result_schema
        self._state: TableQuery | None = None
        if self._has_state:
            self._state = TableQuery(catalyst, state)

    def _result_plan(self, plan: Plan, merged: Plan, state: list[Expression], carried: list[Expression]) -> Plan:
        """The query's plan from its Aggregate upwards, over the merged buffers, with the carried columns added."""
        catalyst = self._catalyst
        if simple_name(plan) == "Aggregate":
            values = [self._over_state(each, state) for each in catalyst.trees.items(plan.aggregateExpressions())]
            return catalyst.plans.project([*values, *carried], merged)
        child = self._result_plan(plan.child(), merged, state, carried)
        if simple_name(plan) == "Project":
            return catalyst.plans.project([*catalyst.trees.items(plan.projectList()), *carried], child)
        return catalyst.trees.with_children(plan, [child])

    def _over_state(self, named: Expression, state: list[Expression]) -> Expression:
        """A named expression of the Aggregate, with its grouping and calls replaced, under the same id."""
        groups = len(self._grouping)

        def replace(part: Expression) -> Expression | None:
            for index, grouping in enumerate(self._grouping):
                if same(part, grouping):
                    return state[index]
            if simple_name(part) != "AggregateExpression":
                return None
            start = groups
            for each in self.buffers:
                end = start + len(each.fields)
                if each.call.is_call(part):
                    return each.call.buffer.value(state[start:end])
                start = end
            return None

        if simple_name(named) == "Alias":
            return self._catalyst.trees.with_children(named, [self._catalyst.trees.rewrite(named.child(), replace)])
        return self._catalyst.expressions.alias_as(self._catalyst.trees.rewrite(named, replace), named)


def _positions(keys: pa.ChunkedArray, table: pa.Table) -> pa.Array:
    """For each key the position of its row in a table, or null."""
    at = pc.index_in(keys, value_set=table.column(KEY_COLUMN))
    return at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at


def _has_filter(plan: Plan) -> bool:
    while simple_name(plan) != "Aggregate":
        if simple_name(plan) == "Filter":
            return True
        plan = plan.child()
    return False
