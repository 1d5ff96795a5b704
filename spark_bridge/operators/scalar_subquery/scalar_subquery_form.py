"""Projections and filters over rows with single values beside them, as one operator over both.

Project (x - a)
  Filter (x > a)            rows, values ──→ x - a, if x > a
    Join                                     else nothing
      rows
      one row (a)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id, join_type, simple_name
from spark_bridge.operators.scalar_subquery.single_values import SingleRows

Columns = Mapping[int, Expression]
"""Id of each column of the rows and the values → the column to take for it."""

_INNER = frozenset({"Inner", "Cross"})


@dataclass(frozen=True)
class ScalarSubqueryValue:
    """One row beside others.

    Args:
        plan: that has it.
        flag: an attribute that tells whether it is there.
    """

    plan: Plan
    flag: Expression


class ScalarSubqueryForm:
    """Projections, filters and joins with one row, as one operator over rows with values beside them.

    Attributes:
        operators: those, from the top down.
        below: the plan with the rows.
        values: the single rows.
        columns: the columns of the result, over those of the rows and the values.
        conditions: those of the result, over the same, in the order in which they are computed.

    Args:
        rows: tells the plans with one row.
        top: the upper operator.
        ends: whether an operator belongs to the rows below, whatever it is.
    """

    def __init__(self, catalyst: Catalyst, rows: SingleRows, top: Plan, ends: Callable[[Plan], bool]) -> None:
        self._catalyst, self._rows, self._ends = catalyst, rows, ends
        self.operators, self.values, self.conditions = list[Plan](), list[ScalarSubqueryValue](), list[Expression]()
        self.below: Plan = top
        within = self._within(top)
        self.columns: list[Expression] = [within[attribute_id(each)] for each in catalyst.trees.items(top.output())]

    def query(self, leaf: Plan, columns: Columns, names: Sequence[str]) -> Plan:
        """The operator over a leaf, whose last column is the last one of the result, too.

        Args:
            leaf: rows with the values beside them.
            columns: see `Columns`.
            names: of the columns of the result.
        """
        catalyst, rows = self._catalyst, leaf
        if (condition := self._condition(columns)) is not None:
            rows = catalyst.plans.filter(condition, leaf)
        named = [catalyst.expressions.alias(*each) for each in self._results(columns, names)]
        return catalyst.queries.analyse(catalyst.plans.project([*named, catalyst.trees.items(leaf.output())[-1]], rows))

    def pairs(self, leaf: Plan, before: Columns, after: Columns, names: Sequence[str]) -> Plan:
        """The results over each row with some values and with others, if they differ, as structs; null for none.

        Args:
            leaf: rows with both values beside them.
            before: the columns with the former values.
            after: those with the latter values.
            names: of the columns of the result.
        """
        catalyst, expressions = self._catalyst, self._catalyst.expressions.classes
        results = [self._result(each, names) for each in (before, after)]
        pairs = catalyst.plans.project(map(catalyst.expressions.alias, results, ("before", "after")), leaf)
        both = [each.toAttribute() for each in catalyst.trees.items(pairs.projectList())]
        return catalyst.queries.analyse(catalyst.plans.filter(expressions.Not(expressions.EqualNullSafe(*both)), pairs))

    def _result(self, columns: Columns, names: Sequence[str]) -> Expression:
        catalyst = self._catalyst
        struct = F.struct(*(catalyst.queries.column(each).alias(name) for each, name in self._results(columns, names)))
        condition = self._condition(columns)
        return catalyst.queries.expression(
            struct if condition is None else F.when(catalyst.queries.column(condition), struct)
        )

    def _results(self, columns: Columns, names: Sequence[str]) -> list[tuple[Expression, str]]:
        values = [self._catalyst.trees.substitute(each, columns) for each in self.columns]
        return [*zip(values, names, strict=True)]

    def _condition(self, columns: Columns) -> Expression | None:
        conditions = [self._catalyst.trees.substitute(each, columns) for each in self.conditions]
        return self._catalyst.expressions.all_of(conditions) if conditions else None

    @staticmethod
    def stands_at(catalyst: Catalyst, rows: SingleRows, plan: Plan, ends: Callable[[Plan], bool]) -> bool:
        """Whether such operators stand at the top of a plan, see the class."""
        parts = [plan]
        while simple_name(parts[-1]) in ("Project", "Filter"):
            parts.append(parts[-1].child())
        return rows.beside(parts[-1]) is not None and not any(map(ends, parts))

    def _within(self, plan: Plan) -> dict[int, Expression]:
        """Id of each column of a plan → its expression over the rows and the values."""
        catalyst, kind = self._catalyst, simple_name(plan)
        beside = self._rows.beside(plan)
        if self._ends(plan) or (kind not in ("Project", "Filter") and beside is None):
            self.below = plan
            return {attribute_id(each): each for each in catalyst.trees.items(plan.output())}
        self.operators.append(plan)
        if beside is not None:
            return self._joined(plan, *beside)
        within = self._within(plan.child())
        if kind == "Filter":
            self.conditions.append(catalyst.trees.substitute(plan.condition(), within))
            return within
        named = catalyst.trees.items(plan.projectList())
        values = [each.child() if simple_name(each) == "Alias" else each for each in named]
        return {
            attribute_id(each): catalyst.trees.substitute(value, within)
            for each, value in zip(named, values, strict=True)
        }

    def _joined(self, join: Plan, rows: Plan, one: Plan) -> dict[int, Expression]:
        catalyst, within = self._catalyst, self._within(rows)
        is_inner = join_type(join) in _INNER
        [flag] = catalyst.schemas.attributes(pa.schema([pa.field(f"__sw_has_{1 + len(self.values)}", pa.bool_())]))
        self.values.append(ScalarSubqueryValue(one, flag))
        columns = {attribute_id(each): each.withNullability(True) for each in catalyst.trees.items(one.output())}
        if is_inner:
            self.conditions.append(flag)
        if join.condition().isEmpty():
            return within | columns
        condition = catalyst.trees.substitute(join.condition().get(), within | columns)
        if is_inner:
            self.conditions.append(condition)
            return within | columns
        return within | {
            number: catalyst.expressions.when(condition, each, catalyst.expressions.null(each.dataType()))
            for number, each in columns.items()
        }
