"""The maintenance plan of an aggregate view, made once from its analysed plan.

partials   Spark's Partial aggregation over the projections and filters below it, run on an epoch's rows: one row per
touched group distinct   for calls with DISTINCT: the same over values that are new in their group
merge      these rows and the stored ones -> merged buffers, and the result (see `merge_plan`)
subtract   the stored rows without those of rows that leave (see `subtraction_plan`)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from actors.sources.event_time import event_times_us
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.carried_column import with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan
from spark_bridge.engine.execution.leaves import Leaves, RowsOver, rows_over
from spark_bridge.operators.group.aggregate_calls import (
    AggregateCall,
    aggregate_calls,
    call_texts,
    can_be_subtracted,
    with_helper_aggregates,
)
from spark_bridge.operators.group.distinct_set import COUNT_FIELD, UNTIL_FIELD, distinct_sets
from spark_bridge.operators.group.merge_plan import (
    KEY_FIELD,
    CallBuffer,
    EpochPartials,
    MergedGroups,
    MergePlan,
    StateColumn,
)
from spark_bridge.operators.group.partial_aggregation import CallOverRows, PartialAggregation
from spark_bridge.operators.group.subtraction_plan import SubtractionPlan
from spark_bridge.plans.columns import aggregate_of, look_up_columns, used_columns
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.group_key import GLOBAL_KEY, KEY_COLUMN, keys_of_rows
from state.tables.stored_rows import WEIGHT_FIELD

Counts = Callable[[pa.Array], pa.Array]
"""Texts of values within their groups -> for each the stored number of its rows, or 1 if that is not counted; 0 if it
is not stored."""

_MOST_VALUES = 100_000
_COUNTED_VALUES = pa.schema([KEY_FIELD, COUNT_FIELD])


@dataclass(frozen=True)
class Touched:
    """The groups and DISTINCT values of some rows.

    Args:
        groups: `__sw_key` and the grouping of each group.
        distinct: texts of the values of DISTINCT calls within their groups.
    """

    groups: pa.Table
    distinct: pa.Array

    def __add__(self, others: Touched) -> Touched:
        """Those of both."""
        groups = _once(pa.concat_tables([self.groups, others.groups]))
        return Touched(groups, pa.concat_arrays([self.distinct, others.distinct]).unique())


@dataclass(frozen=True)
class ChangedPartials:
    """The partials of rows that change.

    Args:
        gone: of the rows that leave.
        new: of those that come.
        distinct: `__sw_key` and number of rows of each DISTINCT value whose rows change, as it is afterwards.
    """

    gone: EpochPartials
    new: EpochPartials
    distinct: pa.Table


@dataclass(frozen=True)
class ExchangedGroups:
    """The groups with rows that leave or come.

    Args:
        keys: `__sw_key` of each of them.
        merged: those that are left.
        lost: `__sw_key` and the grouping of those that must be computed again.
    """

    keys: pa.ChunkedArray
    merged: MergedGroups
    lost: pa.Table


class AggregatePlan:
    """The jobs and the merge of one aggregate view.

    Args:
        view: the plan of the view.
        subtracts: whether rows that leave may be subtracted, so that hidden counts are stored.
        counts: whether the rows of each DISTINCT value are counted, so that such values are subtracted too.
        reached: the numbers of the calls that new rows reach, none with DISTINCT: the groups have the others of these
            rows.  None for all.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: ViewPlan,
        *,
        subtracts: bool,
        counts: bool,
        reached: Collection[int] | None = None,
    ) -> None:
        self._catalyst, self._view = catalyst, view
        self._leaves, self._has_time = view.leaves, view.timestamps.are_used
        self._window = None if view.closing is None else view.closing.position
        aggregate = aggregate_of(view.plan)
        self._rows = aggregate.child()
        self._grouping = catalyst.trees.items(aggregate.groupingExpressions())
        calls = aggregate_calls(catalyst, view.name, aggregate)
        own = len(calls)
        subtracts = subtracts and can_be_subtracted(calls, counts=counts)
        calls = with_helper_aggregates(catalyst, view.name, calls) if subtracts else calls
        self._counts = counts and subtracts
        names = [_column_names(index, call) for index, call in enumerate(calls)]
        self._sets = distinct_sets(catalyst, view.name, calls, names)
        for each in self._sets:
            each.plan(self._rows, self._grouping, counts=self._counts)
        plain = [
            (number, CallOverRows(call, call.inputs, call.filter, each))
            for number, (call, each) in enumerate(zip(calls, names, strict=True))
            if not call.is_distinct
        ]
        self._plain_calls = [each for number, each in plain if reached is None or number in reached]
        unreached = [each for number, each in plain if reached is not None and number not in reached]
        self._is_whole = reached is None
        self._plain = self._plain_partials()
        self._unreached = PartialAggregation(catalyst, self._rows, self._grouping, unreached) if unreached else None
        self._groups: PartialAggregation | None = None
        self._changed: tuple[Plan, PartialAggregation] | None = None
        self._in_leaves: dict[str, dict[str, int]] | None = None
        buffers = self._buffers(calls, names)
        self._merge = self._merge_plan(view, buffers)
        self.hidden_columns = frozenset(name for each in names[own:] for name in each)
        self._subtracts, self._call_buffers = subtracts, buffers

    @cached_property
    def _subtraction(self) -> SubtractionPlan:
        """Made when the first rows leave: most views never lose one."""
        return SubtractionPlan(self._catalyst, self._call_buffers, has_groups=bool(self._grouping))

    @property
    def subtracts(self) -> bool:
        """Whether rows that leave can be subtracted."""
        return self._subtracts

    @property
    def has_distinct(self) -> bool:
        """Whether the view has DISTINCT calls, so that seen values are stored."""
        return bool(self._sets)

    @property
    def counts(self) -> bool:
        """Whether the number of rows is stored beside each seen value."""
        return self._counts and self.has_distinct

    @property
    def has_filter(self) -> bool:
        """Whether a filter stands above the aggregation, so that the result may lack groups."""
        return self._merge.has_filter

    @property
    def buffer_columns(self) -> list[StateColumn]:
        """The buffers, without the grouping."""
        return self._merge.buffer_columns

    def touched_by(self, leaves: Leaves, tasks: int) -> Touched:
        """The groups and DISTINCT values of these rows."""
        rows = self._over(self._rows, leaves)
        pairs = [each.pairs_of(rows, tasks) for each in self._sets]
        if not self._grouping:
            groups = _one_group()
        elif self._sets and self._sets[0].has_all_rows:
            groups = _once(self._keyed(self._sets[0].grouping_of(pairs[0].pairs)))
        else:
            if self._groups is None:
                self._groups = PartialAggregation(self._catalyst, self._rows, self._grouping, [])
            groups = self._keyed(self._groups.run(rows, tasks))
        return Touched(groups, pa.concat_arrays([pa.array([], pa.string()), *(each.keys for each in pairs)]))

    def changed_partials(self, leaves: Leaves, tasks: int, counts: Counts) -> ChangedPartials:
        """The partials of the rows that leave, and of those that come, by one job, and one for each distinct set.

        Args:
            leaves: both, with their weights in `WEIGHT_FIELD`.
            tasks: see `PartialAggregation.run`.
            counts: called once, if there are distinct sets.
        """
        if self._changed is None:
            weighted = with_carried_column(self._catalyst, self._rows, WEIGHT_FIELD)
            grouping = [*self._grouping, self._catalyst.trees.items(weighted.output())[-1]]
            self._changed = weighted, PartialAggregation(self._catalyst, weighted, grouping, self._plain_calls)
        plan, aggregation = self._changed
        rows = self._over(plan, leaves)
        both = aggregation.run(rows, tasks)
        weights, groups = both.column(len(self._grouping)), both.remove_column(len(self._grouping))
        gone, new = ([self._keyed(groups.filter(pc.equal(weights, weight)))] for weight in (-1, 1))
        pairs = [each.changes_of(plan, rows, tasks) for each in self._sets]
        keys = pa.concat_arrays([pa.array([], pa.string()), *(each.keys for each in pairs)])
        before = counts(keys) if pairs else pa.array([], pa.int64())
        # As with rows: first those leave that leave, and with them a whole group maybe; then others come.
        between = pc.subtract(before, _numbers(each.gone for each in pairs))
        start = 0
        for each, changed in zip(self._sets, pairs, strict=True):
            was, stays = (pc.greater(some.slice(start, len(changed.keys)), 0) for some in (before, between))
            start += len(changed.keys)
            comes = pc.greater(changed.new, 0)
            gone.append(self._keyed(each.partials_of(changed.pairs.filter(pc.and_not(was, stays)))))
            new.append(self._keyed(each.partials_of(changed.pairs.filter(pc.and_not(comes, stays)))))
        distinct = pa.table([keys, pc.add(between, _numbers(each.new for each in pairs))], schema=_COUNTED_VALUES)
        return ChangedPartials(self._of_parts(gone), self._of_parts(new), distinct)

    def values_of(self, groups: pa.Table) -> dict[str, dict[str, pa.Array]]:
        """Source or parent → column → the values of the rows of groups, if the column is grouped by and they are few.

        Args:
            groups: as in `Touched.groups`.
        """
        if self._in_leaves is None:
            self._in_leaves = look_up_columns(self._catalyst, self._rows, self._leaves, self._grouping)
        found: dict[str, dict[str, pa.Array]] = {}
        for leaf, columns in self._in_leaves.items():
            for name, position in columns.items():
                values = groups.column(1 + position).combine_chunks().unique()
                if len(values) <= _MOST_VALUES:
                    found.setdefault(leaf, {})[name] = values
        return found

    def partials_of(self, leaves: Leaves, tasks: int, counts: Counts, only: pa.Table | None = None) -> EpochPartials:
        """Runs an epoch's jobs: one for the calls without DISTINCT, two for each set of distinct values.

        Args:
            tasks: see `PartialAggregation.run`.
            counts: called once for each set.
            only: the groups whose rows count, as in `Touched.groups`; None for all.
        """
        rows = self._over(self._rows, leaves)
        if only is not None and self._grouping:
            rows = RowsOver(None, partial(self._of_groups, rows.plan, only))
        groups: pa.Table | None = None
        parts: list[pa.Table] = []
        if self._plain is not None:
            groups = self._keyed(self._plain.run(rows, tasks))
            parts.append(groups)
        distinct = [self._stored_values.empty_table()]
        for each in self._sets if self._is_whole else ():
            found = each.pairs_of(rows, tasks)
            before = counts(found.keys)
            is_new = pc.equal(before, 0)
            values = [found.keys]
            if self._counts:
                values.append(pc.add(before, found.rows))
            if self._window is not None:
                values.append(event_times_us(pc.struct_field(found.pairs.column(1 + self._window), "end")))
            stored = pa.table(values, schema=self._stored_values)
            distinct.append(stored if self._counts else stored.filter(is_new))
            parts.append(self._keyed(each.partials_of(found.pairs.filter(is_new))))
            if groups is None:
                # Each row is in one of the pairs, so the pairs have every group.
                groups = _once(self._keyed(each.grouping_of(found.pairs)))
        parts += [self._without_groups(schema) for schema in self._schemas[len(parts) :]]
        assert groups is not None, "without sets there are plain partials"
        if not self._grouping:
            groups = _one_group()
        return EpochPartials(groups.select(range(1 + len(self._grouping))), parts, pa.concat_tables(distinct))

    def merge(self, partials: EpochPartials, stored: pa.Table | None) -> MergedGroups:
        """See `MergePlan.merge`."""
        return self._merge.merge(partials, stored)

    def merge_groups(self, groups: pa.Table, into: pa.Table) -> pa.Table:
        """Groups, in their order, with the partials of others too; all have partials that are stored apart.

        Args:
            groups: as they are stored.
            into: others with the same keys.
        """
        grouping, parts = groups.select([KEY_COLUMN, *self.grouping_names]), [groups] * len(self._schemas)
        merged = self._merge.merge(EpochPartials(grouping, parts, _COUNTED_VALUES.empty_table()), into)
        assert merged.state is not None, "they are stored apart"
        return merged.state

    @property
    def grouping_names(self) -> list[str]:
        """The columns of the grouping in partials, and in partials that are stored apart."""
        return [field.name for field in self._merge.grouping]

    def result_of(self, groups: pa.Table) -> pa.Table:
        """The view's rows, with `__sw_key`, of groups of which partials are stored apart."""
        return self._without_rows(groups).result

    def _without_rows(self, groups: pa.Table) -> MergedGroups:
        """Stored groups merged with the partials of no rows."""
        grouping = groups.select([KEY_COLUMN, *self.grouping_names])
        parts = [self._without_groups(schema) for schema in self._schemas]
        return self._merge.merge(EpochPartials(grouping, parts, _COUNTED_VALUES.empty_table()), groups)

    @property
    def stored_columns(self) -> list[str]:
        """`__sw_key`, the grouping and the buffers, as the dataset that has them names them."""
        return [KEY_COLUMN, *(column.result_name or column.name for column in self._merge.columns)]

    @property
    def _calls(self) -> list[AggregateCall]:
        """Its own calls, then the hidden ones."""
        return [each.call for each in self._merge.buffers]

    @cached_property
    def _call_texts(self) -> list[str]:
        _, texts = call_texts(self._catalyst, self._view, self._calls)
        return texts

    def missing_in(self, before: AggregatePlan) -> list[int]:
        """The numbers of the calls of which the groups of another view have no buffers."""
        return [number for number, text in enumerate(self._call_texts) if text not in before._call_texts]

    def groups_of(self, before: AggregatePlan) -> Callable[[pa.Table], MergedGroups]:
        """The groups of this view, made of those of another one that has the buffers of all calls but the reached ones.

        Args:
            before: the plan of the other view.

        Returns:
            Makes them of a table with the `stored_columns` of the other view.
        """
        stored = iter(before.stored_columns)
        grouping = [*islice(stored, 1 + len(self._grouping))]
        of_call = {
            text: [*islice(stored, len(each.fields))]
            for text, each in zip(before._call_texts, before._merge.buffers, strict=True)
        }
        columns: list[dict[str, str]] = [{} for _ in self._schemas]
        for text, buffer in zip(self._call_texts, self._merge.buffers, strict=True):
            names = [field.name for field in buffer.fields]
            columns[buffer.part].update(zip(names, of_call.get(text, ()), strict=text in of_call))

        def groups(table: pa.Table) -> MergedGroups:
            partials = [
                pa.table({KEY_COLUMN: table.column(KEY_COLUMN), **{name: table.column(of[name]) for name in of}})
                if of
                else self._without_groups(schema)
                for of, schema in zip(columns, self._schemas, strict=True)
            ]
            return self._merge.merge(
                EpochPartials(table.select(grouping), partials, _COUNTED_VALUES.empty_table()), None
            )

        return groups

    def columns_reached(self) -> Mapping[str, frozenset[str]]:
        """Source → the columns that the rows need for the grouping, and for the calls that they reach."""
        catalyst = self._catalyst
        values = [*self._grouping, *(each.call.expression for each in self._plain_calls)]
        named = [catalyst.expressions.alias(each, f"__sw_{number}") for number, each in enumerate(values)]
        return used_columns(catalyst, catalyst.plans.aggregate(self._grouping, named, self._rows), self._leaves)

    def rows_of_groups(self, leaves: Leaves, groups: pa.Table, columns: Mapping[str, Expression]) -> pa.Table:
        """The columns of the rows that are in some groups.

        Args:
            groups: as in `Touched.groups`.
            columns: name → attribute of the rows below the aggregation.
        """
        catalyst = self._catalyst
        rows = self._of_groups(self._over(self._rows, leaves).plan, groups)
        plan = catalyst.queries.analyse(
            catalyst.plans.project([catalyst.expressions.alias(each, name) for name, each in columns.items()], rows)
        )
        return table_of_frame(catalyst.queries.frame(plan), catalyst.schemas.arrow_schema(plan))

    def exchange(self, gone: EpochPartials, new: EpochPartials, stored: pa.Table) -> ExchangedGroups:
        """Merges new rows into the touched groups, without the rows that leave.

        Args:
            gone: the partials of the rows that leave.
            new: those of the new rows.
            stored: `__sw_key` and the buffers of the touched groups that are stored.
        """
        assert self._subtracts, "it subtracts"
        subtracted = self._subtraction.subtract(stored, gone, new)
        left = subtracted.left
        is_left_alone = pc.invert(pc.is_in(stored.column(KEY_COLUMN), value_set=gone.groups.column(KEY_COLUMN)))
        stored = pa.concat_tables([left, stored.filter(is_left_alone).select(left.schema.names).cast(left.schema)])
        touched = _once(pa.concat_tables([gone.groups, new.groups]))
        keys = touched.column(KEY_COLUMN)
        is_lost = pc.is_in(keys, value_set=subtracted.lost)
        is_there = pc.or_(
            pc.is_in(keys, value_set=stored.column(KEY_COLUMN)), pc.is_in(keys, value_set=new.groups.column(KEY_COLUMN))
        )
        groups = touched.filter(pc.and_not(is_there, is_lost))
        merged = self._merge.merge(replace(new, groups=groups), stored)
        return ExchangedGroups(keys, merged, touched.filter(is_lost))

    def _over(self, plan: Plan, leaves: Leaves) -> RowsOver:
        return rows_over(self._catalyst, plan, self._leaves, leaves, has_time=self._has_time)

    def _of_groups(self, rows: Plan, groups: pa.Table) -> Plan:
        wanted = groups.select(range(1, groups.num_columns))
        attributes = self._catalyst.schemas.attributes(wanted.schema)
        leaf = self._catalyst.rows.leaf(
            self._catalyst.scala.seq(attributes), frame_of_table(self._catalyst.spark, wanted)
        )
        pairs = [
            (self._catalyst.expressions.normalised(grouping), attribute)
            for grouping, attribute in zip(self._grouping, attributes, strict=True)
        ]
        return self._catalyst.queries.analyse(self._catalyst.plans.semi_join(rows, leaf, pairs))

    def _plain_partials(self) -> PartialAggregation | None:
        """The aggregation over all rows; None if all calls are DISTINCT, and their values have every group."""
        if self._is_whole and self._sets and self._sets[0].has_all_rows and not self._plain_calls:
            return None
        return PartialAggregation(self._catalyst, self._rows, self._grouping, self._plain_calls)

    def _of_parts(self, parts: Sequence[pa.Table]) -> EpochPartials:
        """The partials of which the first part has every group."""
        return EpochPartials(parts[0].select(range(1 + len(self._grouping))), parts, _COUNTED_VALUES.empty_table())

    @property
    def _stored_values(self) -> pa.Schema:
        """What is stored of each DISTINCT value within its group."""
        fields = [KEY_FIELD, *([COUNT_FIELD] if self._counts else ()), *([] if self._window is None else [UNTIL_FIELD])]
        return pa.schema(fields)

    @property
    def _schemas(self) -> list[pa.Schema]:
        """The schema of each part of an epoch's partials."""
        parts = [self._plain, *self._sets, self._unreached]
        return [each.schema for each in parts if each is not None]

    @staticmethod
    def _without_groups(schema: pa.Schema) -> pa.Table:
        """A part of partials that has no groups."""
        return pa.schema([KEY_FIELD, *schema]).empty_table()

    def _buffers(self, calls: Sequence[AggregateCall], names: Sequence[Sequence[str]]) -> list[CallBuffer]:
        schemas, buffers = self._schemas, []
        for call, columns in zip(calls, names, strict=True):
            part = next(part for part, schema in enumerate(schemas) if columns[0] in schema.names)
            buffers.append(CallBuffer(call, part, [schemas[part].field(name) for name in columns]))
        return buffers

    def _merge_plan(self, view: ViewPlan, buffers: Sequence[CallBuffer]) -> MergePlan:
        schemas = self._schemas
        grouping = [schemas[0].field(index) for index in range(len(self._grouping))]
        return MergePlan(self._catalyst, view, grouping, buffers, len(schemas))

    def _keyed(self, table: pa.Table) -> pa.Table:
        """The table with the text of each row's group in front."""
        return table.add_column(0, KEY_FIELD, keys_of_rows(table.columns[: len(self._grouping)], table.num_rows))


def _column_names(index: int, call: AggregateCall) -> list[str]:
    """The stored names of a call's buffer."""
    names = [f"__sw_{index}_{each.name().lower()}" for each in call.buffer.attributes]
    # A regression has the buffers of several functions, with equal names.
    return [name if names.index(name) == at else f"{name}_{at}" for at, name in enumerate(names)]


def _numbers(arrays: Iterable[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.int64()), *arrays])


def _one_group() -> pa.Table:
    """The single group of a query without GROUP BY."""
    return pa.table([pa.array([GLOBAL_KEY], pa.string())], schema=pa.schema([KEY_FIELD]))


def _once(table: pa.Table) -> pa.Table:
    """One row of each group."""
    keys = table.column(KEY_COLUMN).combine_chunks()
    return table.take(pc.index_in(keys.unique(), value_set=keys))
