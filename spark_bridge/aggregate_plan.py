"""The three plans by which an aggregate view is maintained, made once from its analysed plan.

    partials   Aggregate over the row-by-row part, run on an epoch's new rows: one row per touched group
    state      those rows beside the stored ones (a LocalRelation) -> merged partials
    result     the same -> the query's own expressions over the merged partials, and all that is above its Aggregate

`state` and `result` are projections over a small relation, which Spark evaluates while it optimises, without a job.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.aggregates import aggregate_calls
from spark_bridge.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.catalyst import Catalyst, Expression, Plan, simple_name
from spark_bridge.leaves import Leaves, graft
from spark_bridge.result_columns import aggregate_of, same, unchanged_columns
from spark_bridge.view_plan import ViewPlan
from state.group_key import GLOBAL_KEY, KEY_COLUMN, group_keys

_FOUND_COLUMN = "__sw_found"
_KEY_FIELD = pa.field(KEY_COLUMN, pa.string(), nullable=False)


@dataclass(frozen=True)
class StateColumn:
    """One stored value of a group: a grouping column, or one value of an aggregate function's buffer.

    Args:
        name: under which the partials have it, and the store unless the result has it already.
        result_name: the column of the result that is the same value, if there is one.
        field: as stored.
    """

    name: str
    result_name: str | None
    field: pa.Field


class AggregatePlan:
    """How one aggregate view is maintained.

    Args:
        catalyst: of the session.
        view: the analysed view.
    """

    def __init__(self, catalyst: Catalyst, view: ViewPlan) -> None:
        self._catalyst = catalyst
        self._view = view
        self._aggregate = aggregate_of(view.plan)
        self._calls = aggregate_calls(catalyst, view.name, self._aggregate)
        self._grouping = catalyst.items(self._aggregate.groupingExpressions())
        self.has_filter = _has_filter(view.plan)
        self._partials = self._partials_plan()
        self._partials_schema = pa.schema(
            [field.with_nullable(True) for field in catalyst.arrow_schema(self._partials)]
        )
        self.columns = self._state_columns()
        self._make_merge_plans()

    @property
    def groups_by_nothing(self) -> bool:
        """Whether the view has exactly one row, from its creation on."""
        return not self._grouping

    @property
    def buffer_columns(self) -> list[StateColumn]:
        """The partials, without the grouping."""
        return self.columns[len(self._grouping) :]

    @property
    def no_stored_rows(self) -> pa.Table:
        """What `merge` is given when no group is stored yet."""
        return pa.schema([_KEY_FIELD, *[column.field for column in self.buffer_columns]]).empty_table()

    @property
    def stored_beside(self) -> list[StateColumn]:
        """The columns that stand beside the result in its own rows: those that it does not contain."""
        return [column for column in self.columns if column.result_name is None]

    def partials_of(self, leaves: Leaves, one_partition: bool) -> pa.Table:
        """Runs the one job of an epoch: `__sw_key`, the grouping and the partials of each group among the new rows."""
        child = graft(self._catalyst, self._partials.child(), self._view.leaves, leaves)
        if one_partition:
            child = self._catalyst.one_partition(child)
        frame = self._catalyst.frame(self._catalyst.with_children(self._partials, [child]))
        partials = table_of_frame(frame, self._partials_schema)
        if self.groups_by_nothing:
            keys = pa.array([GLOBAL_KEY], pa.string())
        elif partials.num_rows:
            keys = group_keys([partials.column(index) for index in range(len(self._grouping))])
        else:
            keys = pa.array([], pa.string())
        return partials.add_column(0, _KEY_FIELD, keys)

    def merge(self, partials: pa.Table, stored: pa.Table) -> MergedGroups:
        """The groups of an epoch as they are from now on.

        Args:
            partials: of the new rows, from `partials_of`.
            stored: `__sw_key` and the buffers (under their own names) of those of the groups that are stored.
        """
        position = pc.index_in(partials.column(KEY_COLUMN), value_set=stored.column(KEY_COLUMN))
        arrays = [partials.column(KEY_COLUMN), pc.is_valid(position)]
        arrays += [partials.column(column.name) for column in self.columns]
        arrays += [
            stored.column(column.name).combine_chunks().take(position) for column in self.columns[len(self._grouping) :]
        ]
        relation = frame_of_table(self._catalyst.spark, pa.table(arrays, schema=self._relation_schema))
        leaf = self._catalyst.leaf(self._relation_output, relation)
        result = table_of_frame(self._catalyst.frame(self._with_leaf(self._result, leaf)), self._result_schema)
        if not self.has_filter:
            return MergedGroups(result, None)
        state = table_of_frame(self._catalyst.frame(self._with_leaf(self._state, leaf)), self._state_schema)
        return MergedGroups(result, state)

    # Making the plans

    def _partials_plan(self) -> Plan:
        named = [self._catalyst.alias(each, f"__sw_group_{index}") for index, each in enumerate(self._grouping)]
        for index, call in enumerate(self._calls):
            names = [f"__sw_{index}_{each.name().lower()}" for each in call.buffer]
            named += [self._catalyst.alias(each, name) for each, name in zip(call.partials(), names, strict=True)]
        plan = self._catalyst.aggregate(self._grouping, named, self._aggregate.child())
        return self._catalyst.analyse(plan)

    def _state_columns(self) -> list[StateColumn]:
        """The grouping, then the buffers, as the partials have them."""
        origins = [] if self.has_filter else list(unchanged_columns(self._catalyst, self._view.plan))
        values: list[Expression | None] = list(self._grouping)
        for call in self._calls:
            own = call.value_position()
            values += [call.expression if position == own else None for position in range(len(call.buffer))]
        columns = []
        for field, value in zip(self._partials_schema, values, strict=True):
            name = next((name for name, origin in origins if value is not None and same(origin, value)), None)
            columns.append(StateColumn(field.name, name, field))
        return columns

    def _make_merge_plans(self) -> None:
        catalyst = self._catalyst
        groups = len(self._grouping)
        buffers = self.buffer_columns
        fields = [column.field for column in self.columns]
        fields += [pa.field(f"{column.name}_stored", column.field.type) for column in buffers]
        self._relation_schema = pa.schema(
            [_KEY_FIELD.with_nullable(True), pa.field(_FOUND_COLUMN, pa.bool_()), *fields]
        )
        output = catalyst.attributes(self._relation_schema)
        self._relation_output = catalyst.seq(output)
        self._relation = catalyst.local_relation(self._relation_output)
        key, found, *rest = output
        grouping, new, stored = rest[:groups], rest[groups : groups + len(buffers)], rest[groups + len(buffers) :]

        merged: list[Expression] = []
        for call in self._calls:
            positions = range(len(merged), len(merged) + len(call.buffer))
            left = {index: stored[position] for index, position in enumerate(positions)}
            right = {index: new[position] for index, position in enumerate(positions)}
            for position, together in zip(positions, call.merged(left, right), strict=True):
                value = catalyst.when(found, together, new[position])
                merged.append(catalyst.alias(value, buffers[position].name))
        named_groups = [catalyst.alias(each, self.columns[index].name) for index, each in enumerate(grouping)]
        self._state = catalyst.analyse(catalyst.project([key, *named_groups, *merged], self._relation))
        state_output = catalyst.items(self._state.output())
        self._state_schema = pa.schema([_KEY_FIELD, *[column.field for column in self.columns]])

        carried = [state_output[0]]
        self._result_schema = self._view.schema.append(_KEY_FIELD)
        if not self.has_filter:
            # The result and its state have the same rows, so what is missing in the result travels along with it.
            carried += [
                state_output[1 + index] for index, column in enumerate(self.columns) if column.result_name is None
            ]
            for column in self.stored_beside:
                self._result_schema = self._result_schema.append(column.field)
        self._result = catalyst.analyse(self._result_plan(self._view.plan, state_output[1:], carried))

    def _result_plan(self, plan: Plan, state: list[Expression], carried: list[Expression]) -> Plan:
        """The query's plan from its Aggregate upwards, over the merged partials, with columns carried through."""
        catalyst = self._catalyst
        if simple_name(plan) == "Aggregate":
            values = [self._over_state(each, state) for each in catalyst.items(plan.aggregateExpressions())]
            return catalyst.project([*values, *carried], self._state)
        child = self._result_plan(plan.child(), state, carried)
        if simple_name(plan) == "Project":
            return catalyst.project([*catalyst.items(plan.projectList()), *carried], child)
        return catalyst.with_children(plan, [child])

    def _over_state(self, named: Expression, state: list[Expression]) -> Expression:
        """A named expression of the Aggregate with its grouping and calls replaced, under the same id."""
        groups = len(self._grouping)

        def replace(part: Expression) -> Expression | None:
            for index, grouping in enumerate(self._grouping):
                if same(part, grouping):
                    return state[index]
            start = groups
            for call in self._calls:
                if simple_name(part) == "AggregateExpression" and call.is_call(part):
                    return call.value({index: state[start + index] for index in range(len(call.buffer))})
                start += len(call.buffer)
            return None

        if simple_name(named) == "Alias":
            return self._catalyst.with_children(named, [self._catalyst.rewrite(named.child(), replace)])
        return self._catalyst.alias_as(self._catalyst.rewrite(named, replace), named)

    def _with_leaf(self, plan: Plan, leaf: Plan) -> Plan:
        children = self._catalyst.items(plan.children())
        if not children:
            return leaf
        return self._catalyst.with_children(plan, [self._with_leaf(children[0], leaf)])


@dataclass(frozen=True)
class MergedGroups:
    """What `AggregatePlan.merge` gives.

    Args:
        result: the view's rows with `__sw_key`, and the columns stored beside them; of a view with a filter above its
            grouping, only the rows that pass.
        state: `__sw_key`, grouping and partials of all touched groups when the view has such a filter, else None.
    """

    result: pa.Table
    state: pa.Table | None


def _has_filter(plan: Plan) -> bool:
    while simple_name(plan) != "Aggregate":
        if simple_name(plan) == "Filter":
            return True
        plan = plan.child()
    return False
