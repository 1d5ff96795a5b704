"""The calls of aggregate functions in a query, each in three steps by Spark's own code.

    partial   Spark's Partial aggregation over new rows fills the function's buffer (see `partial_aggregation`)
    merge     two buffers become one, by the function's own merge expressions
    value     the value of a buffer, by the function's own evaluation expression

A call with DISTINCT is the same function over values that are new in their group (see `distinct_set`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import DecimalType, FractionalType, IntegralType

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, simple_name
from spark_bridge.operators.group.aggregate_functions import maintained_function
from spark_bridge.operators.group.buffers import DeclarativeBuffer, TypedBuffer
from spark_bridge.operators.group.retraction import RETRACTABLE, terms_of
from spark_bridge.plans.columns import aggregate_of, same
from spark_bridge.plans.operators import refuse
from spark_bridge.plans.plan_text import call_text
from spark_bridge.plans.stored_values import can_be_stored, can_name_groups

if TYPE_CHECKING:
    from spark_bridge.plans.view_plan import ViewPlan

Removal = Literal["subtracted", "retracted", "kept", "lost", "helper"]
"""The effect of deleted rows on a call.

subtracted   Their buffer is subtracted.
retracted    Their digits are subtracted, see `retraction`; beyond the bound of the error the group is lost.
kept         The value stays, unless a deleted row has the least or greatest value.
lost         The group is computed again.
helper       The call is a helper aggregate of a retracted call.
"""


class AggregateCall:
    """One call of an aggregate function in a query.

    Attributes:
        expression: Spark's AggregateExpression.
        function: the maintained function.
        buffer: of that function.
        is_helper: see the argument.

    Args:
        view: the name of the view, for messages.
        expression: Spark's AggregateExpression.
        is_helper: whether it is a helper aggregate of a retracted call.

    Raises:
        NotIncrementalError: the function, or this form of the call, cannot be maintained.
    """

    def __init__(self, catalyst: Catalyst, view: str, expression: Expression, *, is_helper: bool = False) -> None:
        self._catalyst, self.is_helper = catalyst, is_helper
        self.expression = expression
        maintained = maintained_function(catalyst, view, expression.aggregateFunction())
        self.function = maintained.function
        self.buffer: DeclarativeBuffer | TypedBuffer = (
            TypedBuffer(catalyst, self.function, maintained.estimates)
            if maintained.is_typed
            else DeclarativeBuffer(catalyst, self.function)
        )
        self._check(view)

    @property
    def inputs(self) -> list[Expression]:
        """The function's arguments that depend on the row; constants are a part of the function."""
        return [child for child in self._catalyst.trees.items(self.function.children()) if not child.foldable()]

    @property
    def filter(self) -> Expression | None:
        """The condition of FILTER, if any."""
        condition = self.expression.filter()
        return condition.get() if condition.isDefined() else None

    @property
    def is_distinct(self) -> bool:
        return bool(self.expression.isDistinct())

    @property
    def name(self) -> str:
        """The name of the function, as Spark shows it."""
        return str(self.expression.aggregateFunction().prettyName())

    @property
    def removal(self) -> Removal:
        """What becomes of the buffer of a group when rows leave it; with DISTINCT, when values leave it."""
        kind = simple_name(self.function)
        if kind in ("Min", "Max"):
            return "kept"
        if self.is_helper:
            return "helper"
        if kind in ("Count", "BitXorAgg"):
            return "subtracted"
        if kind in ("Sum", "Average"):
            value_type = self._catalyst.schemas.data_type(self._catalyst.trees.items(self.function.children())[0])
            # The hidden sum of an average of integers is over other values, so it would count them apart.
            exact = DecimalType if kind == "Average" and self.is_distinct else IntegralType | DecimalType
            if isinstance(value_type, exact):
                return "subtracted"
            if not isinstance(value_type, FractionalType) or isinstance(value_type, DecimalType):
                return "lost"
        return "retracted" if kind in RETRACTABLE and not self.is_distinct else "lost"

    def over(self, inputs: Sequence[Expression], condition: Expression | None) -> Expression:
        """Spark's AggregateExpression of the function over other expressions, without DISTINCT.

        Args:
            inputs: one expression for each of `inputs`.
            condition: of FILTER, if any.
        """
        given = iter(inputs)
        children = self._catalyst.trees.items(self.function.children())
        children = [child if child.foldable() else next(given) for child in children]
        function = self._catalyst.trees.with_children(self.function, children) if children else self.function
        return function.toAggregateExpression(False, self._catalyst.scala.option(condition))

    def is_call(self, expression: Expression) -> bool:
        """Whether another expression is the same call."""
        return same(self.expression, expression)

    def _check(self, view: str) -> None:
        name = self.name
        for attribute in self.buffer.attributes:
            if not can_be_stored(self._catalyst.schemas, attribute):
                kind = self._catalyst.schemas.data_type(attribute).simpleString()
                advice = "aggregate its seconds instead" if "interval" in kind else "use values of another type"
                raise refuse(view, f"{name} over an interval" if "interval" in kind else f"{name} over {kind}", advice)
        if not self.is_distinct:
            return
        for value in self.inputs:
            if not can_name_groups(self._catalyst.schemas, value):
                kind = self._catalyst.schemas.data_type(value).simpleString()
                raise refuse(view, f"{name}(DISTINCT ...) over values of type {kind}", "use their parts instead")


