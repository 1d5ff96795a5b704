"""The plan of window functions by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_bridge.plans.operator_plan import EpochCost, OverRows

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan


@dataclass(frozen=True, eq=False)
class WindowPlan(OverRows):
    """Window functions over the rows of each key: the columns of their `PARTITION BY`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the internal view with the rows below it; they have the hash of their key in `__sw_join`.
        columns: of the result: the name, and the column of the internal view that it has unchanged, if any.
        key: the columns of the internal view that are its key, as far as the key is columns.
        identity: a text, equal for windows that compute the same.
        text: for people.
        query: the windows over a leaf with the rows and `__sw_weight`, which is the last column of the result, too.
            Rows of different weights do not see each other.
        schema: of the result of that query.
        whole: the windows over a leaf with the rows alone.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    columns: tuple[tuple[str, str | None], ...]
    key: frozenset[str]
    text: str
    query: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    whole: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.columns]

    @property
    def touched(self) -> str:
        """The part of the rows that an epoch computes again, for people."""
        return "keys"

    def cost(self, rows: str) -> EpochCost:
        """See `OperatorPlan.cost`."""
        before = f"a look-up of all rows with the keys of {rows}; one Spark job over them, before and after; "
        return EpochCost(before, "the rows whose values change")
