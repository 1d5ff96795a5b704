"""The plan of one join within a query: its sides are stored, as two hidden views, and its rows are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spark_bridge.catalyst.catalyst import Plan

JoinKind = Literal["inner", "left", "semi", "anti", "existence", "full"]
"""The rows of a join: pairs, also with nulls in place of a partner, or rows of the left side.

`existence` has every row of the left side, and whether it has a partner as a column.  A right join is a left one with
its sides exchanged.
"""

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """A join.

    Args:
        name: of the leaf that stands for it in the plan of its view.
        kind: what its rows are.
        left: the hidden view with the rows of the left side; they have the hash of their key in `__sw_join`.
        right: that of the right side; it may be the same one.
        columns: the columns of the result: its name, its side, and the column of that side; no column of a side for a
            value that the join itself computes.
        identity: a text, equal for joins that compute the same.
        text: for people.
        plan: the join with two empty leaves; its columns are those of the result.
        leaves: id of a leaf's first attribute → its side.
        condition: a query over one leaf, whose only column is true for partners.
        condition_columns: the columns of that leaf: their side, and the column of that side.
    """

    name: str
    kind: JoinKind
    left: str
    right: str
    columns: tuple[tuple[str, str, str | None], ...]
    identity: str
    text: str
    plan: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)
    condition: Plan = field(repr=False)
    condition_columns: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def sides(self) -> tuple[str, str]:
        """The views with the rows of its sides, the left one first."""
        return self.left, self.right

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _, _ in self.columns]
