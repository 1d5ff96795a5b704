"""The operator: one class for each operator whose rows are computed in each epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pyarrow as pa

from spark_bridge.operators.cut import Cut, InnerRows
from spark_bridge.plans.operator_plan import OperatorPlan

if TYPE_CHECKING:
    from spark_bridge.changes.parents import Parents
    from spark_bridge.engine.catalyst.trees import Plan
    from spark_bridge.engine.execution.leaves import LeafRows

P = TypeVar("P", bound=OperatorPlan)


@dataclass(frozen=True)
class OperatorInput:
    """The input of an operator, for one view in one epoch.

    Args:
        parents: the views that are read, including the internal views with the rows below the operator.
        time_us: time of the epoch, in microseconds since 1970.
        begun_us: the time as of which the rows of the view were correct before the changes; None for the time of the
            epoch.
        watermarks: source → its watermark, in microseconds since 1970.
    """

    parents: Parents
    time_us: int
    begun_us: int | None
    watermarks: Mapping[str, int]


class Operator(ABC, Generic[P]):
    """An operator of a query: from its part of the query to its plan, and from its plan to its rows.

    One instance lives as long as its materializer, and may keep what it can make again.  Views call it from threads of
    their own, but never two of them with the same plan.

    Attributes:
        plan_type: the class of its plans, which have the explanation and the identity.
        inner_rows: what the rows of its internal views are.
    """

    plan_type: ClassVar[type[OperatorPlan]]
    inner_rows: ClassVar[tuple[InnerRows, ...]]

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """Cuts the operator out of a query: a leaf under the columns of the query; None for another operator.

        The default is for an operator whose plans are made by others.

        Args:
            cut: makes internal views, and notes the plan of the operator.
            plan: analysed, with empty leaves.

        Raises:
            NotIncrementalError: the operator cannot be maintained as it is written.
        """
        return None

    @abstractmethod
    def changed(self, given: OperatorInput, plan: P, columns: list[str]) -> tuple[LeafRows, int]:
        """The rows that an epoch deletes and inserts, with their weights at the end, and the size of what is read.

        Args:
            given: with changes of one of its views, or a time that reaches a row.
            columns: of its result that are wanted, in its order.
        """

    @abstractmethod
    def all(
        self, given: OperatorInput, plan: P, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """All rows, or at least those with some values, and the size in bytes of the rows that they are made of.

        Args:
            given: the views at one version.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values in the wanted rows.
        """

    def is_due(self, given: OperatorInput, plan: P) -> bool:
        """Whether the time reaches a row, so that rows change without changes of the views below."""
        return False
