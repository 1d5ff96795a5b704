"""Orders made total, so that a view has one answer: rows that tie are told apart by their own columns.

    max_by(x, y)                                 of equally high y the largest x; min_by the smallest
    row_number, ntile, lag, lead, ROWS frames    the columns below the window follow in its ORDER BY
    first_value, last_value over a RANGE frame   the first or last row by that total order
    ORDER BY ... LIMIT                           the columns below the sort follow in it

Values that are equal in SQL but not identical, as both zeros, are ordered by their texts at last, see `state.equality`:
another choice after a restart would retract a row that was never inserted.  Identical rows are interchangeable.
Functions of peers (rank, a sum over a RANGE frame) stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id, is_attribute, simple_name
from spark_bridge.plans.operators import refuse

LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail"})
_KEEPS_ORDER = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Project", "Filter", "SubqueryAlias"})
"""Operators that give rows in the order of their child."""

_BY_ANOTHER = frozenset({"MaxBy", "MinBy"})
_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_OF_POSITION = frozenset({"RowNumber", "NTile", "Lag", "Lead"})
_AT_AN_END = frozenset({"First", "Last", "NthValue"})
_WITH_ORDERS = ("PLAN_EXPRESSION", "AGGREGATE_EXPRESSION")
_Use = Literal["rows", "peers", "ends"]


def is_ordered(plan: Plan) -> bool:
    """Whether the rows of a plan have an order."""
    while simple_name(plan) in _KEEPS_ORDER:
        plan = plan.child()
    return simple_name(plan) == "Sort" and bool(getattr(plan, "global")())


class TotalOrder:
    """Makes the orders in a plan total.

    Args:
        view: the name of the view, for messages.
    """

    def __init__(self, catalyst: Catalyst, view: str) -> None:
        self._catalyst, self._view = catalyst, view

    def of(self, plan: Plan) -> Plan:
        """The analysed plan with total orders; the same object if nothing changes.

        Raises:
            NotIncrementalError: a function takes a row of an order that cannot be made total.
        """
        children = self._catalyst.trees.items(plan.children())
        total = [self.of(each) for each in children]
        if simple_name(plan) in LIMITS:
            total = [self._sorted(each) for each in total]
        if not _are_same(total, children):
            plan = self._catalyst.trees.with_children(plan, total)
        plan = self._with_expressions(plan)
        return self._window(plan) if simple_name(plan) == "Window" else plan

    # Expressions

    def _with_expressions(self, plan: Plan) -> Plan:
        """The operator with `max_by`, `min_by` and the plans of subqueries rewritten."""
        catalyst = self._catalyst
        if not any(catalyst.trees.may_have(plan, pattern) for pattern in _WITH_ORDERS):
            return plan
        if all(self._expression(each) is each for each in catalyst.trees.items(plan.expressions())):
            return plan
        total = catalyst.plans.with_expressions(plan, self._expression)
        if total is None:
            raise refuse(self._view, f"a subquery in {simple_name(plan)}", "write it in SELECT, WHERE or ON")
        return total

    def _expression(self, expression: Expression) -> Expression:
        if not self._may_have_order(expression):
            return expression
        if self._catalyst.trees.is_instance(expression, "catalyst.expressions.SubqueryExpression"):
            plan = expression.plan()
            total_plan = self.of(plan)
            return expression if total_plan is plan else expression.withNewPlan(total_plan)
        children = self._catalyst.trees.items(expression.children())
        total = [self._expression(each) for each in children]
        if not _are_same(total, children):
            expression = expression.withNewChildren(self._catalyst.scala.seq(total))
        return self._by_value_too(expression) if simple_name(expression) in _BY_ANOTHER else expression

    def _may_have_order(self, expression: Expression) -> bool:
        catalyst = self._catalyst
        is_by_another = catalyst.trees.has_part(expression, "catalyst.expressions.aggregate.MaxMinBy")
        return is_by_another or catalyst.trees.may_have(expression, "PLAN_EXPRESSION")

    def _by_value_too(self, function: Expression) -> Expression:
        """`max_by` or `min_by` by the pair of the order and the value; a null order is still none."""
        order, value = function.orderingExpr(), function.valueExpr()
        column, by_value = self._catalyst.queries.column(order), self._catalyst.queries.column(self._orderable(value))
        pair = F.when(column.isNotNull(), F.struct(column.alias("order"), by_value.alias("value")))
        return function.withNewChildren(self._catalyst.scala.seq([value, self._catalyst.queries.expression(pair)]))

    def _orderable(self, value: Expression) -> Expression:
        """The value, or its text if its type has no order: a map."""
        catalyst = self._catalyst
        if catalyst.expressions.is_orderable(value):
            return value
        return catalyst.queries.expression(catalyst.queries.column(value).cast("string"))

    # Orders

    def _sorted(self, plan: Plan) -> Plan:
        """The plan with a total order in the Sort that decides the order of its rows."""
        if simple_name(plan) == "Sort":
            order = self._catalyst.trees.items(plan.order())
            ties = self.ties(order, self._catalyst.trees.items(plan.child().output()))
            return self._catalyst.plans.sort([*order, *ties], plan.child()) if ties else plan
        if simple_name(plan) not in _KEEPS_ORDER:
            return plan
        child = plan.child()
        total = self._sorted(child)
        return plan if total is child else self._catalyst.trees.with_children(plan, [total])

    def ties(self, order: Collection[Expression], columns: Collection[Expression]) -> list[Expression]:
        """The further keys of an order that tell rows with these columns apart."""
        catalyst = self._catalyst
        known = {attribute_id(each.child()) for each in order if is_attribute(each.child())}
        keys = [self._orderable(each) for each in columns if attribute_id(each) not in known]
        # Spark evaluates a key only if all keys before it tie.
        queries, floats = catalyst.queries, [each for each in columns if has_floats(each)]
        texts = [queries.expression(queries.column(each).cast("string")) for each in floats]
        return [catalyst.expressions.ascending(each) for each in (*keys, *texts)]

    def _window(self, plan: Plan) -> Plan:
        """The window, with the functions that tell tied rows apart in one of their own, with a total order."""
        catalyst = self._catalyst
        by_use: dict[_Use, list[Expression]] = {"rows": [], "peers": [], "ends": []}
        for each in catalyst.trees.items(plan.windowExpressions()):
            by_use[self._use_of_order(each.child())].append(each)
        if not by_use["rows"] and not by_use["ends"]:
            return plan
        order = catalyst.trees.items(plan.orderSpec())
        order += self.ties(order, catalyst.trees.items(plan.child().output()))
        of_rows = [self._over(each, each.child().windowFunction(), order) for each in by_use["rows"]]
        of_peers = by_use["peers"]
        if by_use["ends"]:
            number = self._numbered(plan, order)
            of_rows.append(number)
            of_peers += [self._end(each, number.toAttribute()) for each in by_use["ends"]]
        total = catalyst.plans.window(plan, of_rows, plan.child(), order)
        if of_peers:
            total = catalyst.plans.window(plan, of_peers, total)
        return catalyst.plans.project(catalyst.trees.items(plan.output()), total)

    def _use_of_order(self, window: Expression) -> _Use:
        """Whether the function sees single rows of the order, peers as a whole, or the ends of a frame of peers."""
        kind, frame = function_name(window), window.windowSpec().frameSpecification()
        edges = simple_name(frame.lower()), simple_name(frame.upper())
        is_whole = edges == ("UnboundedPreceding$", "UnboundedFollowing$")
        of_rows = simple_name(frame.frameType()) == "RowFrame$"
        if kind in _RANKS:
            return "peers"
        if kind in _OF_POSITION:
            return "rows"
        if kind not in _AT_AN_END:
            return "rows" if of_rows and not is_whole else "peers"
        if of_rows or is_whole:
            return "rows"
        if kind == "NthValue":
            raise refuse(
                self._view,
                "nth_value over a RANGE frame, in which rows can tie",
                "write a ROWS frame, as ROWS UNBOUNDED PRECEDING",
            )
        return "ends"

    def _over(self, named: Expression, function: Expression, order: Iterable[Expression]) -> Expression:
        """A window expression with another function and order, under the same id."""
        catalyst, spec = self._catalyst, named.child().windowSpec()
        return catalyst.trees.with_children(
            named, [catalyst.functions.over(function, spec, order, spec.frameSpecification())]
        )

    def _numbered(self, plan: Plan, order: Iterable[Expression]) -> Expression:
        """`row_number()` over the partitions of a window."""
        function = self._catalyst.expressions.classes.RowNumber()
        spec = self._catalyst.trees.items(plan.windowExpressions())[0].child().windowSpec()
        return self._catalyst.expressions.alias(
            self._catalyst.functions.over(function, spec, order, function.frame()), "__sw_order"
        )

    def _end(self, named: Expression, number: Expression) -> Expression:
        """`first_value` or `last_value` as the value with the least or greatest number in its frame."""
        catalyst, window = self._catalyst, named.child()
        function = window.windowFunction().aggregateFunction()
        value = catalyst.trees.items(function.children())[0]
        if function.ignoreNulls():
            is_there = catalyst.queries.column(value).isNotNull()
            number = catalyst.queries.expression(F.when(is_there, catalyst.queries.column(number)))
        aggregate = catalyst.expressions.classes.aggregate
        by_number = (aggregate.MinBy if simple_name(function) == "First" else aggregate.MaxBy)(value, number)
        of_window = by_number.toAggregateExpression(False, catalyst.scala.none())
        return self._over(named, of_window, catalyst.trees.items(window.windowSpec().orderSpec()))


def has_floats(expression: Expression) -> bool:
    """True if values of an expression may be equal in SQL and not identical."""
    kind = str(expression.dataType().catalogString())
    return "float" in kind or "double" in kind


def function_name(window: Expression) -> str:
    """The class of the function of a window expression."""
    function = window.windowFunction()
    return simple_name(function.aggregateFunction() if simple_name(function) == "AggregateExpression" else function)


def _are_same(one: Iterable[object], other: Iterable[object]) -> bool:
    return all(left is right for left, right in zip(one, other, strict=True))
