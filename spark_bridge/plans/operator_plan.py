"""The plan of an operator whose rows are computed in each epoch from stored rows, and stored nowhere.

The stored rows are those of internal views: the sides of a join, the rows below a window, a limit or a temporal filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.trees import Plan

ROWS = "rows"
"""The name of the leaf with the rows, in the query of an operator over one internal view."""

StoredRows = Callable[[str], int | None]
"""The number of stored rows of a view; None if it is unknown."""


@dataclass(frozen=True)
class EpochCost:
    """The work of an epoch for an operator, for people.

    Args:
        before: its look-ups and jobs before the job of the view; ends with `; `.
        over: the rows that the job of the view gets.
    """

    before: str
    over: str


class OperatorPlan(Protocol):
    """The plan of one operator: an immutable value, equal to no other plan."""

    @property
    def name(self) -> str:
        """The name of the leaf that stands for its rows in the plan of its view."""

    @property
    def names(self) -> list[str]:
        """The names of its columns."""

    @property
    def sides(self) -> tuple[str, ...]:
        """The internal views with the rows that it is computed of."""

    @property
    def text(self) -> str:
        """Its description, for people."""

    @property
    def definition(self) -> str:
        """The computation, and the views that it reads: a part of the identity of its view."""

    @property
    def touched(self) -> str | None:
        """The rows that a changed row makes an epoch compute again, for people; None if `also_read` names them."""

    @property
    def reads_all(self) -> bool:
        """Whether an epoch may read all rows."""

    @property
    def is_timed(self) -> bool:
        """Whether its rows change as time passes."""

    def also_read(self, stored: StoredRows) -> str:
        """The rows that some epochs read besides the changed ones, for people: a text behind `; `, or nothing."""

    def cost(self, rows: str) -> EpochCost:
        """The work of an epoch for the operator.

        Args:
            rows: the changed rows of the views below, for people.
        """


class PlanDefaults:
    """What is true of most operators."""

    @property
    def reads_all(self) -> bool:
        """Only when it is computed first."""
        return False

    @property
    def is_timed(self) -> bool:
        """It depends on rows alone."""
        return False

    def also_read(self, stored: StoredRows) -> str:
        """Nothing."""
        return ""


class QueriedPlan(OperatorPlan, Protocol):
    """The plan of an operator of which Spark computes a query in an epoch."""

    @property
    def query(self) -> Plan:
        """The query, over one leaf."""


@dataclass(frozen=True, eq=False)
class OverRows(PlanDefaults):
    """An operator over the rows of one internal view.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the internal view.
        identity: a text, equal for operators that compute the same.
    """

    name: str
    rows: str
    identity: str

    @property
    def sides(self) -> tuple[str, ...]:
        """The view with the rows below it."""
        return (self.rows,)

    @property
    def definition(self) -> str:
        """The computation, and the view that it reads, for an identity."""
        return f"{self.name} of {self.rows} is {self.identity}"


def all_rows_text(plan: OperatorPlan, stored: StoredRows) -> str:
    """`OperatorPlan.also_read` of an operator that reads all rows when a row, or a value beside the rows, changes."""
    rows, *values = plan.sides
    count = stored(rows)
    number = "all rows" if count is None else f"all {count:,} rows"
    return f"; {number} of {rows} if {' or '.join(values) or 'one of them'} changes"
