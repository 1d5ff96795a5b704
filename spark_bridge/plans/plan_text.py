"""The identity of a view: a text that is equal for views that compute the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, parts_of, simple_name

_EXPRESSION_ID = re.compile(r"#(\d+)")
_LEAF = re.compile(r"[\s:+|-]*(?:LocalRelation|LogicalRDD) ")
_NO_LIMIT = 2**31 - 1
_CALL = "call"


def identity_text(trees: Trees, plan: Plan, leaves: Mapping[int, str], result: str, functions: list[str]) -> str:
    """A text that is equal exactly when two analysed plans compute the same.

    Spark numbers columns differently in every session, so they are renumbered in the order of their appearance.  The
    text of a plan lacks the types of columns and literals ('1' and 1 look alike), so they are added.  Unused columns of
    a source do not count.

    Args:
        plan: analysed.
        leaves: id of a leaf's first attribute → the source of the leaf; other leaves have rows of their own.
        result: the schema of the result as DDL.
        functions: the source texts of the used Python functions.
    """
    # (verbose, with suffix, maximum number of fields of a schema, with operator ids)
    text = str(plan.treeString(True, False, _NO_LIMIT, False))
    lines = [line for line in text.splitlines() if not _LEAF.match(line)]
    used = set(_EXPRESSION_ID.findall("\n".join(lines)))
    used.update(str(attribute_id(column)) for column in trees.items(plan.output()))
    parts = [
        *lines,
        *[text for part in parts_of(trees, plan) for text in _sources(trees, part, leaves, used)],
        "literals " + ", ".join(text for part in parts_of(trees, plan) for text in _literals(trees, part)),
        "gives " + result,
    ]
    return renumbered("\n".join(parts), functions)


def call_text(
    catalyst: Catalyst, aggregate: Plan, call: Expression | None, leaves: Mapping[int, str], within: Sequence[str]
) -> str:
    """A text that is equal for calls of aggregate functions that compute the same of the same groups, in any view.

    Args:
        aggregate: the Aggregate with the call; its other calls do not count.
        call: Spark's AggregateExpression; None for the groups alone.
        leaves: as in `identity_text`.
        within: the texts of what the leaves are, beside their names.
    """
    grouping = catalyst.trees.items(aggregate.groupingExpressions())
    calls = [] if call is None else [catalyst.expressions.alias(call, _CALL)]
    groups = [catalyst.expressions.alias(each, _CALL) for each in grouping]
    plan = catalyst.plans.aggregate(grouping, [*groups, *calls], aggregate.child())
    types = [str(each.dataType().sql()) for each in (*grouping, *calls)]
    return identity_text(catalyst.trees, plan, leaves, ", ".join(types), [*within])


def renumbered(text: str, others: Sequence[str]) -> str:
    """Lines of text in which the numbers of columns count from 0, in the order of their appearance.

    Args:
        text: with the numbers of one session.
        others: further lines, with numbers of their own.
    """
    order: dict[tuple[bool, str], int] = {}

    def numbered(part: str, is_other: bool) -> str:
        return _EXPRESSION_ID.sub(lambda match: f"#{order.setdefault((is_other, match.group(1)), len(order))}", part)

    return "\n".join([numbered(text, False), *(numbered(each, True) for each in others)])


def _sources(trees: Trees, plan: Plan, leaves: Mapping[int, str], used: set[str]) -> list[str]:
    """For a leaf: its source with the columns that the plan names, or its own rows."""
    if plan.children().size():
        return []
    output = trees.items(plan.output())
    if not output or attribute_id(output[0]) not in leaves:
        return [f"has {plan.data().mkString(', ')}"] if simple_name(plan) == "LocalRelation" else []
    columns = [
        f"{column.name()}#{attribute_id(column)} {column.dataType().sql()}"
        for column in output
        if str(attribute_id(column)) in used
    ]
    return [f"reads {leaves[attribute_id(output[0])]}: {', '.join(columns)}"]


def _literals(trees: Trees, plan: Plan) -> list[str]:
    return [text for each in trees.items(plan.expressions()) for text in _literals_of(trees, each)]


def _literals_of(trees: Trees, expression: Expression) -> list[str]:
    if not trees.may_have(expression, "LITERAL"):
        return []
    if simple_name(expression) == "Literal":
        return [f"{expression.sql()} {expression.dataType().sql()}"]
    return [text for child in trees.items(expression.children()) for text in _literals_of(trees, child)]
