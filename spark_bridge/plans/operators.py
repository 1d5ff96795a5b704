"""Spark's operators and expressions that can be maintained epoch by epoch, and advice for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.epoch_timestamps import has_epoch_timestamp, is_epoch_timestamp, is_wall_clock
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, simple_name
from state.errors import NotIncrementalError

PROJECTION_OPERATORS = frozenset({"Project", "Filter", "Generate", "Union", "Expand"})
"""Operators that see one row at a time.  A union only combines rows, and grouping sets (Expand) only repeat them."""

PLACES_ROWS = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions"})
"""Operators that only say which task has a row."""

_ADVICE = {
    "Deduplicate": "group by the columns, and take the others by min_by or max_by of one that orders the rows",
    "GlobalLimit": "a limit depends on later rows; leave it out and limit when reading",
    "Join": "join by equal columns, as in ON a.id = b.id",
    "Limit": "a limit depends on later rows; leave it out and limit when reading",
    "LocalLimit": "a limit depends on later rows; leave it out and limit when reading",
    "LocalRelation": "constant rows would be added again by every epoch; leave them out, or declare them as a table",
    "OneRowRelation": "constant rows would be added again by every epoch; leave them out",
    "Range": "constant rows would be added again by every epoch; leave them out",
    "Offset": "an offset depends on later rows; leave it out",
    "Sample": "a sample is not deterministic; filter by a hash of a column instead",
    "Sort": "a view has no order; leave it out and sort when reading",
}
_SESSION_VALUES = frozenset(
    {
        "current_timestamp",
        "current_date",
        "localtimestamp",
        "now",
        "current_timezone",
        "current_user",
        "current_database",
    }
    | {"current_catalog", "curdate", "user", "session_user"}
)
_FIRST_OR_LAST = frozenset({"First", "Last"})
_ITERATOR_UDF = 204
"""PySpark's `PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF`."""

_COLLECTIONS = frozenset({"CollectList", "CollectSet"})


def takes_row_of_order(expression: Expression) -> bool:
    """Whether it is `first_value` or `last_value` over a window with an order, which decides the row."""
    if simple_name(expression) != "WindowExpression" or not expression.windowSpec().orderSpec().size():
        return False
    function = expression.windowFunction()
    return (
        simple_name(function) == "AggregateExpression" and simple_name(function.aggregateFunction()) in _FIRST_OR_LAST
    )


def window_arguments(trees: Trees, expression: Expression) -> list[Expression]:
    """The arguments of the aggregate function of a window expression."""
    return trees.items(expression.windowFunction().aggregateFunction().children())


def has_python(trees: Trees, expressions: Sequence[Expression]) -> bool:
    """Whether one of these expressions calls a Python function."""
    left = [*expressions]
    while left:
        expression = left.pop()
        if simple_name(expression).startswith("Python"):
            return True
        left += trees.items(expression.children())
    return False


def refuse(view: str, what: str, advice: str) -> NotIncrementalError:
    """The error for a view that cannot be maintained."""
    return NotIncrementalError(f"view {view!r} cannot be maintained epoch by epoch because of {what}: {advice}")


def refuse_operator(view: str, plan: Plan) -> NotIncrementalError:
    """The error for an operator that cannot be maintained, with advice."""
    name = str(plan.nodeName())
    advice = _ADVICE.get(name, "only SELECT with WHERE, JOIN, explode, UNION ALL and GROUP BY can be maintained")
    return refuse(view, name, advice)


