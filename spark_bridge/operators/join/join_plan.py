"""The plan of a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_bridge.changes.joined_positions import JoinKind
from spark_bridge.plans.expiry import EventTime, Expiry
from spark_bridge.plans.operator_plan import EpochCost, PlanDefaults

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True)
class Between:
    """The bounds of a join for the event times of partners.

    Args:
        least_us: the time of the right one is at least so many microseconds after that of the left one; may be
            negative, as may be `most_us`.
        most_us: and at most so many.
    """

    left: EventTime
    right: EventTime
    least_us: int
    most_us: int


@dataclass(frozen=True, eq=False)
class JoinPlan(PlanDefaults):
    """A join.

    Args:
        name: of the leaf that stands for it in the plan of its view.
        left: the internal view with the rows of the left side; they have the hash of their key in `__sw_join`.
        right: the internal view of the right side; it may be the view of the left side.
        columns: the columns of the result: its name, its side, and the column of that side; no column of a side for a
            value that the join itself computes.
        key: the columns of the left side that are its key, as far as the key is columns.
        identity: a text, equal for joins that compute the same.
        text: for people.
        plan: the join with two empty leaves; its columns are those of the result.
        leaves: id of a leaf's first attribute → its side.
        condition: a query over one leaf, whose only column is true for partners.
        condition_columns: the columns of that leaf: their side, and the column of that side.
        between: the bounds of the event times of partners, if there are two and they are asked for.
    """

    name: str
    kind: JoinKind
    left: str
    right: str
    columns: tuple[tuple[str, str, str | None], ...]
    key: tuple[str, ...]
    identity: str
    text: str
    plan: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)
    condition: Plan = field(repr=False)
    condition_columns: tuple[tuple[str, str], ...] = field(repr=False)
    between: Between | None = None

    @property
    def expiries(self) -> Iterator[tuple[str, Expiry]]:
        """Yields the internal view of each side with the expiry of its rows, if the join has bounds.

        A row is needed as long as a partner may arrive.  In all but inner joins, the partners of such a row are
        needed too: without them, the row would seem to have no partner.
        """
        if self.between is None:
            return
        left, right = self.between.left, self.between.right
        least, most = self.between.least_us, self.between.most_us
        of_left, of_right = {(right.source, most)}, {(left.source, -least)}
        if self.kind != "inner":
            of_right.add((right.source, most - least))
        if self.kind == "full":
            of_left.add((left.source, most - least))
        yield self.left, Expiry(left, frozenset(of_left))
        yield self.right, Expiry(right, frozenset(of_right))

    @property
    def sides(self) -> tuple[str, ...]:
        """The views with the rows of its sides, the left one first."""
        return self.left, self.right

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _, _ in self.columns]

    @property
    def touched(self) -> str:
        """The part of the rows that an epoch computes again, for people."""
        return "pairs"

    def cost(self, rows: str) -> EpochCost:
        """See `OperatorPlan.cost`."""
        return EpochCost(f"a look-up of the partners of {rows}; ", "the rows that meet")

    @property
    def definition(self) -> str:
        """The computation, and the views that it reads, for an identity."""
        return f"{self.name} of {self.left} and {self.right} is {self.identity}"

    @property
    def query(self) -> Plan:
        """The condition, over rows that meet."""
        return self.condition
