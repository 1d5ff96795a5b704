"""The plan of rows with the single values of subqueries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_bridge.plans.operator_plan import EpochCost, PlanDefaults, StoredRows, all_rows_text

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan

AFTER = "__sw_after"
"""The prefix of the column with the new value, in rows with the old value and the new one."""


@dataclass(frozen=True)
class SingleValue:
    """The one row of a view, beside other rows.

    Args:
        view: the internal view that has it, or no row.
        columns: its columns, and their names beside the rows.
        flag: the column that is true if there is a row.
    """

    view: str
    columns: tuple[tuple[str, str], ...]
    flag: str


@dataclass(frozen=True, eq=False)
class ScalarSubqueryPlan(PlanDefaults):
    """Projections and filters over rows with single values, such as the values of uncorrelated subqueries.

    Args:
        name: of the leaf that represents its rows in the plan of its view.
        rows: the internal view with the rows.
        names: of the columns of the result.
        unchanged: column of the result → the column of the rows that it is.
        identity: a text, equal for plans that compute the same.
        query: the query over a leaf with the columns of the rows and of `values`, then `__sw_weight`, which is also the
            last column of the result.
        schema: of the result of that query.
        pairs: a query over a leaf with the rows, the old values, and the new values, whose names have the prefix
            `AFTER`.  Its columns are the structs `before` and `after` of each row whose result differs.  A struct is
            null if the row has no result.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    name: str
    rows: str
    values: tuple[SingleValue, ...]
    names: list[str]
    unchanged: Mapping[str, str]
    identity: str
    query: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    pairs: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def sides(self) -> tuple[str, ...]:
        """The view with the rows, and those with the values."""
        return (self.rows, *dict.fromkeys(each.view for each in self.values))

    @property
    def text(self) -> str:
        """For people."""
        return "rows with single values beside them"

    @property
    def touched(self) -> None:
        """Nothing by itself: see `also_read`."""

    @property
    def reads_all(self) -> bool:
        """Always."""
        return True

    def also_read(self, stored: StoredRows) -> str:
        """All rows."""
        return all_rows_text(self, stored)

    def cost(self, rows: str) -> EpochCost:
        """See `OperatorPlan.cost`."""
        below, *values = self.sides
        before = f"if the value of {' or '.join(values)} changes, one Spark job over all rows of {below}; "
        return EpochCost(before, "the rows whose results change")

    @property
    def definition(self) -> str:
        """The computation, and the views that it reads, for an identity."""
        values = " and ".join(each.view for each in self.values)
        return f"{self.name} of {self.rows} beside {values} is {self.identity}"
