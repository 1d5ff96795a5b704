"""The plan of one join within a query: its sides are stored, as two hidden views, and its rows are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spark_bridge.catalyst.catalyst import Plan

JoinKind = Literal["inner", "left", "full"]
"""The rule by which rows of a join come and leave: as pairs, with rows of the left side, or by the keys of both sides.

`left` is any join whose result falls apart by the rows of its left side: left outer, semi, anti, and the existence of a
partner as a column.  A right join is one with its sides exchanged.
"""

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True)
class JoinPlan:
    """A join.

    Args:
        name: of the leaf that stands for it in the plan of its view.
        kind: the rule by which its rows come and leave.
        left: the hidden view with the rows of the left side; they have the hash of their key in `__sw_join`.
        right: that of the right side; it may be the same one.
        columns: the columns of the result: its name, its side, and the column of that side; no column of a side for a
            value that the join itself computes.
        identity: a text, equal for joins that compute the same.
        text: for people.
        plan: the join with two empty leaves; its columns are those of the result.
        leaves: id of a leaf's first attribute → its side.
        weighted: the same, of rows with weights: rows meet if their weights are equal, and the result has that weight.
        weighted_leaves: id of a leaf's first attribute → its side.
    """

    name: str
    kind: JoinKind
    left: str
    right: str
    columns: tuple[tuple[str, str, str | None], ...]
    identity: str
    text: str
    plan: Plan = field(repr=False, compare=False)
    leaves: Mapping[int, str] = field(repr=False, compare=False)
    weighted: Plan = field(repr=False, compare=False)
    weighted_leaves: Mapping[int, str] = field(repr=False, compare=False)

    @property
    def sides(self) -> tuple[str, str]:
        """The views with the rows of its sides, the left one first."""
        return self.left, self.right

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _, _ in self.columns]
