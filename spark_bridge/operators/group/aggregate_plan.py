"""The maintenance plan of an aggregate view, made once from its analysed plan.

rows       Jobs compute the partials of an epoch's rows (see `grouped_rows`).
merge      The partials and the stored buffers become merged buffers and the result (see `merge_plan`).
subtract   The partials of deleted rows are subtracted from the stored buffers (see `subtraction_plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.operators.group.aggregate_calls import (
    AggregateCall,
    aggregate_calls,
    call_texts,
    can_be_subtracted,
    with_helper_aggregates,
)
from spark_bridge.operators.group.grouped_rows import COUNTED_VALUES, GroupedRows, no_groups, once
from spark_bridge.operators.group.merge_plan import (
    CallBuffer,
    EpochPartials,
    MergedGroups,
    MergePlan,
    StateColumn,
)
from spark_bridge.operators.group.subtraction_plan import SubtractionPlan
from spark_bridge.plans.columns import aggregate_of
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.group_key import KEY_COLUMN


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

    Attributes:
        rows: the jobs.
        retracts: see the argument.

    Args:
        view: the plan of the view.
        subtracts: whether rows that leave may be subtracted, so that hidden counts are stored.
        counts: whether the rows of each DISTINCT value are counted, so that such values are subtracted too.
        retracts: whether the helper aggregates of retracted calls are stored.
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
        retracts: bool = True,
        reached: Collection[int] | None = None,
    ) -> None:
        self._catalyst, self._view = catalyst, view
        self.retracts = retracts
        aggregate = aggregate_of(view.plan)
        calls = aggregate_calls(catalyst, view.name, aggregate)
        own = len(calls)
        subtracts = subtracts and can_be_subtracted(calls, counts=counts)
        calls = with_helper_aggregates(catalyst, view.name, calls, retracts=retracts) if subtracts else calls
        self._counts = counts and subtracts
        names = [_column_names(index, call) for index, call in enumerate(calls)]
        self.rows = GroupedRows(catalyst, view, aggregate, calls, names, counts=self._counts, reached=reached)
        buffers = self._buffers(calls, names)
        self._merge = self._merge_plan(view, buffers)
        self.hidden_columns = frozenset(name for each in names[own:] for name in each)
        self._subtracts, self._call_buffers = subtracts, buffers

    @cached_property
    def _subtraction(self) -> SubtractionPlan:
        """Made when the first rows leave: most views never lose one."""
        return SubtractionPlan(self._catalyst, self._call_buffers, has_groups=bool(self.rows.grouping))

    @property
    def subtracts(self) -> bool:
        """Whether rows that leave can be subtracted."""
        return self._subtracts

    @property
    def has_distinct(self) -> bool:
        """Whether the view has DISTINCT calls, so that seen values are stored."""
        return self.rows.has_distinct

    @property
    def counts(self) -> bool:
        """Whether the number of rows is stored beside each seen value."""
        return self._counts and self.has_distinct

    @property
    def has_filter(self) -> bool:
        """True if the plan has a filter above the aggregation (HAVING): the result may lack groups."""
        return self._merge.has_filter

    @property
    def buffer_columns(self) -> list[StateColumn]:
        """The buffers, without the grouping."""
        return self._merge.buffer_columns

    def merge(self, partials: EpochPartials, stored: pa.Table | None) -> MergedGroups:
        """See `MergePlan.merge`."""
        return self._merge.merge(partials, stored)

    def merge_groups(self, groups: pa.Table, into: pa.Table) -> pa.Table:
        """Groups, in their order, with the partials of others too; all have partials that are stored apart.

        Args:
            groups: as they are stored.
            into: others with the same keys.
        """
        grouping, parts = groups.select([KEY_COLUMN, *self.grouping_names]), [groups] * len(self.rows.schemas)
        merged = self._merge.merge(EpochPartials(grouping, parts, COUNTED_VALUES.empty_table()), into)
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
        parts = [no_groups(schema) for schema in self.rows.schemas]
        return self._merge.merge(EpochPartials(grouping, parts, COUNTED_VALUES.empty_table()), groups)

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
        grouping = [*islice(stored, 1 + len(self.rows.grouping))]
        of_call = {
            text: [*islice(stored, len(each.fields))]
            for text, each in zip(before._call_texts, before._merge.buffers, strict=True)
        }
        columns: list[dict[str, str]] = [{} for _ in self.rows.schemas]
        for text, buffer in zip(self._call_texts, self._merge.buffers, strict=True):
            names = [field.name for field in buffer.fields]
            columns[buffer.part].update(zip(names, of_call.get(text, ()), strict=text in of_call))

        def groups(table: pa.Table) -> MergedGroups:
            partials = [
                pa.table({KEY_COLUMN: table.column(KEY_COLUMN), **{name: table.column(of[name]) for name in of}})
                if of
                else no_groups(schema)
                for of, schema in zip(columns, self.rows.schemas, strict=True)
            ]
            return self._merge.merge(
                EpochPartials(table.select(grouping), partials, COUNTED_VALUES.empty_table()), None
            )

        return groups

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
        touched = once(pa.concat_tables([gone.groups, new.groups]))
        keys = touched.column(KEY_COLUMN)
        is_lost = pc.is_in(keys, value_set=subtracted.lost)
        is_there = pc.or_(
            pc.is_in(keys, value_set=stored.column(KEY_COLUMN)), pc.is_in(keys, value_set=new.groups.column(KEY_COLUMN))
        )
        groups = touched.filter(pc.and_not(is_there, is_lost))
        merged = self._merge.merge(replace(new, groups=groups), stored)
        return ExchangedGroups(keys, merged, touched.filter(is_lost))

    def _buffers(self, calls: Sequence[AggregateCall], names: Sequence[Sequence[str]]) -> list[CallBuffer]:
        schemas, buffers = self.rows.schemas, []
        for call, columns in zip(calls, names, strict=True):
            part = next(part for part, schema in enumerate(schemas) if columns[0] in schema.names)
            buffers.append(CallBuffer(call, part, [schemas[part].field(name) for name in columns]))
        return buffers

    def _merge_plan(self, view: ViewPlan, buffers: Sequence[CallBuffer]) -> MergePlan:
        schemas = self.rows.schemas
        grouping = [schemas[0].field(index) for index in range(len(self.rows.grouping))]
        return MergePlan(self._catalyst, view, grouping, buffers, len(schemas))


def _column_names(index: int, call: AggregateCall) -> list[str]:
    """The stored names of a call's buffer."""
    names = [f"__sw_{index}_{each.name().lower()}" for each in call.buffer.attributes]
    # A regression has the buffers of several functions, with equal names.
    return [name if names.index(name) == at else f"{name}_{at}" for at, name in enumerate(names)]
