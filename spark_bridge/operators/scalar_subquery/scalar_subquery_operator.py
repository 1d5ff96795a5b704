"""Scalar subqueries: rows with single values, all of them or those that an epoch changes.  Nobody stores them.

With `-` and `+` for the rows that leave and come, `0` for those that stay, and E for the query::

    gone = E(rows-, values before) + E(rows0, values before)
    new  = E(rows+, values after)  + E(rows0, values after)

If the values are the same before and after, the rows that stay are not read.  Else they are read once, and each is
computed with the values before and with those after; it counts only if the results differ.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from spark_bridge.changes.equal_rows import different
from spark_bridge.changes.parents import Parents
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.cut import Cut
from spark_bridge.operators.operator import Operator, OperatorInput
from spark_bridge.operators.scalar_subquery.scalar_subquery_cut import BESIDE, VALUES, cut_scalar_subquery
from spark_bridge.operators.scalar_subquery.scalar_subquery_plan import AFTER, ScalarSubqueryPlan, SingleValue
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import WEIGHT_FIELD

_WEIGHT = WEIGHT_FIELD.name


class ScalarSubqueryOperator(Operator[ScalarSubqueryPlan]):
    """Rows with the single values of subqueries."""

    plan_type, inner_rows = ScalarSubqueryPlan, (BESIDE, VALUES)

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `cut_scalar_subquery`."""
        return cut_scalar_subquery(cut, plan)

    def changed(self, given: OperatorInput, plan: ScalarSubqueryPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """Changed rows; if a value changes, the rows that stay too.  See `Operator.changed`."""
        parents = given.parents
        before, after = _values(parents, plan)
        changes, spark = _changes(parents, plan, before, after), parents.catalyst.spark
        count(WorkCost(given=changes.num_rows))
        rows, staying, size = LeafRows.of_table(spark, changes), None, 0
        if not before.equals(after):
            staying, size = parents.staying(plan.rows, _names(parents, plan))
        if rows.few is not None and (staying is None or staying.few is not None):
            stay = [] if staying is None else [_with(staying.few, before, -1), _with(staying.few, after, 1)]
            result = parents.queries.of(plan).table(pa.concat_tables([changes, *stay]), plan.schema)
            changed = different(result.select([*columns, _WEIGHT]))
            return LeafRows.of_table(spark, changed), changed.nbytes
        size += changes.nbytes
        found = [_over(parents, plan, rows, [*columns, _WEIGHT], size)]
        if staying is not None:
            found.append(_differing(parents, plan, staying, before, after, columns, size))
        return LeafRows.together(parents.catalyst, found), size

    def all(
        self, given: OperatorInput, plan: ScalarSubqueryPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        parents = given.parents
        wanted = {stored: values[name] for name, stored in plan.unchanged.items() if name in values}
        rows, size = parents.all(plan.rows, _names(parents, plan), WantedRows(values=wanted))
        _, after = _values(parents, plan)
        if rows.few is not None:
            leaf = LeafRows.of_table(parents.catalyst.spark, _with(rows.few, after, 1))
        else:
            leaf = _beside(parents, rows, after.append_column(WEIGHT_FIELD, pa.array([1], pa.int64())))
        return _over(parents, plan, leaf, columns, size), size


def _over(parents: Parents, plan: ScalarSubqueryPlan, leaf: LeafRows, columns: list[str], nbytes: int) -> LeafRows:
    return parents.computed(plan, "all", plan.query, plan.leaves, {ROWS: leaf}, columns, nbytes)


def _beside(parents: Parents, rows: LeafRows, one: pa.Table) -> LeafRows:
    """Many rows, each with the columns of a single row."""
    return parents.queries.of_frames(
        "rows with single values",
        lambda rows, one: rows.crossJoin(F.broadcast(one)),
        rows,
        LeafRows.of_table(parents.catalyst.spark, one),
    )


def _names(parents: Parents, plan: ScalarSubqueryPlan) -> list[str]:
    return list(parents.by_name[plan.rows].plan.schema.names)


def _values(parents: Parents, plan: ScalarSubqueryPlan) -> tuple[pa.Table, pa.Table]:
    """The values as they were, and as they are: tables of one row."""
    worlds = [_single(parents, each) for each in plan.values]
    before, after = (_in_one_row([world[at] for world in worlds], plan.values) for at in (0, 1))
    return before, after


def _single(parents: Parents, value: SingleValue) -> tuple[pa.Table, pa.Table]:
    """The rows of the view of a single value as they were, and as they are: one, or none."""
    parent, names = parents.by_name[value.view], [stored for stored, _ in value.columns]
    if parent.changes is not None:
        gone, new = parents.gone(value.view).select(names), parent.changes.new.select(names)
        if gone.num_rows or new.num_rows:
            return gone, new
    rows, _ = parents.all(value.view, names, WantedRows())
    schema = pa.schema([parent.plan.schema.field(name) for name in names])
    present = parents.queries.table(rows, schema) if rows.few is None else rows.few
    return present, present


def _changes(parents: Parents, plan: ScalarSubqueryPlan, before: pa.Table, after: pa.Table) -> pa.Table:
    """The changed rows with their values: those that leave as they were, those that come as they are."""
    parent, names = parents.by_name[plan.rows], _names(parents, plan)
    schema = parent.plan.schema
    if parent.changes is None:
        return _with(schema.empty_table(), after, 1)
    gone, new = (each.select(names).cast(schema) for each in (parents.gone(plan.rows), parent.changes.new))
    return pa.concat_tables([_with(gone, before, -1), _with(new, after, 1)])


def _differing(
    parents: Parents,
    plan: ScalarSubqueryPlan,
    rows: LeafRows,
    before: pa.Table,
    after: pa.Table,
    columns: list[str],
    nbytes: int,
) -> LeafRows:
    """The results over many rows that stay, as far as they differ before and after, computed by tasks."""
    later = after.rename_columns([f"{AFTER}{name}" for name in after.schema.names])
    both = pa.table([*before.columns, *later.columns], names=[*before.schema.names, *later.schema.names])
    leaf = _beside(parents, rows, both)
    pairs = parents.computed(plan, "pairs", plan.pairs, plan.leaves, {ROWS: leaf}, ["before", "after"], nbytes)
    names = [f"result.{quoted_name(each)}" for each in columns]
    return parents.queries.of_frames(("differing results", *names), lambda pairs: _results(pairs, names), pairs)


def _results(pairs: DataFrame, names: list[str]) -> DataFrame:
    """The results that differ, with their weights."""
    results = [
        F.struct(F.col(name).alias("result"), F.lit(weight).cast("bigint").alias("weight"))
        for name, weight in (("before", -1), ("after", 1))
    ]
    each = pairs.select(F.explode(F.array(*results)).alias("each")).where("each.result IS NOT NULL")
    return each.select(*(f"each.{name}" for name in names), F.col("each.weight").alias(_WEIGHT))


def _in_one_row(rows: list[pa.Table], values: tuple[SingleValue, ...]) -> pa.Table:
    """The single rows beside each other, with nulls for one that is not there."""
    arrays, names = [], list[str]()
    for table, value in zip(rows, values, strict=True):
        for stored, name in value.columns:
            column = table.column(stored)
            arrays.append(column if table.num_rows else pa.nulls(1, column.type))
            names.append(name)
        arrays.append(pa.array([table.num_rows > 0]))
        names.append(value.flag)
    return pa.table(arrays, names=names)


def _with(rows: pa.Table, values: pa.Table, weight: int) -> pa.Table:
    """Rows with the values and a weight beside each."""
    repeated = values.take(pa.array(np.zeros(rows.num_rows, np.int64)))
    for name in repeated.schema.names:
        rows = rows.append_column(name, repeated.column(name))
    return rows.append_column(WEIGHT_FIELD, pa.array(np.full(rows.num_rows, weight), WEIGHT_FIELD.type))
