"""A distinct set: the calls with DISTINCT over the same values; each value counts once in its group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id
from spark_bridge.engine.execution.leaves import LeafRows, Leaves
from spark_bridge.operators.group.aggregate_calls import AggregateCall
from spark_bridge.operators.group.partial_aggregation import CallOverRows, PartialAggregation
from spark_bridge.plans.columns import same
from state.tables.group_key import keys_of_rows

_PAIRS = "pairs"

COUNT_FIELD = pa.field("__sw_count", pa.int64())
"""The number of rows that have a value in a group, beside the text of both."""

UNTIL_FIELD = pa.field("__sw_until", pa.int64())
"""The end of the window of the group, in microseconds since 1970, beside the text of a value in a view of windows that
close: the values leave with their window."""


@dataclass(frozen=True)
class CountedPairs:
    """Distinct pairs of group and value.

    Args:
        pairs: the number of the set, the grouping, the values; one row for each pair.
        keys: the text of each pair.
        rows: the number of its rows; 1 if they are not counted.
    """

    pairs: pa.Table
    keys: pa.Array
    rows: pa.Array


@dataclass(frozen=True)
class ChangedPairs:
    """Distinct pairs of group and value whose rows change.

    Args:
        pairs: the number of the set, the grouping, the values; one row for each pair.
        keys: the text of each pair.
        gone: the number of its rows that leave.
        new: the number of its rows that come.
    """

    pairs: pa.Table
    keys: pa.Array
    gone: pa.Array
    new: pa.Array


class DistinctSet:
    """The calls with DISTINCT over the same values of the same rows.

    An epoch's rows become distinct pairs of group and value, each with the number of its rows.  The new pairs are the
    input of the functions without DISTINCT; so are, for a subtraction, the pairs that no row has any more.

    Args:
        view: the name of the view, for messages.
        number: of the set within the view; a part of the stored texts.
        call: the first of the calls.
    """

    def __init__(self, catalyst: Catalyst, view: str, number: int, call: AggregateCall) -> None:
        self._catalyst = catalyst
        self._number = number
        self._view = view
        self._calls: list[tuple[AggregateCall, Sequence[str]]] = []
        self._values = call.inputs
        self._condition = call.filter

    @property
    def has_all_rows(self) -> bool:
        """Whether each row gives a pair: the calls have no FILTER."""
        return self._condition is None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the partials: the grouping, then the buffers."""
        return self._partials.schema

    def is_of(self, call: AggregateCall) -> bool:
        """Whether another call takes the same values of the same rows."""
        if self._condition is None or call.filter is None:
            same_rows = self._condition is call.filter
        else:
            same_rows = same(self._condition, call.filter)
        return (
            same_rows
            and len(call.inputs) == len(self._values)
            and all(same(left, right) for left, right in zip(self._values, call.inputs, strict=True))
        )

    def add(self, call: AggregateCall, names: Sequence[str]) -> None:
        """Adds a call with the names of its buffer's columns; call it before `plan`."""
        self._calls.append((call, names))

    def plan(self, rows: Plan, leaves: Mapping[int, str], grouping: Sequence[Expression], *, counts: bool) -> None:
        """Makes the plans over rows.

        Args:
            rows: a plan of the rows with empty leaves.
            leaves: id of a leaf's first attribute → the name of the leaf.
            grouping: expressions over them.
            counts: whether the rows of each pair are counted.
        """
        catalyst = self._catalyst
        self._grouping, self._counts = grouping, counts
        of_pairs = list(self.pair_aggregation(rows, leaves, []).schema)[: 1 + len(grouping) + len(self._values)]
        output = catalyst.schemas.attributes(pa.schema(of_pairs))
        self._groups = len(grouping)
        first_value = 1 + self._groups
        self._partials = PartialAggregation(
            catalyst,
            catalyst.rows.local_relation(catalyst.scala.seq(output)),
            {attribute_id(output[0]): _PAIRS},
            output[1:first_value],
            [CallOverRows(call, output[first_value:], None, names) for call, names in self._calls],
        )

    def pairs_of(self, pairs_by: PartialAggregation, rows: Leaves, tasks: int) -> CountedPairs:
        """The distinct pairs of new rows.

        Args:
            pairs_by: see `pair_aggregation`.
            rows: name of a leaf → its rows.
            tasks: see `PartialAggregation.run`.
        """
        found = pairs_by.run(rows, tasks)
        if not self._counts:
            return CountedPairs(found, _texts(found), pa.repeat(1, found.num_rows))
        pairs = found.remove_column(found.num_columns - 1)
        return CountedPairs(pairs, _texts(pairs), found.columns[-1].combine_chunks())

    def changes_of(self, pairs_by: PartialAggregation, rows: Leaves, tasks: int) -> ChangedPairs:
        """The distinct pairs of rows that leave or come.

        Args:
            pairs_by: see `pair_aggregation`, with the weights of the rows, -1 or 1, as the further value.
            rows: name of a leaf → its rows.
            tasks: see `PartialAggregation.run`.
        """
        found = pairs_by.run(rows, tasks)
        pairs = found.select(range(found.num_columns - 2))
        weights, counts = found.columns[-2:]
        of_both = {"gone": pc.less(weights, 0), "new": pc.greater(weights, 0)}
        texts = pa.table({"text": _texts(pairs), **{n: pc.if_else(is_, counts, 0) for n, is_ in of_both.items()}})
        sums = texts.group_by("text", use_threads=False).aggregate([("gone", "sum"), ("new", "sum")]).combine_chunks()
        keys = sums.column("text").combine_chunks()
        first = pc.index_in(keys, value_set=texts.column("text").combine_chunks())
        gone, new = (sums.column(name).combine_chunks() for name in ("gone_sum", "new_sum"))
        return ChangedPairs(pairs.take(first), keys, gone, new)

    def pair_aggregation(self, rows: Plan, leaves: Mapping[int, str], more: Sequence[Expression]) -> PartialAggregation:
        """The aggregation of rows to pairs, further values, and, if they are counted, the number of rows of each.

        Args:
            rows: a plan of the rows, with empty leaves.
            leaves: id of a leaf's first attribute → the name of the leaf.
            more: the further values.
        """
        catalyst = self._catalyst
        if self._condition is not None:
            rows = catalyst.queries.analyse(catalyst.plans.filter(self._condition, rows))
        # The stored pairs of the view's sets differ by this number.
        name = catalyst.expressions.number(self._number)
        counts = []
        if self._counts:
            of_rows = AggregateCall(catalyst, self._view, catalyst.functions.count_of_rows())
            counts = [CallOverRows(of_rows, [], None, [COUNT_FIELD.name])]
        grouping = [name, *self._grouping, *self._values, *more]
        return PartialAggregation(catalyst, rows, leaves, grouping, counts)

    def grouping_of(self, pairs: pa.Table) -> pa.Table:
        """The columns of the grouping."""
        return pairs.select(range(1, 1 + self._groups))

    def partials_of(self, pairs: pa.Table) -> pa.Table:
        """The grouping and the buffers of new pairs."""
        if pairs.num_rows == 0:
            return self._partials.schema.empty_table()
        return self._partials.run({_PAIRS: LeafRows.of_table(self._catalyst.spark, pairs)}, tasks=1)


def _texts(pairs: pa.Table) -> pa.Array:
    """The text of each pair."""
    return keys_of_rows(pairs.columns, pairs.num_rows)


def distinct_sets(
    catalyst: Catalyst, view: str, calls: Sequence[AggregateCall], names: Sequence[Sequence[str]]
) -> list[DistinctSet]:
    """The sets of a query's calls with DISTINCT.

    Args:
        view: the name of the view, for messages.
        names: the names of the columns of each call's buffer.
    """
    sets: list[DistinctSet] = []
    for call, columns in zip(calls, names, strict=True):
        if not call.is_distinct:
            continue
        found = next((each for each in sets if each.is_of(call)), None)
        if found is None:
            found = DistinctSet(catalyst, view, len(sets), call)
            sets.append(found)
        found.add(call, columns)
    return sets
