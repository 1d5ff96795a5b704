"""A distinct set: the calls with DISTINCT over the same values; each value counts once in its group."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_bridge.aggregation.partial_aggregation import CallOverRows, PartialAggregation
from spark_bridge.analysis.aggregate_calls import AggregateCall
from spark_bridge.analysis.columns import same
from spark_bridge.catalyst.arrow_frames import frame_of_table
from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan
from state.tables.group_key import group_keys


class DistinctSet:
    """The calls with DISTINCT over the same values of the same rows.

    An epoch's rows become distinct pairs of group and value.  The new pairs are the input of the functions without
    DISTINCT.

    Args:
        catalyst: of the session.
        number: of the set within the view; a part of the stored texts.
        call: the first of the calls.
    """

    def __init__(self, catalyst: Catalyst, number: int, call: AggregateCall) -> None:
        self._catalyst = catalyst
        self._number = number
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

    def plan(self, rows: Plan, grouping: Sequence[Expression]) -> None:
        """Makes the plans over rows, grouped by these expressions."""
        catalyst = self._catalyst
        self._filtered = None if self._condition is None else catalyst.analyse(catalyst.filter(self._condition, rows))
        # The stored pairs of the view's sets differ by this number.
        name = catalyst.number(self._number)
        self._pairs = PartialAggregation(
            catalyst, rows if self._filtered is None else self._filtered, [name, *grouping, *self._values], []
        )
        output = catalyst.attributes(self._pairs.schema)
        self._pair_output = catalyst.seq(output)
        self._groups = len(grouping)
        first_value = 1 + self._groups
        self._partials = PartialAggregation(
            catalyst,
            catalyst.local_relation(self._pair_output),
            output[1:first_value],
            [CallOverRows(call, output[first_value:], None, names) for call, names in self._calls],
        )

    def pairs_of(self, rows: Plan, one_partition: bool) -> pa.Table:
        """The distinct pairs of new rows: the number of the set, the grouping, the values."""
        if self._filtered is not None:
            rows = self._catalyst.with_children(self._filtered, [rows])
        return self._pairs.run(rows, one_partition)

    def keys_of(self, pairs: pa.Table) -> pa.Array:
        """The text of each pair."""
        return group_keys(pairs.columns) if pairs.num_rows else pa.array([], pa.string())

    def grouping_of(self, pairs: pa.Table) -> pa.Table:
        """The columns of the grouping."""
        return pairs.select(range(1, 1 + self._groups))

    def partials_of(self, pairs: pa.Table) -> pa.Table:
        """The grouping and the buffers of new pairs."""
        if pairs.num_rows == 0:
            return self._partials.schema.empty_table()
        leaf = self._catalyst.leaf(self._pair_output, frame_of_table(self._catalyst.spark, pairs))
        return self._partials.run(leaf, one_partition=True)


def distinct_sets(
    catalyst: Catalyst, calls: Sequence[AggregateCall], names: Sequence[Sequence[str]]
) -> list[DistinctSet]:
    """The sets of a query's calls with DISTINCT.

    Args:
        catalyst: of the session.
        calls: all calls.
        names: the names of the columns of each call's buffer.
    """
    sets: list[DistinctSet] = []
    for call, columns in zip(calls, names, strict=True):
        if not call.is_distinct:
            continue
        found = next((each for each in sets if each.is_of(call)), None)
        if found is None:
            found = DistinctSet(catalyst, len(sets), call)
            sets.append(found)
        found.add(call, columns)
    return sets
