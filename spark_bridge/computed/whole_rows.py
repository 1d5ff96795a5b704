"""The rows of a query over all rows at once, or those that an epoch changes.  Nobody stores them.

An epoch that changes a row computes the query over all rows as they were, and over all rows as they are; rows that are
the same are left out.  Tasks do both if the rows are many::

    rows before ──→ query ──→ weight -1 ─┐
                                         ├─→ equal rows: sum of weights, those of 0 are left out
    rows after  ──→ query ──→ weight  1 ─┘
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from spark_bridge.analysis.computed_leaves import ROWS, WholePlan
from spark_bridge.catalyst.leaves import LeafRows, graft, with_weight
from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.equal_rows import different
from spark_bridge.changes.parents import Parents
from state.tables.records import ViewVersion
from state.tables.stored_rows import WEIGHT_FIELD

_WEIGHT = WEIGHT_FIELD.name


class WholeRows:
    """Makes the rows of such queries.

    Args:
        parents: the views with the rows below the queries are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, whole: WholePlan, columns: list[str]) -> tuple[LeafRows, int]:
        """The rows that leave and those that come, with their weights at the end, and the size of what is read.

        Args:
            whole: the query.
            columns: of its result that are wanted, in its order.
        """
        parent = self._parents.by_name[whole.rows]
        (before, size_before), (after, size_after) = (
            self._rows(whole, version) for version in (parent.version_before, parent.version)
        )
        size = size_before + size_after
        if before.few is None or after.few is None:
            was, is_now = (self._over(whole, each, size).select(*columns) for each in (before, after))
            return LeafRows.of_frame(_difference(was, is_now, columns)), size
        query = self._parents.queries.of(whole)
        both = with_weights(*(query.table(each.few, whole.schema) for each in (before, after)))
        changed = different(both.select([*columns, _WEIGHT]))
        return LeafRows.of_table(self._parents.catalyst.spark, changed), changed.nbytes

    def all(self, whole: WholePlan, columns: list[str]) -> tuple[LeafRows, int]:
        """All rows, and the size of the rows that they are made of, in bytes.  Arguments as for `changed`."""
        rows, size = self._rows(whole, self._parents.by_name[whole.rows].version)
        return LeafRows.of_frame(self._over(whole, rows, size).select(*columns)), size

    def _rows(self, whole: WholePlan, version: ViewVersion) -> tuple[LeafRows, int]:
        return self._parents.every(version, self._parents.by_name[whole.rows].plan.schema.names)

    def _over(self, whole: WholePlan, rows: LeafRows, nbytes: int) -> DataFrame:
        catalyst = self._parents.catalyst_for(nbytes)
        return catalyst.frame(graft(catalyst, whole.plan, whole.leaves, {ROWS: rows}))


def _difference(before: DataFrame, after: DataFrame, columns: list[str]) -> DataFrame:
    """The rows that are in one of both more often than in the other, each with its weight, -1 or 1."""
    both = with_weight(before, -1).union(with_weight(after, 1))
    names = [quoted_name(each) for each in columns]
    net = both.groupBy(*names).agg(F.sum(_WEIGHT).alias(_WEIGHT)).where(F.col(_WEIGHT) != 0)
    sign = F.signum(_WEIGHT).cast("bigint")
    return net.select(*names, F.explode(F.array_repeat(sign, F.abs(_WEIGHT).cast("int"))).alias(_WEIGHT))
