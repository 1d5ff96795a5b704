"""Queries over all rows at once: their rows, or those that an epoch changes.  Nobody stores them.

An epoch that changes a row computes the query over all rows as they were, and over all rows as they are; rows that are
the same are left out.  Tasks do both if the rows are many::

    rows before ──→ query ──→ weight -1 ─┐
                                         ├─→ equal rows: sum of weights, those of 0 are left out
    rows after  ──→ query ──→ weight  1 ─┘
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, FractionalType, MapType, StructType

from actors.schemas.ddl import quoted_name
from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.equal_rows import different
from spark_bridge.changes.parents import Parents
from spark_bridge.engine.catalyst.arrow_frames import spark_schema
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.operators.global_window.all_rows_cut import ALL_ROWS
from spark_bridge.operators.global_window.global_window_plan import GlobalWindowPlan
from spark_bridge.operators.operator import Operator, OperatorInput
from spark_bridge.plans.operator_plan import ROWS
from state.tables.records import ViewVersion
from state.tables.stored_rows import WEIGHT_FIELD

_WEIGHT = WEIGHT_FIELD.name


class GlobalWindowOperator(Operator[GlobalWindowPlan]):
    """Queries over all rows at once; windows without a key and long limits make their plans."""

    plan_type, inner_rows = GlobalWindowPlan, (ALL_ROWS,)

    def changed(self, given: OperatorInput, plan: GlobalWindowPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """The result over all rows as they were, and as they are, as far as they differ.  See `Operator.changed`."""
        parents = given.parents
        parent = parents.by_name[plan.rows]
        (before, size_before), (after, size_after) = (
            _rows(parents, plan, version) for version in (parent.version_before, parent.version)
        )
        size = size_before + size_after
        if before.few is None or after.few is None:
            both = LeafRows.together(
                parents.catalyst,
                [
                    _over(parents, plan, rows, columns, size).with_constant(parents.catalyst, WEIGHT_FIELD, weight)
                    for rows, weight in ((before, -1), (after, 1))
                ],
            )
            return _difference(parents, plan, both, columns, size), size
        query = parents.queries.of(plan)
        both = with_weights(*(query.table(each.few, plan.schema) for each in (before, after)))
        changed = different(both.select([*columns, _WEIGHT]))
        return LeafRows.of_table(parents.catalyst.spark, changed), changed.nbytes

    def all(
        self, given: OperatorInput, plan: GlobalWindowPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        parents = given.parents
        rows, size = _rows(parents, plan, parents.by_name[plan.rows].version)
        return _over(parents, plan, rows, columns, size), size


def _difference(parents: Parents, plan: GlobalWindowPlan, both: LeafRows, columns: list[str], nbytes: int) -> LeafRows:
    """The net changes of rows with weights: a delete and an insert of identical rows cancel each other."""
    schema = pa.schema([*(plan.schema.field(each) for each in columns), WEIGHT_FIELD])
    if any(_has(field.dataType, MapType) for field in spark_schema(schema)):
        # Spark does not group by maps.
        return LeafRows.of_table(parents.catalyst.spark, different(parents.queries.table(both, schema)))
    catalyst = parents.catalyst_for(nbytes)
    return parents.queries.of_frames(
        ("net rows", *columns), lambda both: _net_rows(both, columns), both, catalyst=catalyst
    )


def _rows(parents: Parents, plan: GlobalWindowPlan, version: ViewVersion) -> tuple[LeafRows, int]:
    return parents.every(version, parents.by_name[plan.rows].plan.schema.names)


def _over(parents: Parents, plan: GlobalWindowPlan, rows: LeafRows, columns: list[str], nbytes: int) -> LeafRows:
    return parents.computed(plan, "all", plan.query, plan.leaves, {ROWS: rows}, columns, nbytes)


def _net_rows(both: DataFrame, columns: list[str]) -> DataFrame:
    """The rows whose weights have another sum than 0, each as often, with its weight, -1 or 1; no column has a map."""
    values = [F.col(quoted_name(each)) for each in columns]
    # Spark groups both zeros together; their texts differ.
    is_exact = {field.name: not _has(field.dataType, FractionalType) for field in both.schema}
    texts = [value.cast("string") for name, value in zip(columns, values, strict=True) if not is_exact[name]]
    groups = [each.alias(f"__sw_group_{number}") for number, each in enumerate([*values, *texts])]
    firsts = [F.first(value).alias(name) for name, value in zip(columns, values, strict=True)]
    net = both.groupBy(*groups).agg(*firsts, F.sum(_WEIGHT).alias(_WEIGHT)).where(F.col(_WEIGHT) != 0)
    sign = F.signum(_WEIGHT).cast("bigint")
    return net.select(*values, F.explode(F.array_repeat(sign, F.abs(_WEIGHT).cast("int"))).alias(_WEIGHT))


def _has(data_type: DataType, kind: type[DataType]) -> bool:
    """True if a data type, or a type within it, is of a kind."""
    if isinstance(data_type, kind):
        return True
    if isinstance(data_type, ArrayType):
        return _has(data_type.elementType, kind)
    if isinstance(data_type, MapType):
        return _has(data_type.keyType, kind) or _has(data_type.valueType, kind)
    return isinstance(data_type, StructType) and any(_has(each.dataType, kind) for each in data_type)
