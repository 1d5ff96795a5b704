"""The jobs over the rows of an aggregate view: partials of an epoch's rows, of rows that change, and of some groups.

partials   Spark's Partial aggregation over the projection below the aggregation: one row per touched group
distinct   for calls with DISTINCT: the same over values that are new in their group
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from actors.sources.event_time import event_times_us
from spark_bridge.engine.catalyst.carried_column import with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id
from spark_bridge.engine.execution.leaves import LeafRows, Leaves, is_few
from spark_bridge.engine.execution.planned_once import PlannedOnce
from spark_bridge.operators.group.aggregate_calls import (
    AggregateCall,
)
from spark_bridge.operators.group.distinct_set import COUNT_FIELD, UNTIL_FIELD, distinct_sets
from spark_bridge.operators.group.merge_plan import (
    KEY_FIELD,
    EpochPartials,
)
from spark_bridge.operators.group.partial_aggregation import CallOverRows, PartialAggregation
from spark_bridge.plans.columns import look_up_columns, used_columns
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.group_key import GLOBAL_KEY, KEY_COLUMN, keys_of_rows
from state.tables.stored_rows import WEIGHT_FIELD

Counts = Callable[[pa.Array], pa.Array]
"""Texts of values within their groups -> for each the stored number of its rows, or 1 if that is not counted; 0 if it
is not stored."""

_MOST_VALUES = 100_000
_GROUPS = "__sw_groups"
_BROADCAST_BYTES = 8 << 20
"""Groups up to this size are sent to all tasks that look for their rows."""
COUNTED_VALUES = pa.schema([KEY_FIELD, COUNT_FIELD])


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
        groups = once(pa.concat_tables([self.groups, others.groups]))
        return Touched(groups, pa.concat_arrays([self.distinct, others.distinct]).unique())


@dataclass(frozen=True)
class ChangedPartials:
    """The partials of rows that change.

    Args:
        gone: of the deleted rows.
        new: of the inserted rows.
        distinct: `__sw_key` and number of rows of each DISTINCT value whose rows change, as it is afterwards.
    """

    gone: EpochPartials
    new: EpochPartials
    distinct: pa.Table


@dataclass(frozen=True)
class _Partials:
    """The aggregations over some rows below the aggregation of the view.

    Args:
        plain: of the calls without DISTINCT; None if all calls are DISTINCT, and their values have every group.
        pairs: for each distinct set, that of its pairs.
    """

    plain: PartialAggregation | None
    pairs: Sequence[PartialAggregation]


@dataclass(frozen=True)
class _OfGroups:
    """The rows that are in some groups, which are the rows of one more leaf.

    Args:
        rows: the plan.
        leaves: id of a leaf's first attribute → the name of the leaf.
    """

    rows: Plan
    leaves: Mapping[int, str]


class GroupedRows:
    """The rows below the aggregation of one view, and its calls over them.

    Attributes:
        grouping: the expressions of the grouping, over the rows.

    Args:
        view: the plan of the view.
        aggregate: the aggregation in the plan of the view.
        calls: its calls, then the helper aggregates.
        names: the stored names of the buffer of each call.
        counts: whether the rows of each DISTINCT value are counted.
        reached: see `AggregatePlan`.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: ViewPlan,
        aggregate: Plan,
        calls: Sequence[AggregateCall],
        names: Sequence[list[str]],
        *,
        counts: bool,
        reached: Collection[int] | None,
    ) -> None:
        self._catalyst, self._counts = catalyst, counts
        self._leaves = view.leaves
        self._window = None if view.closing is None else view.closing.position
        self._rows = aggregate.child()
        self.grouping = catalyst.trees.items(aggregate.groupingExpressions())
        self._sets = distinct_sets(catalyst, view.name, calls, names)
        for each in self._sets:
            each.plan(self._rows, self._leaves, self.grouping, counts=counts)
        plain = [
            (number, CallOverRows(call, call.inputs, call.filter, each))
            for number, (call, each) in enumerate(zip(calls, names, strict=True))
            if not call.is_distinct
        ]
        self._plain_calls = [each for number, each in plain if reached is None or number in reached]
        unreached = [each for number, each in plain if reached is not None and number not in reached]
        self._is_whole = reached is None
        self._all = self._partials(self._rows, self._leaves)
        self._unreached = self._aggregation(self.grouping, unreached) if unreached else None
        self._groups: PartialAggregation | None = None
        self._changed: tuple[PartialAggregation, Sequence[PartialAggregation]] | None = None
        self._in_leaves: dict[str, dict[str, int]] | None = None
        self._of_some: dict[bool, _OfGroups] = {}
        self._partials_of_some: dict[bool, _Partials] = {}
        self._shown: dict[tuple[bool, tuple[str, ...]], tuple[PlannedOnce, pa.Schema]] = {}

    @property
    def has_distinct(self) -> bool:
        """True if the view has DISTINCT calls."""
        return bool(self._sets)

    @property
    def schemas(self) -> list[pa.Schema]:
        """The schema of each part of an epoch's partials."""
        parts = [self._all.plain, *self._sets, self._unreached]
        return [each.schema for each in parts if each is not None]

    def touched_by(self, leaves: Leaves, tasks: int) -> Touched:
        """The groups and DISTINCT values of these rows."""
        pairs = [each.pairs_of(by, leaves, tasks) for each, by in zip(self._sets, self._all.pairs, strict=True)]
        if not self.grouping:
            groups = _one_group()
        elif self._sets and self._sets[0].has_all_rows:
            groups = once(self._keyed(self._sets[0].grouping_of(pairs[0].pairs)))
        else:
            if self._groups is None:
                self._groups = self._aggregation(self.grouping, [])
            groups = self._keyed(self._groups.run(leaves, tasks))
        return Touched(groups, pa.concat_arrays([pa.array([], pa.string()), *(each.keys for each in pairs)]))

    def changed_partials(self, leaves: Leaves, tasks: int, counts: Counts) -> ChangedPartials:
        """The partials of the deleted and of the inserted rows.

        One job computes the partials of both.  Each distinct set needs one more job for its pairs.

        Args:
            leaves: the deleted and inserted rows, with their weights in `WEIGHT_FIELD`.
            tasks: see `PartialAggregation.run`.
            counts: called once, if there are distinct sets.
        """
        if self._changed is None:
            weighted = with_carried_column(self._catalyst, self._rows, WEIGHT_FIELD)
            weight = self._catalyst.trees.items(weighted.output())[-1]
            pairs_of_sets = [each.pair_aggregation(weighted, self._leaves, [weight]) for each in self._sets]
            self._changed = (
                PartialAggregation(self._catalyst, weighted, self._leaves, [*self.grouping, weight], self._plain_calls),
                pairs_of_sets,
            )
        aggregation, by_sets = self._changed
        both = aggregation.run(leaves, tasks)
        weights, groups = both.column(len(self.grouping)), both.remove_column(len(self.grouping))
        gone, new = ([self._keyed(groups.filter(pc.equal(weights, weight)))] for weight in (-1, 1))
        pairs = [each.changes_of(by, leaves, tasks) for each, by in zip(self._sets, by_sets, strict=True)]
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
        distinct = pa.table([keys, pc.add(between, _numbers(each.new for each in pairs))], schema=COUNTED_VALUES)
        return ChangedPartials(self._of_parts(gone), self._of_parts(new), distinct)

    def values_of(self, groups: pa.Table) -> dict[str, dict[str, pa.Array]]:
        """Source or parent → column → the values of the rows of groups, if the column is grouped by and they are few.

        Args:
            groups: as in `Touched.groups`.
        """
        if self._in_leaves is None:
            self._in_leaves = look_up_columns(self._catalyst, self._rows, self._leaves, self.grouping)
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
        partials = self._all
        if only is not None and self.grouping:
            leaves, sends = self._with_groups(leaves, only)
            if sends not in self._partials_of_some:
                of_groups = self._of_groups(only, sends=sends)
                self._partials_of_some[sends] = self._partials(of_groups.rows, of_groups.leaves)
            partials = self._partials_of_some[sends]
        groups: pa.Table | None = None
        parts: list[pa.Table] = []
        if partials.plain is not None:
            groups = self._keyed(partials.plain.run(leaves, tasks))
            parts.append(groups)
        distinct = [self._stored_values.empty_table()]
        for each, by in zip(self._sets, partials.pairs, strict=True) if self._is_whole else ():
            found = each.pairs_of(by, leaves, tasks)
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
                groups = once(self._keyed(each.grouping_of(found.pairs)))
        parts += [no_groups(schema) for schema in self.schemas[len(parts) :]]
        assert groups is not None, "without sets there are plain partials"
        if not self.grouping:
            groups = _one_group()
        return EpochPartials(groups.select(range(1 + len(self.grouping))), parts, pa.concat_tables(distinct))

    def rows_of_groups(self, leaves: Leaves, groups: pa.Table, columns: Mapping[str, Expression]) -> pa.Table:
        """The columns of the rows that are in some groups.

        Args:
            groups: as in `Touched.groups`.
            columns: name → attribute of the rows below the aggregation.
        """
        leaves, sends = self._with_groups(leaves, groups)
        key = sends, tuple(columns)
        if key not in self._shown:
            catalyst, of_groups = self._catalyst, self._of_groups(groups, sends=sends)
            shown = [catalyst.expressions.alias(each, name) for name, each in columns.items()]
            plan = catalyst.queries.analyse(catalyst.plans.project(shown, of_groups.rows))
            self._shown[key] = PlannedOnce(catalyst, plan, of_groups.leaves), catalyst.schemas.arrow_schema(plan)
        query, schema = self._shown[key]
        return query.table(leaves, schema)

    def columns_reached(self) -> Mapping[str, frozenset[str]]:
        """Source → the columns that the rows need for the grouping, and for the calls that they reach."""
        catalyst = self._catalyst
        values = [*self.grouping, *(each.call.expression for each in self._plain_calls)]
        named = [catalyst.expressions.alias(each, f"__sw_{number}") for number, each in enumerate(values)]
        return used_columns(catalyst, catalyst.plans.aggregate(self.grouping, named, self._rows), self._leaves)

    def _with_groups(self, leaves: Leaves, groups: pa.Table) -> tuple[Leaves, bool]:
        """The rows of the leaves of `_of_groups`, and whether tasks receive all groups."""
        wanted = _unnamed(groups.select(range(1, groups.num_columns)))
        of_groups = LeafRows.of_table(self._catalyst.spark, wanted)
        given = [*leaves.values(), of_groups]
        sends = not is_few(each for each in given if each is not None) and wanted.nbytes <= _BROADCAST_BYTES
        return {**leaves, _GROUPS: of_groups}, sends

    def _of_groups(self, groups: pa.Table, *, sends: bool) -> _OfGroups:
        """The rows in groups.

        Args:
            groups: such groups.
            sends: whether tasks receive all groups.
        """
        if sends in self._of_some:
            return self._of_some[sends]
        catalyst = self._catalyst
        attributes = catalyst.schemas.attributes(_unnamed(groups.select(range(1, groups.num_columns))).schema)
        leaf = catalyst.rows.local_relation(catalyst.scala.seq(attributes))
        pairs = [
            (catalyst.expressions.normalised(grouping), attribute)
            for grouping, attribute in zip(self.grouping, attributes, strict=True)
        ]
        others = catalyst.plans.broadcast(leaf) if sends else leaf
        rows = catalyst.queries.analyse(catalyst.plans.semi_join(self._rows, others, pairs))
        leaves = {**self._leaves, attribute_id(attributes[0]): _GROUPS}
        self._of_some[sends] = _OfGroups(rows, leaves)
        return self._of_some[sends]

    def _partials(self, rows: Plan, leaves: Mapping[int, str]) -> _Partials:
        has_all_groups = self._is_whole and self._sets and self._sets[0].has_all_rows and not self._plain_calls
        plain = (
            None
            if has_all_groups
            else PartialAggregation(self._catalyst, rows, leaves, self.grouping, self._plain_calls)
        )
        return _Partials(plain, [each.pair_aggregation(rows, leaves, []) for each in self._sets])

    def _aggregation(self, grouping: Sequence[Expression], calls: Sequence[CallOverRows]) -> PartialAggregation:
        return PartialAggregation(self._catalyst, self._rows, self._leaves, grouping, calls)

    def _of_parts(self, parts: Sequence[pa.Table]) -> EpochPartials:
        """The partials of which the first part has every group."""
        return EpochPartials(parts[0].select(range(1 + len(self.grouping))), parts, COUNTED_VALUES.empty_table())

    @property
    def _stored_values(self) -> pa.Schema:
        """The columns that are stored for each DISTINCT value of a group."""
        fields = [KEY_FIELD, *([COUNT_FIELD] if self._counts else ()), *([] if self._window is None else [UNTIL_FIELD])]
        return pa.schema(fields)

    def _keyed(self, table: pa.Table) -> pa.Table:
        """The table with the text of each row's group in front."""
        return table.add_column(0, KEY_FIELD, keys_of_rows(table.columns[: len(self.grouping)], table.num_rows))


def no_groups(schema: pa.Schema) -> pa.Table:
    """A part of partials that has no groups."""
    return pa.schema([KEY_FIELD, *schema]).empty_table()


def once(table: pa.Table) -> pa.Table:
    """One row of each group."""
    keys = table.column(KEY_COLUMN).combine_chunks()
    return table.take(pc.index_in(keys.unique(), value_set=keys))


def _unnamed(columns: pa.Table) -> pa.Table:
    """Columns of a grouping, by their positions."""
    return columns.rename_columns([f"c{number}" for number in range(columns.num_columns)])


def _numbers(arrays: Iterable[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.int64()), *arrays])


def _one_group() -> pa.Table:
    """The single group of a query without GROUP BY."""
    return pa.table([pa.array([GLOBAL_KEY], pa.string())], schema=pa.schema([KEY_FIELD]))
