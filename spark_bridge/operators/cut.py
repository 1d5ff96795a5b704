"""The cut of an operator out of a query: what each operator does it with."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import pyarrow as pa

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.operators import ExpressionCheck, refuse
from spark_bridge.plans.plan_text import identity_text
from spark_bridge.plans.stored_values import can_name_groups
from state.tables.stored_rows import inner_name

_NO_NAME = re.compile(r"(?:#\d+L?|\W)+")
"""The parts of Spark's names that are no words: signs, and the number of a column, which differs between sessions."""


@dataclass(frozen=True)
class InnerRows:
    """The description of the rows of an internal view, for people.

    Args:
        text: as in a reason: "v.1 has {text}".
        whose: as in a refusal: "{whose} cannot be stored".
    """

    text: str
    whose: str


@dataclass(frozen=True)
class InnerView:
    """A part of a query that was cut out of it.

    Args:
        name: recorded name of its view.
        plan: analysed, with unique names of columns; a deeper part is a leaf in it.
    """

    name: str
    plan: Plan
    rows: InnerRows


class Cut(ABC):
    """Cuts the operators with state below the top of a query out of it; equal parts become one internal view.

    Attributes:
        catalyst: of the session.
        view: the name of the view, for messages.
        check: refuses expressions that cannot be maintained.
        single_leaves: ids of the first attributes of leaves that have one row at most.
        event_times: source → the column with its event time, if the bounds of joins are asked for.
        views: the internal views that were cut out, the parents first.
        computed: name of a leaf → the operator that it stands for.
        leaves: id of a leaf's first attribute → the source, the parent, the internal view or the operator.

    Args:
        leaves: those of the query.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: str,
        leaves: Mapping[int, str],
        check: ExpressionCheck,
        single_leaves: frozenset[int],
        event_times: Mapping[str, str],
    ) -> None:
        self.catalyst, self.view, self.check = catalyst, view, check
        self.single_leaves, self.event_times = single_leaves, event_times
        self._known: dict[str, InnerView] = {}
        self.views: list[InnerView] = []
        self.computed: dict[str, OperatorPlan] = {}
        self.leaves = dict(leaves)

    @abstractmethod
    def of(self, plan: Plan) -> Plan:
        """A query over its internal views and operators.  Its own aggregation stays, under projections and filters."""

    @abstractmethod
    def below(self, plan: Plan) -> Plan:
        """A part below an operator over its internal views and operators; its aggregation becomes one."""

    def inner(self, plan: Plan, more: Sequence[Expression], rows: InnerRows) -> InnerView:
        """The internal view of a part of the query; equal parts have one.

        Args:
            more: further columns, at the end.
        """
        catalyst = self.catalyst
        columns = catalyst.trees.items(plan.output())
        named = [*map(catalyst.expressions.alias, columns, unique_names(str(each.name()) for each in columns)), *more]
        if not named:  # rows that are only counted
            named = [catalyst.expressions.alias(catalyst.expressions.number(1), "one")]
        inner = catalyst.plans.project(named, plan)
        identity = identity_text(catalyst.trees, inner, self.leaves, "", [])
        if identity not in self._known:
            view = InnerView(inner_name(self.view, 1 + len(self.views)), inner, rows)
            self._known[identity] = view
            self.views.append(view)
        return self._known[identity]

    def add(self, plan: OperatorPlan, output: Iterable[Expression]) -> Plan:
        """Notes the plan of an operator; returns the leaf that stands for its rows.

        Args:
            plan: its plan, with a name of `next_name`.
            output: the columns of its result.
        """
        self.computed[plan.name] = plan
        leaf = self.catalyst.rows.local_relation(self.catalyst.scala.seq(output)).newInstance()
        self.leaves[attribute_id(leaf.output().apply(0))] = plan.name
        return leaf

    def next_name(self, word: str) -> str:
        """The name of the next operator.

        Args:
            word: for what it is, as `join`.
        """
        return f"{word} {1 + len(self.computed)}"

    def under_columns(self, plan: Plan, leaf: Plan) -> Plan:
        """The rows of a leaf under the columns of a plan."""
        return self.catalyst.plans.project(self.renamed(plan, leaf), leaf)

    def renamed(self, plan: Plan, leaf: Plan) -> list[Expression]:
        """The first columns of a leaf under the names and ids of a plan's columns."""
        columns = zip(self.catalyst.trees.items(leaf.output()), self.catalyst.trees.items(plan.output()), strict=False)
        return [self.catalyst.expressions.alias_as(*each) for each in columns]

    def require_values(self, columns: Iterable[Expression], what: str) -> None:
        """Refuses columns of rows that leave by their values, if equal values cannot be found.

        Args:
            what: the operator, for the message.

        Raises:
            NotIncrementalError: the type of a column has no equality.
        """
        for each in columns:
            if not can_name_groups(self.catalyst.schemas, each):
                kind = self.catalyst.schemas.data_type(each).simpleString()
                raise refuse(self.view, f"{what} beside {each.name()} of type {kind}", "take its entries")


def unique_names(names: Iterable[str]) -> list[str]:
    """Names of letters, digits and underscores, each once, whether upper or lower case."""
    unique: dict[str, str] = {}
    for name in (_NO_NAME.sub("_", each).strip("_") or "column" for each in names):
        candidates = chain([name], (f"{name}_{number}" for number in count(2)))
        free = next(each for each in candidates if each.lower() not in unique)
        unique[free.lower()] = free
    return list(unique.values())


def leaf_with(catalyst: Catalyst, columns: Sequence[Expression], last: pa.Field) -> Plan:
    """An empty leaf with fresh columns, and a further one at the end."""
    fresh = catalyst.trees.items(catalyst.rows.local_relation(catalyst.scala.seq(columns)).newInstance().output())
    return catalyst.rows.local_relation(catalyst.scala.seq([*fresh, *catalyst.schemas.attributes(pa.schema([last]))]))