def aggregate_calls(catalyst: Catalyst, view: str, aggregate: Plan) -> list[AggregateCall]:
    """The distinct calls of aggregate functions in an Aggregate, in the order in which they appear.

    Raises:
        NotIncrementalError: one of them cannot be maintained.
    """
    calls: list[AggregateCall] = []
    for expression in catalyst.trees.items(aggregate.aggregateExpressions()):
        for found in _aggregate_expressions(catalyst.trees, expression):
            if not any(call.is_call(found) for call in calls):
                calls.append(AggregateCall(catalyst, view, found))
    return calls


def can_be_subtracted(calls: Sequence[AggregateCall], *, counts: bool) -> bool:
    """Whether the calls of a view can lose rows: those with DISTINCT only if the rows of each value are counted."""
    return counts or not any(call.is_distinct for call in calls)


def with_helper_aggregates(
    catalyst: Catalyst, view: str, calls: Sequence[AggregateCall], *, retracts: bool = True
) -> list[AggregateCall]:
    """The calls of a query, then the helper aggregates for subtraction, then the helper aggregates for retraction.

    Args:
        view: the name of the view, for messages.
        calls: the calls of the query.
        retracts: whether to add the helper aggregates for retraction; an older view lacks them.
    """
    together = [*calls]

    def add(expression: Expression, *, is_helper: bool = False) -> None:
        # A magnitude is not subtracted, so it is never the sum that a query shows.
        if not any(known.is_helper == is_helper and known.is_call(expression) for known in together):
            together.append(AggregateCall(catalyst, view, expression, is_helper=is_helper))

    add(catalyst.functions.count_of_rows())
    for call in together:  # it grows: the hidden sum of an average needs a count, too
        for each in helper_aggregates_of(catalyst, call):
            add(each)
    for call in calls if retracts else ():
        if call.removal == "retracted":
            terms = terms_of(catalyst, call.function, call.filter)
            if terms.count is not None:
                add(terms.count)
            for each in terms.helpers:
                add(each, is_helper=True)
    return together


def helper_aggregates_of(catalyst: Catalyst, call: AggregateCall) -> list[Expression]:
    """The calls that a subtraction of this one needs: the count of its values last; none if it needs none."""
    kind = simple_name(call.function)
    if call.removal != "subtracted" or kind == "Count":
        return []
    value = catalyst.trees.items(call.function.children())[0]
    count = catalyst.functions.count(value, call.filter, is_distinct=call.is_distinct)
    of_integers = isinstance(catalyst.schemas.data_type(value), IntegralType)
    return [catalyst.functions.exact_sum(value, call.filter), count] if kind == "Average" and of_integers else [count]


def call_texts(catalyst: Catalyst, view: ViewPlan, calls: Sequence[AggregateCall]) -> tuple[str, list[str]]:
    """The text of the groups of an aggregate view, and those of calls over its rows.

    Equal texts of two views mean equal groups, and equal buffers in them: see `call_text`.
    """
    aggregate = aggregate_of(view.plan)
    within = [each.definition for each in view.computed.values()]
    text = partial(call_text, catalyst, aggregate, leaves=view.leaves, within=within)
    texts = [text(call=each.expression) for each in calls]
    return text(call=None), [
        f"helper {each}" if call.is_helper else each for call, each in zip(calls, texts, strict=True)
    ]


@dataclass(frozen=True)
class Missing:
    """The calls of a view that the stored groups of another one lack.

    Args:
        shown: their texts; empty if the other view has all of these calls itself.
        anywhere: those that its hidden calls are not either.
    """

    shown: tuple[str, ...]
    anywhere: tuple[str, ...]


def missing_calls(catalyst: Catalyst, before: ViewPlan, after: ViewPlan) -> Missing | None:
    """Compares the stored groups of an aggregate view with those that another view needs.

    Returns:
        The calls that the stored groups lack; None if the other view has no use for these groups.
    """
    for each in (before, after):
        if each.view_class != "aggregate" or each.closing is not None or each.timestamps.are_used:
            return None
    own, wanted = (aggregate_calls(catalyst, each.name, aggregate_of(each.plan)) for each in (before, after))
    has_counts = before.is_changing and can_be_subtracted(own, counts=bool(before.parents))
    all_stored = with_helper_aggregates(catalyst, before.name, own) if has_counts else own
    groups, stored_texts = call_texts(catalyst, before, all_stored)
    wanted_groups, wanted_texts = call_texts(catalyst, after, wanted)
    known = stored_texts[: len(own)]
    # The stored values of DISTINCT calls are numbered by these calls.
    distinct, wanted_distinct = (
        [text for call, text in zip(calls, texts, strict=False) if call.is_distinct]
        for calls, texts in ((own, known), (wanted, wanted_texts))
    )
    if groups != wanted_groups or distinct != wanted_distinct:
        return None
    of_call = {text: str(call.expression.sql()) for call, text in zip(wanted, wanted_texts, strict=True)}
    shown, anywhere = (
        tuple(name for text, name in of_call.items() if text not in there) for there in (known, stored_texts)
    )
    return None if of_call and len(anywhere) == len(of_call) else Missing(shown, anywhere)


def _aggregate_expressions(trees: Trees, expression: Expression) -> list[Expression]:
    if simple_name(expression) == "AggregateExpression":
        return [expression]
    return [found for child in trees.items(expression.children()) for found in _aggregate_expressions(trees, child)]
