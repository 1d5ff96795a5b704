"""The stateful operators below the top of a query: their inputs or outputs become hidden views.

    Aggregate                      Aggregate
      Filter                         Filter
        Aggregate      ──→             Project        the columns under the names that the query uses
          rows                           a leaf       the groups of the inner view
                       and         Project            the columns under names of their own
                                     Aggregate
                                       rows

    Join                           Filter             the condition, if only rows with a partner are in the result
      rows of a        ──→           Project          the columns under the names that the query uses
      rows of b                        a leaf         pairs of rows, which nobody stores: see `JoinPlan`
                       and         Project            the columns of one side, and the hash of its key; and so the other
                                     rows of a

    Window                         Project            the columns under the names that the query uses
      rows             ──→           a leaf           the rows of the window, which nobody stores: see `WindowPlan`
                       and         Project            the columns of the rows, and the hash of their PARTITION BY
                                     rows

    Window, without a key          a leaf             the same over all rows, see `GlobalWindowPlan`; also a long limit
      rows             and         Project            the columns of the rows
                                   rows

    Filter                         a leaf             rows and values as one operator, see `ScalarSubqueryPlan`
      Join             ──→
        rows           and         Project            the columns of the rows
        one row                    rows
                       and         one row

    GlobalLimit                    Project            the columns under the names that the query uses
      Sort           ──→             a leaf           the first rows, which nobody stores: see `LimitPlan`
        rows         and         Project              the columns of the rows
                                   rows

    Filter                         Project            the columns under the names that the query uses
      rows             ──→           a leaf           the rows that the time keeps, not stored: see `TemporalFilterPlan`
                       and         Project            the columns of the rows, and the values that the time reaches
                                   rows

    Union                          Union
      rows of a        ──→           a leaf           rows of sources, if groups or joined rows stand beside them
      a leaf           and           a leaf
                                   rows of a

The left side is the query; the right side is what is left of it, and below that the hidden views.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, count
from typing import Literal

import pyarrow as pa

from spark_bridge.engine.catalyst.catalyst import (
    Catalyst,
    Expression,
    Plan,
    attribute_id,
    is_attribute,
    join_type,
    simple_name,
)
from spark_bridge.engine.catalyst.column_origin import column_origin
from spark_bridge.engine.catalyst.epoch_timestamps import filter_text, has_epoch_timestamp
from spark_bridge.operators.group.aggregate_calls import can_name_groups
from spark_bridge.operators.join.time_bounds import time_bounds
from spark_bridge.operators.scalar_subquery.scalar_subquery_form import ScalarSubqueryForm
from spark_bridge.operators.scalar_subquery.single_values import SingleRows
from spark_bridge.operators.temporal_filter.temporal_conditions import (
    Boundary,
    CombinedCondition,
    ConditionPart,
    RowCondition,
    TemporalCondition,
    comparisons_of,
    temporal_condition,
)
from spark_bridge.operators.window.window_form import LimitForm, WindowForm, is_by_key, is_limit, leaf_with
from spark_bridge.plans.computed_leaves import (
    AFTER,
    LEFT,
    POSITION_FIELD,
    RIGHT,
    ROWS,
    Between,
    CombinedBounds,
    ComputedLeaf,
    EventTime,
    GlobalWindowPlan,
    JoinKind,
    JoinPlan,
    LimitPlan,
    RowFlag,
    ScalarSubqueryPlan,
    SingleValue,
    TemporalFilterPlan,
    TimeBound,
    WindowPlan,
)
from spark_bridge.plans.operators import ExpressionCheck, has_python, refuse
from spark_bridge.plans.plan_text import identity_text
from state.tables.stored_rows import JOIN_FIELD, WEIGHT_FIELD, inner_name

_NO_NAME = re.compile(r"(?:#\d+L?|\W)+")
"""The parts of Spark's names that are no words: signs, and the number of a column, which differs between sessions."""

_KINDS: Mapping[str, tuple[JoinKind, str]] = {
    "Inner": ("inner", "inner"),
    "Cross": ("inner", "cross"),
    "LeftOuter": ("left", "left"),
    "RightOuter": ("left", "right"),
    "LeftSemi": ("semi", "semi"),
    "LeftAnti": ("anti", "anti"),
    "ExistenceJoin": ("existence", "existence"),
    "FullOuter": ("full", "full"),
}
"""Spark's type of a join -> what its rows are, and its name for people."""


