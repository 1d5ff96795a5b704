"""The plan of a query over all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_bridge.plans.operator_plan import EpochCost, OverRows, StoredRows, all_rows_text

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan


@dataclass(frozen=True, eq=False)
class GlobalWindowPlan(OverRows):
    """A query over all rows at once: a window without `PARTITION BY`, a long limit, an `OFFSET`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the internal view with the rows below it; it has the same columns as the leaf of the plan.
        names: of the columns of the result.
        text: for people.
        identity: a text, equal for queries that compute the same.
        query: the query over a leaf.
        leaves: id of the first attribute of the leaf → `ROWS`.
    """

    names: list[str]
    text: str
    query: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

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
        before = f"if a row of {self.rows} changes, one Spark job over all of them, before and after; "
        return EpochCost(before, "the rows that differ")
