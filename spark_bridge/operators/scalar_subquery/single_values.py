"""Subqueries of one value, without correlation, as joins with one row.

    Filter (x > subquery)          Project              the columns of the rows
      rows                ──→        Filter (x > value)
                                       Join             left, without a condition
                                         rows
                                         Project        the value
                                           the plan of the subquery

An equality, as in `x = subquery`, becomes an inner join by that.  A subquery is taken only if it cannot have two rows,
of which Spark makes an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.logical_plans import LogicalPlans
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, join_type, parts_of, simple_name
from spark_bridge.operators.join.joined_form import with_narrow_sides

_KEEPS_NUMBER = frozenset({"Project", "Filter", "Sort", "SubqueryAlias", "LocalLimit", "Offset"})
_INNER = frozenset({"Inner", "Cross"})


def is_single_value(expression: Expression) -> bool:
    """Whether an expression is a subquery of one value that reads no column from outside."""
    return simple_name(expression) == "ScalarSubquery" and not expression.children().size()


def is_existence(expression: Expression) -> bool:
    """Whether an expression is an `EXISTS` that reads no column from outside."""
    return simple_name(expression) == "Exists" and not expression.children().size()


def existence(catalyst: Catalyst, rows: Plan) -> Expression:
    """An `EXISTS` as a condition on one value: the number of rows of its plan."""
    number = catalyst.expressions.alias(catalyst.functions.count_of_rows(), "number")
    subquery = catalyst.expressions.subquery(catalyst.plans.aggregate([], [number], rows))
    return catalyst.expressions.classes.GreaterThan(
        subquery, catalyst.expressions.cast(catalyst.expressions.number(0), number.dataType())
    )


def has_single_value(trees: Trees, expression: Expression) -> bool:
    """Whether an expression has such a subquery in it."""
    return trees.may_have(expression, "SCALAR_SUBQUERY") and (
        is_single_value(expression) or any(has_single_value(trees, each) for each in trees.items(expression.children()))
    )


def has_single_values(trees: Trees, plan: Plan) -> bool:
    """Whether a plan has such a subquery."""
    return trees.may_have(plan, "SCALAR_SUBQUERY") and any(
        has_single_value(trees, each)
        for part in parts_of(trees, plan)
        if part.subqueries().size()
        for each in trees.items(part.expressions())
    )


class SingleRows:
    """Tells plans that have one row at most.

    Args:
        leaves: ids of the first attributes of leaves that have one row at most.
    """

    def __init__(self, plans: LogicalPlans, leaves: Collection[int] = ()) -> None:
        self._plans, self._leaves = plans, leaves

    def has_one(self, plan: Plan) -> bool:
        """Whether a plan has one row at most, whatever rows its leaves have."""
        kind = simple_name(plan)
        if kind in _KEEPS_NUMBER:
            return self.has_one(plan.child())
        match kind:
            case "Aggregate":
                return not plan.groupingExpressions().size()
            case "GlobalLimit":
                limit = plan.limitExpr()
                return (simple_name(limit) == "Literal" and int(limit.value()) <= 1) or self.has_one(plan.child())
            case "Join":
                is_of_both = join_type(plan) in (*_INNER, "LeftOuter")
                return is_of_both and self.has_one(plan.left()) and self.has_one(plan.right())
            case "LocalRelation":
                return bool(plan.output().size()) and attribute_id(plan.output().apply(0)) in self._leaves
            case _:
                return False

    def beside(self, join: Plan) -> tuple[Plan, Plan] | None:
        """The rows of a join, and the one row beside each of them; None for another join."""
        if simple_name(join) != "Join" or self._plans.equal_keys(join) is not None:
            return None
        kind, left, right = join_type(join), join.left(), join.right()
        if kind in (*_INNER, "LeftOuter") and self.has_one(right):
            return left, right
        if kind in (*_INNER, "RightOuter") and self.has_one(left):
            return right, left
        return None


class ValueJoins:
    """Makes joins of subqueries.

    Args:
        rows: tells the subqueries with one row at most; others stay.
    """

    def __init__(self, catalyst: Catalyst, rows: SingleRows) -> None:
        self._catalyst, self._rows = catalyst, rows

    def of(self, plan: Plan) -> Plan:
        """A plan without names of relations, with joins in place of subqueries."""
        catalyst = self._catalyst
        children = catalyst.trees.items(plan.children())
        if not children or not catalyst.trees.may_have(plan, "SCALAR_SUBQUERY"):
            return plan
        plan = catalyst.trees.with_children(plan, [self.of(each) for each in children])
        match simple_name(plan):
            case "Filter" if self._are_in([plan.condition()]):
                return self._filter(plan)
            case "Project" if self._are_in(catalyst.trees.items(plan.projectList())):
                values = _Values(self)
                columns = [values.put_into(each) for each in catalyst.trees.items(plan.projectList())]
                return catalyst.plans.project(columns, values.beside(plan.child()))
            case "Aggregate" if self._are_in(catalyst.trees.items(plan.aggregateExpressions())):
                return self._aggregate(plan)
            case "Join":
                return self._join(plan)
            case _:
                return plan

    def is_value(self, expression: Expression) -> bool:
        """Whether an expression is a subquery that becomes a join."""
        return is_single_value(expression) and self._rows.has_one(expression.plan())

    def rows_of(self, subquery: Expression) -> Plan:
        """The plan of a subquery, whose own subqueries are joins."""
        return self.of(with_narrow_sides(self._catalyst, subquery.plan()))

    def left_join(self, rows: Plan, value: Plan) -> Plan:
        """Rows with the one row of a plan beside each, or with nulls."""
        kind = self._catalyst.scala.singleton("catalyst.plans.LeftOuter")
        return self._catalyst.plans.join_of(kind, rows, value, None)

    @property
    def catalyst(self) -> Catalyst:
        """That of the session."""
        return self._catalyst

    def _are_in(self, expressions: Iterable[Expression]) -> bool:
        return any(map(self._is_in, expressions))

    def _is_in(self, expression: Expression) -> bool:
        return self._catalyst.trees.may_have(expression, "SCALAR_SUBQUERY") and (
            self.is_value(expression) or self._are_in(self._catalyst.trees.items(expression.children()))
        )

    def _filter(self, plan: Plan) -> Plan:
        catalyst, rows, values = self._catalyst, plan.child(), _Values(self)
        conditions = catalyst.trees.conjuncts(plan.condition())
        if plain := [each for each in conditions if not self._is_in(each)]:
            rows = catalyst.plans.filter(catalyst.expressions.all_of(plain), rows)
        others = list[Expression]()
        for each in filter(self._is_in, conditions):
            equal = self._equality(each)
            if equal is None:
                others.append(values.put_into(each))
                continue
            column, expression = equal
            single = _Values(self)
            value = catalyst.expressions.alias(single.put_into(expression), "value")
            [plan_of_value] = single.plans
            one = catalyst.plans.project([value], plan_of_value)
            condition = catalyst.expressions.classes.EqualTo(column, value.toAttribute())
            rows = catalyst.plans.join_of(catalyst.scala.singleton("catalyst.plans.Inner"), rows, one, condition)
        if others:
            rows = catalyst.plans.filter(catalyst.expressions.all_of(others), values.beside(rows))
        return catalyst.plans.project(catalyst.trees.items(plan.output()), rows)

    def _equality(self, condition: Expression) -> tuple[Expression, Expression] | None:
        """The sides of an equality of the rows with one value: that of the rows, and that of the value."""
        if simple_name(condition) != "EqualTo":
            return None
        for rows, value in ((condition.left(), condition.right()), (condition.right(), condition.left())):
            of_rows = rows.references().size() and not has_single_value(self._catalyst.trees, rows)
            if of_rows and not value.references().size() and len(_Values(self).in_(value)) == 1:
                return rows, value
        return None

    def _aggregate(self, plan: Plan) -> Plan:
        """An aggregation: a value within its functions joins its rows, any other value joins its groups."""
        catalyst, items = self._catalyst, self._catalyst.trees.items
        of_rows, of_groups = _Values(self), _Values(self)
        grouping = [of_rows.put_into(each) for each in items(plan.groupingExpressions())]
        parts = list[tuple[Expression, Expression]]()

        def part_of_group(part: Expression) -> Expression | None:
            is_whole = simple_name(part) == "AggregateExpression" or any(
                bool(part.canonicalized().equals(each.canonicalized())) for each in items(plan.groupingExpressions())
            )
            if not is_whole:
                return None
            for known, named in parts:
                if bool(known.canonicalized().equals(part.canonicalized())):
                    return named.toAttribute()
            named = catalyst.expressions.alias(of_rows.put_into(part), "part")
            parts.append((part, named))
            return named.toAttribute()

        columns = []
        for named in items(plan.aggregateExpressions()):
            value = named.child() if simple_name(named) == "Alias" else named
            columns.append(
                catalyst.expressions.alias_as(of_groups.put_into(catalyst.trees.rewrite(value, part_of_group)), named)
            )
        groups = catalyst.plans.aggregate(grouping, [named for _, named in parts], of_rows.beside(plan.child()))
        return catalyst.plans.project(columns, of_groups.beside(groups))

    def _join(self, plan: Plan) -> Plan:
        catalyst, kind = self._catalyst, join_type(plan)
        if plan.condition().isEmpty():
            return plan
        conditions = catalyst.trees.conjuncts(plan.condition().get())
        with_values = [each for each in conditions if self._is_in(each)]
        if not with_values:
            return plan
        values = _Values(self)
        if kind not in _INNER:
            condition = values.put_into(plan.condition().get())
            left = values.beside(plan.left())
            joined = catalyst.plans.join_of(plan.joinType(), left, plan.right(), condition)
            return catalyst.plans.project(catalyst.trees.items(plan.output()), joined)
        plain = [each for each in conditions if not self._is_in(each)]
        condition = catalyst.expressions.all_of(plain) if plain else None
        joined = catalyst.plans.join_of(plan.joinType(), plan.left(), plan.right(), condition)
        return self._filter(catalyst.plans.filter(catalyst.expressions.all_of(with_values), joined))


class _Values:
    """The values that an operator uses.

    Attributes:
        plans: those that have them; each has its value as its only column.

    Args:
        joins: makes them.
    """

    def __init__(self, joins: ValueJoins) -> None:
        self._joins = joins
        self._known = list[tuple[Expression, Expression]]()
        self.plans = list[Plan]()

    def put_into(self, expression: Expression) -> Expression:
        """The expression with columns in place of its subqueries."""
        return self._joins.catalyst.trees.rewrite(expression, self._column)

    def in_(self, expression: Expression) -> list[Expression]:
        """The subqueries in an expression, equal ones once."""
        catalyst, found, left = self._joins.catalyst, list[Expression](), [expression]
        while left:
            part = left.pop()
            if not self._joins.is_value(part):
                left += catalyst.trees.items(part.children())
            elif not any(bool(part.canonicalized().equals(each.canonicalized())) for each in found):
                found.append(part)
        return found

    def beside(self, rows: Plan) -> Plan:
        """The rows with the values beside each of them."""
        for each in self.plans:
            rows = self._joins.left_join(rows, each)
        return rows

    def _column(self, part: Expression) -> Expression | None:
        if not self._joins.is_value(part):
            return None
        for known, column in self._known:
            if bool(known.canonicalized().equals(part.canonicalized())):
                return column
        catalyst, rows = self._joins.catalyst, self._joins.rows_of(part)
        # A subquery may stand at several places of a query, so its column gets an id of its own.
        value = catalyst.expressions.alias(catalyst.trees.items(rows.output())[0], "value")
        column = value.toAttribute().withNullability(True)
        self._known.append((part, column))
        self.plans.append(catalyst.plans.project([value], rows))
        return column