InnerRows = Literal["groups", "sides", "keys", "order", "parts", "whole", "beside", "values", "timed"]
"""The rows of a hidden view: groups, those of a side of a join, below a window, a limit or a filter by the time, of a
part of a union, or beside single values; or such a value."""

_Compared = TemporalCondition | RowCondition
_Stored = Mapping[_Compared, TimeBound | RowFlag]

_Over = Callable[[Plan, Sequence[Expression], Sequence[str]], Plan]
"""Makes a query over a leaf: (leaf, its columns under the names and ids that the query uses, names) -> the query."""


@dataclass(frozen=True)
class InnerView:
    """A part of a query that was cut out of it.

    Args:
        name: recorded name of its view.
        plan: analysed, with unique names of columns; a deeper part is a leaf in it.
        rows: what they are.
    """

    name: str
    plan: Plan
    rows: InnerRows


class InnerCut:
    """Cuts the stateful operators below the top of a query out of it; equal ones become one view.

    Attributes:
        views: those that were cut out, each after those that it reads.
        computed: name of a leaf → the join, the window or the limit that it stands for.
        leaves: id of a leaf's first attribute → the source, the parent, the hidden view or the computed leaf.

    Args:
        catalyst: of the session.
        view: the name of the view.
        leaves: those of the query.
        sources: the names of the leaves that are sources.
        check: refuses operators with expressions that cannot be maintained.
        single: tells plans with one row at most.
        event_times: source → the column with its event time, if the bounds of joins are asked for.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: str,
        leaves: Mapping[int, str],
        sources: Collection[str],
        check: ExpressionCheck,
        single: SingleRows,
        event_times: Mapping[str, str],
    ) -> None:
        self._catalyst, self._view, self._sources, self._check = catalyst, view, sources, check
        self._single, self._event_times = single, event_times
        self._known: dict[str, InnerView] = {}
        self.views: list[InnerView] = []
        self.computed: dict[str, ComputedLeaf] = {}
        self.leaves = dict(leaves)

    def of(self, plan: Plan) -> Plan:
        """The query over its inner views and joins.  Its own grouping stays, under projections and filters.

        Args:
            plan: analysed, with empty leaves.

        Raises:
            NotIncrementalError: a join, a window or a limit cannot be maintained.
        """
        if self._has_scalar_subquery(plan):
            return self._scalar_subquery(plan)
        if (split := self._split(plan)) is not None:
            return self._temporal(plan, *split)
        match simple_name(plan):
            case "Project" | "Filter":
                return self._catalyst.with_children(plan, [self.of(plan.child())])
            case "Aggregate":
                return self._catalyst.with_children(plan, [self._cut(plan.child())])
            case _:
                return self._cut(plan)

    def _cut(self, plan: Plan) -> Plan:
        children = self._catalyst.items(plan.children())
        if not children:
            return plan
        if self._has_scalar_subquery(plan):
            return self._scalar_subquery(plan)
        if (split := self._split(plan)) is not None:
            return self._temporal(plan, *split)
        if simple_name(plan) == "Window":
            return self._window(plan)
        if is_limit(plan):
            return self._limit(plan)
        plan = self._catalyst.with_children(plan, [self._cut(child) for child in children])
        match simple_name(plan):
            case "Aggregate":
                return self._read(self._inner(plan, [], "groups"), plan)
            case "Join":
                return self._join(plan)
            case "Union":
                return self._union(plan)
            case _:
                return plan

    def _union(self, plan: Plan) -> Plan:
        """A union in which rows of sources are those of a hidden view, if other rows come and leave beside them."""
        parts = self._catalyst.items(plan.children())
        of_sources = [all(map(self._is_source, self._catalyst.leaves(part))) for part in parts]
        if all(of_sources) or not any(of_sources):
            return plan
        read = [
            self._read(self._inner(part, [], "parts"), part) if of_source else part
            for part, of_source in zip(parts, of_sources, strict=True)
        ]
        return self._catalyst.with_children(plan, read)

    def _is_source(self, leaf: Plan) -> bool:
        return self.leaves[attribute_id(leaf.output().apply(0))] in self._sources

    def _inner(self, plan: Plan, more: Sequence[Expression], rows: InnerRows) -> InnerView:
        """The hidden view of a part, with further columns at the end."""
        catalyst = self._catalyst
        columns = catalyst.items(plan.output())
        named = [*map(catalyst.alias, columns, _unique_names(str(each.name()) for each in columns)), *more]
        if not named:  # rows that are only counted
            named = [catalyst.alias(catalyst.number(1), "one")]
        inner = catalyst.project(named, plan)
        identity = identity_text(catalyst, inner, self.leaves, "", [])
        if identity not in self._known:
            view = InnerView(inner_name(self._view, 1 + len(self.views)), inner, rows)
            self._known[identity] = view
            self.views.append(view)
        return self._known[identity]

    def _read(self, inner: InnerView, plan: Plan) -> Plan:
        """A part by the stored rows of its hidden view."""
        leaf = self._catalyst.local_relation(inner.plan.output()).newInstance()
        self.leaves[attribute_id(leaf.output().apply(0))] = inner.name
        return self._as(plan, leaf)

    def _as(self, plan: Plan, leaf: Plan) -> Plan:
        """The rows of a leaf under the columns of a plan."""
        return self._catalyst.project(self._renamed(plan, leaf), leaf)

    def _renamed(self, plan: Plan, leaf: Plan) -> list[Expression]:
        """The first columns of a leaf under the names and ids of a plan's columns."""
        columns = zip(self._catalyst.items(leaf.output()), self._catalyst.items(plan.output()), strict=False)
        return [self._catalyst.alias_as(*each) for each in columns]

    def _join(self, plan: Plan) -> Plan:
        catalyst = self._catalyst
        self._check.check(plan, is_of_rows=True)
        found = catalyst.equal_keys(plan)
        if found is None:
            raise _without_keys(self._view, plan)
        sides = {LEFT: plan.left(), RIGHT: plan.right()}
        name = join_type(plan)
        kind, text = _KINDS[name]
        inner = {
            side: self._inner(sides[side], [self._hash(keys)], "sides") for side, keys in zip(sides, found, strict=True)
        }
        keys = found[0]
        if name == "RightOuter":
            keys = found[1]
            sides, inner = {LEFT: sides[RIGHT], RIGHT: sides[LEFT]}, {LEFT: inner[RIGHT], RIGHT: inner[LEFT]}
        columns = catalyst.items(plan.output())
        names = _unique_names(str(each.name()) for each in columns)
        joined, leaves = self._over_leaves(plan, sides, inner)
        named = catalyst.project(map(catalyst.alias, columns, names), joined)
        stored = self._stored(sides, inner)
        condition, used = self._condition(plan.condition().get(), stored)
        identity = identity_text(catalyst, named, {key: inner[side].name for key, side in leaves.items()}, "", [])
        join = JoinPlan(
            name=f"join {1 + len(self.computed)}",
            kind=kind,
            left=inner[LEFT].name,
            right=inner[RIGHT].name,
            columns=tuple(
                (name, *stored.get(attribute_id(each), (LEFT, None))) for name, each in zip(names, columns, strict=True)
            ),
            key=tuple(stored[attribute_id(key)][1] for key in keys if is_attribute(key)),
            identity=identity,
            text=text,
            plan=catalyst.analyse(named),
            leaves=leaves,
            condition=condition,
            condition_columns=used,
            between=self._between(plan.condition().get(), sides, stored) if self._event_times else None,
        )
        self.computed[join.name] = join
        leaf = catalyst.local_relation(named.output()).newInstance()
        self.leaves[attribute_id(leaf.output().apply(0))] = join.name
        rows = self._as(plan, leaf)
        return catalyst.filter(plan.condition().get(), rows) if join.kind == "inner" else rows

    def _has_scalar_subquery(self, plan: Plan) -> bool:
        # A projection without columns, below a count of rows, stays above the leaf.
        has_columns = bool(plan.output().size())
        return has_columns and ScalarSubqueryForm.stands_at(self._catalyst, self._single, plan, self._has_python)

    def _has_python(self, plan: Plan) -> bool:
        return has_python(self._catalyst, self._catalyst.items(plan.expressions()))

    def _scalar_subquery(self, plan: Plan) -> Plan:
        """Projections and filters over rows with values beside them as one leaf."""
        catalyst, items = self._catalyst, self._catalyst.items
        form = ScalarSubqueryForm(catalyst, self._single, plan, self._has_python)
        for each in form.operators:
            self._check.check(each)
        columns = items(plan.output())
        self._require_values([*columns, *items(form.below.output())], "a single value")
        below = self._cut(form.below)
        if not below.output().size():
            below = catalyst.project([catalyst.alias(catalyst.number(1), "one")], below)  # rows that are only counted
        inner = self._inner(below, [], "beside")
        kept = items(inner.plan.output())
        values, beside = self._single_values(form)
        names = _unique_names(str(each.name()) for each in columns)
        ids = [attribute_id(each) for each in (*items(below.output()), *(each for each, _ in beside))]
        apart = [each for _, each in beside]
        weight = catalyst.attributes(pa.schema([WEIGHT_FIELD]))
        later = [each.withName(f"{AFTER}{each.name()}") for each in apart]
        leaf, of_both = (
            catalyst.local_relation(catalyst.seq([*kept, *apart, *more])).newInstance() for more in (weight, later)
        )
        query = form.query(leaf, dict(zip(ids, items(leaf.output()), strict=False)), names)
        before = dict(zip(ids, items(of_both.output()), strict=False))
        after = before | dict(zip(ids[len(kept) :], items(of_both.output())[len(ids) :], strict=True))
        stored = {number: str(each.name()) for number, each in zip(ids, kept, strict=False)}
        leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, of_both)}
        name = f"values {1 + len(self.computed)}"
        self.computed[name] = ScalarSubqueryPlan(
            name=name,
            rows=inner.name,
            values=values,
            names=names,
            unchanged={
                column: stored[attribute_id(each)]
                for column, each in zip(names, form.columns, strict=True)
                if is_attribute(each) and attribute_id(each) in stored
            },
            identity=identity_text(catalyst, query, dict.fromkeys(leaves, inner.name), "", []),
            plan=query,
            schema=catalyst.arrow_schema(query),
            pairs=form.pairs(of_both, before, after, names),
            leaves=leaves,
        )
        result = catalyst.local_relation(catalyst.seq(items(query.output())[:-1])).newInstance()
        self.leaves[attribute_id(result.output().apply(0))] = name
        return self._as(plan, result)

    def _single_values(
        self, form: ScalarSubqueryForm
    ) -> tuple[tuple[SingleValue, ...], list[tuple[Expression, Expression]]]:
        """The hidden views with the single values, and each column of the query with its column beside the rows."""
        items, values, beside = self._catalyst.items, list[SingleValue](), list[tuple[Expression, Expression]]()
        for each in form.values:
            if not each.plan.output().size():
                raise refuse(self._view, "a join with one row of which no column is used", "leave it out")
            inner = self._inner(self.of(each.plan), [], "values")
            columns = list[tuple[str, str]]()
            for stored, column in zip(items(inner.plan.output()), items(each.plan.output()), strict=True):
                name = f"__sw_value_{1 + len(beside)}"
                columns.append((str(stored.name()), name))
                beside.append((column, column.withName(name).withNullability(True)))
            beside.append((each.flag, each.flag))
            values.append(SingleValue(inner.name, tuple(columns), str(each.flag.name())))
        return tuple(values), beside

    def _whole(self, plan: Plan, rows: Plan, over: _Over, what: str, text: str) -> Plan:
        """A query over all rows at once as one leaf.

        Args:
            plan: the query.
            rows: those below it.
            over: makes the same query over a leaf with these rows.
            what: the query, for messages.
            text: the query, for people.
        """
        catalyst, columns = self._catalyst, self._catalyst.items(plan.output())
        self._require_values(columns, what)
        below = self._cut(rows)
        inner = self._inner(below, [], "whole")
        names = _unique_names(str(each.name()) for each in columns)
        leaf = catalyst.local_relation(inner.plan.output()).newInstance()
        query = over(leaf, self._renamed(below, leaf), names)
        leaves = {attribute_id(leaf.output().apply(0)): ROWS}
        window = GlobalWindowPlan(
            name=f"all {1 + len(self.computed)}",
            rows=inner.name,
            names=names,
            text=text,
            identity=identity_text(catalyst, query, dict.fromkeys(leaves, inner.name), "", []),
            plan=query,
            schema=catalyst.arrow_schema(query),
            leaves=leaves,
        )
        self.computed[window.name] = window
        result = catalyst.local_relation(query.output()).newInstance()
        self.leaves[attribute_id(result.output().apply(0))] = window.name
        return self._as(plan, result)

    def _window(self, plan: Plan) -> Plan:
        """Windows over the rows of the same keys, or over all rows, as one leaf."""
        catalyst, form = self._catalyst, WindowForm(self._catalyst, self._view, plan)
        for each in form.operators:
            self._check.check(each)
        if form.has_python:
            raise refuse(self._view, "a Python function over a window", "take one of Spark's functions")
        if not is_by_key(catalyst, plan):
            return self._whole(plan, form.below, form.whole, "a window", f"{form.text} over all rows")
        columns = catalyst.items(plan.output())
        self._require_values(columns, "a window")
        below = self._cut(form.below)
        inner = self._inner(below, [catalyst.alias(catalyst.hash_of(form.keys), JOIN_FIELD.name)], "keys")
        kept = catalyst.items(inner.plan.output())[:-1]
        stored = {
            attribute_id(column): str(each.name())
            for column, each in zip(catalyst.items(below.output()), kept, strict=True)
        }
        names = _unique_names(str(each.name()) for each in columns)
        leaf, apart = leaf_with(catalyst, kept, WEIGHT_FIELD), catalyst.local_relation(catalyst.seq(kept)).newInstance()
        touched = form.touched(leaf, self._renamed(below, leaf), names)
        whole = form.whole(apart, self._renamed(below, apart), names)
        leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, apart)}
        window = WindowPlan(
            name=f"window {1 + len(self.computed)}",
            rows=inner.name,
            columns=tuple((name, stored.get(attribute_id(each))) for name, each in zip(names, columns, strict=True)),
            key=frozenset(stored[attribute_id(each)] for each in form.keys if is_attribute(each)),
            identity=identity_text(catalyst, touched, dict.fromkeys(leaves, inner.name), "", []),
            text=f"{form.text} by {', '.join(str(each.name()) for each in form.keys if is_attribute(each))}",
            plan=touched,
            schema=catalyst.arrow_schema(touched),
            whole=whole,
            leaves=leaves,
        )
        self.computed[window.name] = window
        rows = catalyst.local_relation(whole.output()).newInstance()
        self.leaves[attribute_id(rows.output().apply(0))] = window.name
        return self._as(plan, rows)

    def _limit(self, plan: Plan) -> Plan:
        """The first rows in an order as a leaf, under the projections of the query."""
        catalyst, form = self._catalyst, LimitForm(self._catalyst, self._view, plan)
        self._check.check(form.sort)
        if has_python(catalyst, form.order):
            raise refuse(self._view, "a Python function in the ORDER BY of a limit", "make it a column below the limit")
        if form.end is None or not form.are_few:
            return self._whole(plan, form.below, form.all_at_once, "a limit", _limit_text(form))
        self._require_values(catalyst.items(form.below.output()), "a limit")
        below = self._cut(form.below)
        inner = self._inner(below, [], "order")
        kept = catalyst.items(inner.plan.output())
        names = [str(each.name()) for each in kept]
        leaf = leaf_with(catalyst, kept, POSITION_FIELD)
        apart = catalyst.local_relation(catalyst.seq(kept)).newInstance()
        positions = form.positions(leaf, self._renamed(below, leaf))
        leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, apart)}
        limit = LimitPlan(
            name=f"limit {1 + len(self.computed)}",
            rows=inner.name,
            names=names,
            skipped=form.skipped,
            end=form.end,
            identity=identity_text(catalyst, positions, dict.fromkeys(leaves, inner.name), "", []),
            plan=positions,
            whole=form.whole(apart, self._renamed(below, apart), names),
            leaves=leaves,
        )
        self.computed[limit.name] = limit
        rows = catalyst.local_relation(limit.whole.output()).newInstance()
        self.leaves[attribute_id(rows.output().apply(0))] = limit.name
        first = self._as(below, rows)
        for each in reversed(form.projections):
            first = catalyst.with_children(each, [first])
        return first

    def _split(self, plan: Plan) -> tuple[list[Expression], Plan] | None:
        """The conditions on the time of a filter, or of an inner join, and the rows without them; None without one."""
        catalyst, kind = self._catalyst, simple_name(plan)
        if kind == "Filter":
            condition = plan.condition()
        elif kind == "Join" and plan.condition().isDefined() and _KINDS[join_type(plan)][0] == "inner":
            condition = plan.condition().get()
        else:
            return None
        conditions = catalyst.conjuncts(condition) if has_epoch_timestamp(catalyst, condition) else []
        temporal = [each for each in conditions if has_epoch_timestamp(catalyst, each)]
        if not temporal:
            return None
        others = [each for each in conditions if not has_epoch_timestamp(catalyst, each)]
        if kind == "Join":
            rest = catalyst.all_of(others) if others else None
            return temporal, catalyst.join_of(plan.joinType(), plan.left(), plan.right(), rest)
        return temporal, catalyst.filter(catalyst.all_of(others), plan.child()) if others else plan.child()

    def _temporal(self, plan: Plan, conditions: Sequence[Expression], rows: Plan) -> Plan:
        """A filter by the time of the epoch as a leaf."""
        catalyst, items = self._catalyst, self._catalyst.items
        found = [temporal_condition(catalyst, each) for each in conditions]
        parts = [each for each in found if each is not None]
        if len(parts) < len(found):
            self._check.check(plan)
        columns = items(plan.output())
        self._require_values(columns, "a filter by the time of an epoch")
        below = self.of(rows)
        numbers = {attribute_id(each): number for number, each in enumerate(items(below.output()))}
        compared, more = dict[_Compared, int | str](), list[Expression]()
        for part in dict.fromkeys(chain.from_iterable(map(comparisons_of, parts))):
            if is_attribute(part.value) and attribute_id(part.value) in numbers:
                compared[part] = numbers[attribute_id(part.value)]
                continue
            compared[part] = f"__sw_time_{1 + len(more)}"
            more.append(catalyst.alias(part.value, f"__sw_time_{1 + len(more)}"))
        inner = self._inner(below, more, "timed")
        kept, schema = items(inner.plan.output()), catalyst.arrow_schema(inner.plan)
        fields = {part: schema.field(column) for part, column in compared.items()}
        stored = {part: _over_rows(catalyst, part, each) for part, each in fields.items()}
        leaf = catalyst.local_relation(catalyst.seq(kept[: len(columns)])).newInstance()
        temporal = TemporalFilterPlan(
            name=f"time {1 + len(self.computed)}",
            rows=inner.name,
            names=[str(each.name()) for each in kept[: len(columns)]],
            conditions=tuple(_combined(each, stored) for each in parts),
            text=f"the rows with {' and '.join(each.sql() for each in conditions)}",
            identity=" and ".join(_condition_text(each, stored) for each in parts),
        )
        self.computed[temporal.name] = temporal
        self.leaves[attribute_id(leaf.output().apply(0))] = temporal.name
        return self._as(plan, leaf)

    def _require_values(self, columns: Iterable[Expression], what: str) -> None:
        """Refuses columns of rows that leave by their values, if equal values cannot be found."""
        for each in columns:
            if not can_name_groups(self._catalyst, each):
                kind = self._catalyst.data_type(each).simpleString()
                raise refuse(self._view, f"{what} beside {each.name()} of type {kind}", "take its entries")

    def _over_leaves(
        self, plan: Plan, sides: Mapping[str, Plan], inner: Mapping[str, InnerView]
    ) -> tuple[Plan, dict[int, str]]:
        """A join over a leaf for each side, and the sides of the leaves.

        Args:
            plan: the join.
            sides: side → its rows.
            inner: side → the hidden view with its rows.
        """
        catalyst, leaves, children = self._catalyst, dict[int, str](), list[Plan]()
        for side, rows in sides.items():
            output = catalyst.items(catalyst.local_relation(inner[side].plan.output()).newInstance().output())[:-1]
            leaves[attribute_id(output[0])] = side
            children.append(self._as(rows, catalyst.local_relation(catalyst.seq(output))))
        is_right = join_type(plan) == "RightOuter"
        kind = catalyst.singleton("catalyst.plans.LeftOuter") if is_right else plan.joinType()
        return catalyst.join_of(kind, children[0], children[1], plan.condition().get()), leaves

    def _condition(
        self, condition: Expression, stored: Mapping[int, tuple[str, str]]
    ) -> tuple[Plan, tuple[tuple[str, str], ...]]:
        """The query that computes a condition over one leaf, and the side and the column of each column of the leaf."""
        catalyst = self._catalyst
        used = catalyst.items(condition.references().toSeq())
        leaf = catalyst.local_relation(catalyst.seq(each.withName(f"c{at}") for at, each in enumerate(used)))
        query = catalyst.analyse(catalyst.project([catalyst.alias(condition, "are_partners")], leaf))
        return query, tuple(stored[attribute_id(each)] for each in used)

    def _between(
        self, condition: Expression, sides: Mapping[str, Plan], stored: Mapping[int, tuple[str, str]]
    ) -> Between | None:
        """The bounds of a condition for the event times of both sides; None unless it has two."""
        times = {
            number: EventTime(origin[0], column)
            for number, (side, column) in stored.items()
            if (origin := column_origin(self._catalyst, sides[side], number, self.leaves)) is not None
            and self._event_times.get(origin[0]) == origin[1]
        }
        most: dict[tuple[int, int], int] = {}
        for each in time_bounds(self._catalyst, condition):
            pair = each.later, each.earlier
            if times.keys() >= {*pair}:
                most[pair] = min(each.most_us, most.get(pair, each.most_us))
        for (later, earlier), us in most.items():
            if (stored[later][0], stored[earlier][0]) == (RIGHT, LEFT) and (earlier, later) in most:
                return Between(times[earlier], times[later], -most[earlier, later], us)
        return None

    def _hash(self, keys: Sequence[Expression]) -> Expression:
        """The column `__sw_join`; a null among the keys has no partner."""
        catalyst, expressions = self._catalyst, self._catalyst.expressions
        hashed = catalyst.hash_of(keys)
        if nullable := [expressions.IsNull(key) for key in keys if key.nullable()]:
            hashed = catalyst.when(reduce(expressions.Or, nullable), catalyst.null(hashed.dataType()), hashed)
        return catalyst.alias(hashed, JOIN_FIELD.name)

    def _stored(self, sides: Mapping[str, Plan], inner: Mapping[str, InnerView]) -> dict[int, tuple[str, str]]:
        """Id of each attribute of the sides of a join → the side, and the column of its hidden view."""
        items = self._catalyst.items
        return {
            attribute_id(column): (side, str(stored.name()))
            for side, rows in sides.items()
            for column, stored in zip(items(rows.output()), items(inner[side].plan.output()), strict=False)
        }


