"""The plan of a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_bridge.plans.operator_plan import EpochCost, OverRows

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan

POSITION_FIELD = pa.field("__sw_position", pa.int64())
"""The number of a row among those that are put in order."""


@dataclass(frozen=True, eq=False)
class LimitPlan(OverRows):
    """The first rows in an order: an `ORDER BY` with a `LIMIT`, and perhaps an `OFFSET`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the internal view with the rows below it; it has the same columns.
        skipped: the number of first rows that are left out.
        end: the number of first rows, with those that are left out.
        identity: a text, equal for limits that compute the same.
        query: the numbers of rows, in the order of the rows; of rows that tie, the least number comes first.  Its leaf
            has the rows, with the numbers in `__sw_position`, the last column.
        whole: the rows of a leaf in their order.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    names: list[str]
    skipped: int
    end: int
    query: Plan = field(repr=False)
    whole: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def text(self) -> str:
        """For people."""
        after = f" after {self.skipped:,} others" if self.skipped else ""
        return f"the first {self.end - self.skipped:,} rows in an order{after}"

    @property
    def touched(self) -> str:
        """The part of the rows that an epoch computes again, for people."""
        return "order"

    def cost(self, rows: str) -> EpochCost:
        """See `OperatorPlan.cost`."""
        before = (
            f"one Spark job that orders {rows}, with the first rows, which are kept in memory beside spare ones; "
            "a job over all rows at a start, and when the spare ones have left; "
        )
        return EpochCost(before, "the first rows that come and leave")

    @property
    def definition(self) -> str:
        """The computation, and the view that it reads, for an identity."""
        return f"{self.name} of {self.rows} is rows {self.skipped} to {self.end} of {self.identity}"