class ExpressionCheck:
    """Refuses every expression that is not deterministic, or that reads other rows.

    Args:
        view: the name of the view, for messages.
        allow_subqueries: whether an expression may read other rows, as in a view that reads all rows each time.
    """

    def __init__(self, view: str, catalyst: Catalyst, *, allow_subqueries: bool = False) -> None:
        self._view = view
        self._catalyst = catalyst
        self._allow_subqueries = allow_subqueries
        self._of_rows: list[Expression] = []

    def check(self, plan: Plan, *, is_of_rows: bool = False) -> None:
        """Checks all expressions of one operator, without its children.

        Args:
            is_of_rows: whether it sees the rows of one epoch, so that `current_timestamp()` is the epoch's time.

        Raises:
            NotIncrementalError: one of them cannot be maintained.
        """
        if simple_name(plan) == "Filter":
            self._require_timeless(plan.condition())
        if simple_name(plan) == "Join" and plan.condition().isDefined():
            self._require_timeless(plan.condition().get())
        for expression in self._catalyst.trees.items(plan.expressions()):
            self._check(expression, is_of_rows)

    def check_aggregate(self, aggregate: Plan) -> None:
        """Checks an Aggregate: its grouping and the arguments of its functions see rows, other expressions see groups.

        Raises:
            NotIncrementalError: an expression cannot be maintained.
        """
        self._of_rows = [each.canonicalized() for each in self._catalyst.trees.items(aggregate.groupingExpressions())]
        for each in self._catalyst.trees.items(aggregate.groupingExpressions()):
            self._check(each, is_of_rows=True)
        for each in self._catalyst.trees.items(aggregate.aggregateExpressions()):
            self._check(each, is_of_rows=False)

    def _check(self, expression: Expression, is_of_rows: bool) -> None:
        if simple_name(expression) == "AggregateExpression" and expression.filter().isDefined():
            self._require_timeless(expression.filter().get())
        if is_wall_clock(expression):
            raise refuse(
                self._view,
                f"the text {expression.child().value()} as a {expression.dataType().sql()}",
                "it is read from the clock of each computation; write current_timestamp() or current_date()",
            )
        if simple_name(expression) == "PythonUDF" and expression.evalType() == _ITERATOR_UDF:
            raise refuse(
                self._view,
                f"{expression.name()}(), a pandas UDF over an iterator",
                "it can keep a state from batch to batch; take a pandas UDF of a Series",
            )
        if takes_row_of_order(expression):
            for part in (*window_arguments(self._catalyst.trees, expression), expression.windowSpec()):
                self._check(part, is_of_rows)
            return
        is_of_rows = is_of_rows or self._is_of_rows(expression)
        if is_of_rows and is_epoch_timestamp(expression):
            return
        if self._catalyst.trees.is_instance(expression, "catalyst.expressions.SubqueryExpression"):
            if self._allow_subqueries:
                return
            raise refuse(
                self._view,
                f"a subquery ({simple_name(expression)})",
                "it may have several rows, of which Spark makes an error; take max(...) of them, or the first one by "
                "ORDER BY ... LIMIT 1",
            )
        for child in self._catalyst.trees.items(expression.children()):
            self._check(child, is_of_rows)
        name = _pretty_name(expression)
        if name in _SESSION_VALUES:
            raise refuse(
                self._view,
                f"{name}()",
                "its value depends on the time or the session; use it below the aggregation, use a column of the "
                "rows, or "
                "compute it when reading",
            )
        if not self._with_defined_values(expression).deterministic():
            raise refuse(
                self._view,
                f"{name}()",
                "its value differs each time it is computed; derive it from columns of the rows",
            )

    def _require_timeless(self, condition: Expression) -> None:
        """Refuses a condition on the time of the epoch: rows would have to come and go as time passes."""
        if not has_epoch_timestamp(self._catalyst.trees, condition):
            return
        for child in self._catalyst.trees.items(condition.children()):
            self._require_timeless(child)
        if is_epoch_timestamp(condition):
            raise refuse(
                self._view,
                f"{_pretty_name(condition)}() in a condition",
                "rows come and leave as time passes by conditions of WHERE and HAVING that compare a time, a date or a "
                "whole number of columns with one of now() alone, as in at > now() - INTERVAL 1 DAY; they may stand in "
                "AND, OR, NOT and CASE",
            )

    def _is_of_rows(self, expression: Expression) -> bool:
        """Whether an expression of an Aggregate is a call of a function, or a grouping expression."""
        if simple_name(expression) == "AggregateExpression":
            return True
        return bool(self._of_rows) and any(map(expression.canonicalized().equals, self._of_rows))

    def _with_defined_values(self, expression: Expression) -> Expression:
        """The expression without the parts that Spark wrongly calls indeterminate."""
        if expression.deterministic():
            return expression
        if _gives_all_values(self._catalyst.trees, expression):
            return self._catalyst.expressions.null(expression.dataType())
        children = self._catalyst.trees.items(expression.children())
        if not children:
            return expression
        return self._catalyst.trees.with_children(expression, [self._with_defined_values(each) for each in children])


def _gives_all_values(trees: Trees, expression: Expression) -> bool:
    """Whether it is a list or set of values, which Spark calls indeterminate because of its order only."""
    function = expression.aggregateFunction() if simple_name(expression) == "AggregateExpression" else expression
    return simple_name(function) in _COLLECTIONS and all(
        child.deterministic() for child in trees.items(function.children())
    )


def _pretty_name(expression: Any) -> str:
    if simple_name(expression) in ("PythonUDF", "PythonUDAF"):
        return str(expression.name())
    return str(expression.prettyName())
