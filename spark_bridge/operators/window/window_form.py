"""Windows in the form in which they are maintained: in a total order.

A window is over the rows of each key, or over all rows.  Its rows are sorted by all of their columns below it, so that
a sum of floats too is the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, is_attribute, parts_of, simple_name
from spark_bridge.operators.window.session_windows import is_of_sessions
from spark_bridge.plans.total_order import TotalOrder, function_name


def windows_of(trees: Trees, plan: Plan) -> list[Plan]:
    """The windows in a plan."""
    return [part for part in parts_of(trees, plan) if simple_name(part) == "Window"]


def is_by_key(trees: Trees, plan: Plan) -> bool:
    """Whether an operator is a window over the rows of each key."""
    return simple_name(plan) == "Window" and any(map(is_attribute, trees.items(plan.partitionSpec())))


class WindowForm:
    """Neighbouring windows over the same keys, with projections between them.

    Attributes:
        operators: the windows and projections, from the top down; the last one is a window.
        below: the plan below them.
        keys: the expressions of their PARTITION BY.

    Args:
        view: the name of the view, for messages.
        top: the upper window.
    """

    def __init__(self, catalyst: Catalyst, view: str, top: Plan) -> None:
        self._catalyst, self._order = catalyst, TotalOrder(catalyst, view)
        keys, self.operators, part = self._texts(top), list[Plan](), top
        while simple_name(part) == "Project" or (simple_name(part) == "Window" and self._texts(part) == keys):
            self.operators.append(part)
            part = part.child()
        while simple_name(self.operators[-1]) == "Project":
            self.operators.pop()
        self.below: Plan = self.operators[-1].child()
        self.keys: list[Expression] = catalyst.trees.items(self.operators[-1].partitionSpec())

    @property
    def has_python(self) -> bool:
        """Whether a function is one of Python's, which sees batches of rows."""
        windows = [each for each in self.operators if simple_name(each) == "Window"]
        named = [each for window in windows for each in self._catalyst.trees.items(window.windowExpressions())]
        return any(function_name(each.child()).startswith("Python") for each in named)

    @property
    def text(self) -> str:
        """For people."""
        windows = [each for each in self.operators if simple_name(each) == "Window"]
        return "sessions" if any(is_of_sessions(self._catalyst.trees, each) for each in windows) else "window functions"

    def touched(self, leaf: Plan, rows: Sequence[Expression], names: Sequence[str]) -> Plan:
        """The windows over rows with weights; rows of different weights do not see each other.

        Args:
            leaf: the rows, with their weights in the last column.
            rows: its columns, without the weight, under the names and ids that the windows use.
            names: of the columns of the result; the weight follows.
        """
        weight = self._catalyst.trees.items(leaf.output())[-1]
        plan = self._catalyst.plans.project([*rows, weight], leaf)
        return self._over(plan, [weight], names)

    def whole(self, leaf: Plan, rows: Sequence[Expression], names: Sequence[str]) -> Plan:
        """The windows over all rows, as tasks compute them.  Arguments as for `touched`, without weights."""
        plan = self._catalyst.plans.project(rows, leaf)
        if any(map(is_attribute, self.keys)):
            plan = self._catalyst.plans.partitioned(self.keys, plan)
        else:
            plan = self._catalyst.plans.one_partition(plan)
        return self._over(plan, [], names)

    def _over(self, plan: Plan, more: Sequence[Expression], names: Sequence[str]) -> Plan:
        """The windows over a plan, by further keys.

        Args:
            more: the further keys, which are the last columns of the result.
            names: of its other columns.
        """
        catalyst = self._catalyst
        for each in reversed(self.operators):
            if simple_name(each) == "Project":
                plan = catalyst.plans.project([*catalyst.trees.items(each.projectList()), *more], plan)
                continue
            keys = [*more, *catalyst.trees.items(each.partitionSpec())]
            order = [*map(catalyst.expressions.ascending, keys), *catalyst.trees.items(each.orderSpec())]
            order += self._order.ties(order, catalyst.trees.items(plan.output()))
            functions = catalyst.trees.items(each.windowExpressions())
            plan = catalyst.plans.window(
                each, functions, catalyst.plans.sort(order, plan, of_partitions=True), partitions=keys
            )
        columns = catalyst.trees.items(self.operators[0].output())
        return catalyst.queries.analyse(
            catalyst.plans.project([*map(catalyst.expressions.alias, columns, names), *more], plan)
        )

    def _texts(self, window: Plan) -> list[str]:
        return [str(each.canonicalized().toString()) for each in self._catalyst.trees.items(window.partitionSpec())]
