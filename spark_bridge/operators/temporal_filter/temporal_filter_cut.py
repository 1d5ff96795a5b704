"""The cut of a filter by the time out of a query.

Filter                         Project            the columns under the names that the query uses
  rows             ──→           a leaf           the rows that the time keeps, not stored: see `TemporalFilterPlan`
                   and         Project            the columns of the rows, and the values that the time reaches
                                 rows
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import pyarrow as pa

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.epoch_timestamps import filter_text, has_epoch_timestamp
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id, is_attribute, join_type, simple_name
from spark_bridge.operators.cut import Cut, InnerRows
from spark_bridge.operators.temporal_filter.temporal_conditions import (
    Boundary,
    CombinedCondition,
    ConditionPart,
    RowCondition,
    TemporalCondition,
    comparisons_of,
    temporal_condition,
)
from spark_bridge.operators.temporal_filter.temporal_filter_plan import (
    CombinedBounds,
    RowFlag,
    TemporalFilterPlan,
    TimeBound,
)

TIMED = InnerRows("the rows that the time adds or removes", "a filter by the time of an epoch whose rows")

_INNER = frozenset({"Inner", "Cross"})
_Compared = TemporalCondition | RowCondition
_Stored = Mapping[_Compared, TimeBound | RowFlag]


def cut_temporal_filter(cut: Cut, plan: Plan) -> Plan | None:
    """A filter by the time of the epoch as a leaf."""
    if (split := _split(cut.catalyst, plan)) is None:
        return None
    conditions, rows = split
    catalyst, items = cut.catalyst, cut.catalyst.trees.items
    found = [temporal_condition(catalyst, each) for each in conditions]
    parts = [each for each in found if each is not None]
    if len(parts) < len(found):
        cut.check.check(plan)
    columns = items(plan.output())
    cut.require_values(columns, "a filter by the time of an epoch")
    below = cut.of(rows)
    numbers = {attribute_id(each): number for number, each in enumerate(items(below.output()))}
    compared, more = dict[_Compared, int | str](), list[Expression]()
    for part in dict.fromkeys(chain.from_iterable(map(comparisons_of, parts))):
        if is_attribute(part.value) and attribute_id(part.value) in numbers:
            compared[part] = numbers[attribute_id(part.value)]
            continue
        compared[part] = f"__sw_time_{1 + len(more)}"
        more.append(catalyst.expressions.alias(part.value, f"__sw_time_{1 + len(more)}"))
    inner = cut.inner(below, more, TIMED)
    kept, schema = items(inner.plan.output()), catalyst.schemas.arrow_schema(inner.plan)
    fields = {part: schema.field(column) for part, column in compared.items()}
    stored = {part: _over_rows(catalyst, part, each) for part, each in fields.items()}
    temporal = TemporalFilterPlan(
        name=cut.next_name("time"),
        rows=inner.name,
        names=[str(each.name()) for each in kept[: len(columns)]],
        conditions=tuple(_combined(each, stored) for each in parts),
        text=f"the rows with {' and '.join(each.sql() for each in conditions)}",
        identity=" and ".join(_condition_text(each, stored) for each in parts),
    )
    return cut.under_columns(plan, cut.add(temporal, kept[: len(columns)]))


def _split(catalyst: Catalyst, plan: Plan) -> tuple[list[Expression], Plan] | None:
    """The conditions on the time of a filter, or of an inner join, and the rows without them; None without one."""
    kind = simple_name(plan)
    if kind == "Filter":
        condition = plan.condition()
    elif kind == "Join" and plan.condition().isDefined() and join_type(plan) in _INNER:
        condition = plan.condition().get()
    else:
        return None
    conditions = catalyst.trees.conjuncts(condition) if has_epoch_timestamp(catalyst.trees, condition) else []
    temporal = [each for each in conditions if has_epoch_timestamp(catalyst.trees, each)]
    if not temporal:
        return None
    others = [each for each in conditions if not has_epoch_timestamp(catalyst.trees, each)]
    if kind == "Join":
        rest = catalyst.expressions.all_of(others) if others else None
        return temporal, catalyst.plans.join_of(plan.joinType(), plan.left(), plan.right(), rest)
    return temporal, catalyst.plans.filter(
        catalyst.expressions.all_of(others), plan.child()
    ) if others else plan.child()


def _over_rows(catalyst: Catalyst, part: _Compared, column: pa.Field) -> TimeBound | RowFlag:
    """A part of a condition on the time, over the rows of an internal view."""
    if isinstance(part, RowCondition):
        return RowFlag(column.name)
    boundary = Boundary(catalyst, part.boundary)
    return TimeBound(column.name, column.type, part.leaves, part.at_equal, boundary)


def _combined(part: ConditionPart, stored: _Stored) -> TimeBound | RowFlag | CombinedBounds:
    """A condition on the time, over the rows of an internal view."""
    if isinstance(part, CombinedCondition):
        return CombinedBounds(part.logic, tuple(_combined(each, stored) for each in part.parts))
    return stored[part]


def _condition_text(part: ConditionPart, stored: _Stored) -> str:
    """A condition on the time, for an identity."""
    match part:
        case CombinedCondition("and"):
            return " and ".join(_condition_text(each, stored) for each in part.parts)
        case CombinedCondition():
            texts = (f"({_condition_text(each, stored)})" for each in part.parts)
            return f"{part.logic} of {', '.join(texts)}"
        case RowCondition():
            return stored[part].column
        case TemporalCondition():
            sign = {(True, True): ">", (True, False): ">=", (False, False): "<", (False, True): "<="}
            boundary = filter_text(str(part.boundary.sql()))
            return f"{stored[part].column} {sign[part.leaves, part.at_equal]} {boundary}"