def _over_rows(catalyst: Catalyst, part: _Compared, column: pa.Field) -> TimeBound | RowFlag:
    """A part of a condition on the time, over the rows of a hidden view."""
    if isinstance(part, RowCondition):
        return RowFlag(column.name)
    boundary = Boundary(catalyst, part.boundary)
    return TimeBound(column.name, column.type, part.leaves, part.at_equal, boundary)


def _combined(part: ConditionPart, stored: _Stored) -> TimeBound | RowFlag | CombinedBounds:
    """A condition on the time, over the rows of a hidden view."""
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


def _limit_text(form: LimitForm) -> str:
    """A long limit, for people."""
    if form.end is None:
        return f"all rows in an order but the first {form.skipped:,}"
    return f"a limit to the first {form.end:,} rows"


def _without_keys(view: str, plan: Plan) -> Exception:
    kind = _KINDS[join_type(plan)][1]
    if plan.condition().isEmpty():
        return refuse(view, f"a join ({kind}) without a condition", "join by equal columns, as in ON a.id = b.id")
    if "isnull" in str(plan.condition().get()).lower() and kind in ("anti", "existence"):
        return refuse(view, "NOT IN over values that may be null", "write NOT EXISTS, which ignores nulls")
    return refuse(
        view,
        f"a join ({kind}) on {plan.condition().get().sql()}, without equal columns",
        "add an equality to its condition, as in ON a.id = b.id AND a.at < b.until",
    )


def _unique_names(names: Iterable[str]) -> list[str]:
    """Names of letters, digits and underscores, each once, whether upper or lower case."""
    unique: dict[str, str] = {}
    for name in (_NO_NAME.sub("_", each).strip("_") or "column" for each in names):
        candidates = chain([name], (f"{name}_{number}" for number in count(2)))
        free = next(each for each in candidates if each.lower() not in unique)
        unique[free.lower()] = free
    return list(unique.values())
