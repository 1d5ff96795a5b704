"""The plans and the definitions of model views."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spark_bridge.operators.join.join_plan import LEFT, RIGHT, Between, JoinPlan
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan, TimeBound
from spark_bridge.plans.expiry import EventTime
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.view_definition import BY_WATERMARK, ON_CLOSE, ViewDefinition
from spark_bridge.plans.view_plan import Closing, ViewPlan
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD, is_view
from tests.simulation.model_views.model_expectations import expectations_of, on_violation
from tests.simulation.model_views.model_view import (
    ClosedWindows,
    GroupedRows,
    JoinOfSources,
    ModelView,
    RowsBelow,
    SideOfJoin,
    TemporalFilterRows,
    TimeFilter,
    boundary_us,
    follows_watermarks,
    identity_of,
    internal_views_of,
    is_grouped,
)
from tests.simulation.world.file_rows import SCHEMA

AT, KEY = "at", "key"
SIDE = pa.schema([(AT, pa.string()), (KEY, pa.int64()), JOIN_FIELD])
"""The rows of a side of a join."""
TIME = "x"
EXPIRING_SIDE = pa.schema([(AT, pa.string()), (KEY, pa.int64()), (TIME, pa.timestamp("us")), JOIN_FIELD])
"""Those of a side whose rows expire."""
LEFT_TIME, RIGHT_TIME = "left_time", "right_time"
LEFT_AT, LEFT_KEY, RIGHT_AT, RIGHT_KEY, EXISTS = "left_at", "left_key", "right_at", "right_key", "exists"
FIRST, LAST = "first", "last"
BELOW = pa.schema([(AT, pa.string()), (FIRST, pa.int64()), (LAST, pa.int64())])
"""The rows below a filter by the time."""
_LEAF = "leaf"


def definition_of(view: ModelView, *, expects: bool = False) -> ViewDefinition:
    """The declaration of a model view; nothing reads its query.

    Args:
        view: the view.
        expects: whether it has the expectations that such views have.
    """
    # Internal views are made of the query of their view, which names sources.
    query = f"SELECT * FROM {', '.join(sorted([*filter(is_view, view.parents)] or view.sources))}"
    return ViewDefinition(
        view.name,
        query=query,
        replace=is_grouped(view),
        cascade=is_grouped(view),
        expect=expectations_of(view) if expects else {},
        on_violation=on_violation(view.name) if expects else "count",
    )


def plan_of(view: ModelView, materialized: Collection[str]) -> ViewPlan:
    """The plan of a model view.

    Args:
        view: the view.
        materialized: the sources whose rows are stored.
    """
    nothing: Any = None
    unused: Any = SimpleNamespace(are_used=False)
    computed, columns = _computed(view), {name: frozenset[str]() for name in view.parents or view.sources}
    if isinstance(view, SideOfJoin | RowsBelow) and view.sources <= {*materialized}:
        columns = dict.fromkeys(view.sources, frozenset({FILE_FIELD.name}))
    what = f"rows below {view.filter}" if isinstance(view, RowsBelow) else "groups"
    if isinstance(view, GroupedRows):
        what = f"{view.groups} groups above {view.above}"
    join = view.join if isinstance(view, SideOfJoin) else None
    expiry = None if join is None else dict(_join_plan(join).expiries)[view.name]
    content = f"{'rows' if isinstance(view, SideOfJoin) else what} of {', '.join(sorted(view.sources))}"
    closing = Closing(min(view.sources), 0) if isinstance(view, ClosedWindows) else None
    return ViewPlan(
        name=view.name,
        view_class="full" if view.is_full else "aggregate" if view.has_state else "append",
        sources=tuple(sorted(view.sources)),
        views=tuple(filter(is_view, view.parents)),
        parents=view.parents,
        columns={_LEAF: frozenset()} if computed else columns,
        schema=_schema(view),
        key=(),
        is_changing=False,
        identity=identity_of(view),
        definition=identity_of(view) + (ON_CLOSE if closing else BY_WATERMARK if follows_watermarks(view) else ""),
        reason="",
        plan=nothing,
        timestamps=unused,
        leaves={},
        computed=computed,
        content=None if is_view(view.name) or expiry else content,
        closing=closing,
        expiry=expiry,
        inner=tuple(plan_of(each, materialized) for each in internal_views_of(view)),
    )


def _schema(view: ModelView) -> pa.Schema:
    if isinstance(view, SideOfJoin):
        return SIDE if view.join is None else EXPIRING_SIDE
    return BELOW if isinstance(view, RowsBelow) else SCHEMA


def _computed(view: ModelView) -> dict[str, OperatorPlan]:
    if isinstance(view, JoinOfSources):
        return {_LEAF: _join_plan(view)}
    return {_LEAF: _timed_plan(view)} if isinstance(view, TemporalFilterRows) else {}


@dataclass(frozen=True)
class _Boundary:
    """See `spark_bridge.operators.temporal_filter.temporal_conditions.Boundary`."""

    filter: TimeFilter

    def at(self, time_us: int) -> int:
        return boundary_us(self.filter, time_us)


def _timed_plan(view: TemporalFilterRows) -> TemporalFilterPlan:
    first = TimeBound(FIRST, pa.int64(), leaves=False, at_equal=True, boundary=_Boundary("while"))
    last = TimeBound(LAST, pa.int64(), leaves=True, at_equal=True, boundary=_Boundary(view.filter))
    return TemporalFilterPlan(
        _LEAF, view.parents[0], names=[AT], conditions=(first, last), text=view.filter, identity=view.filter
    )


def _join_plan(view: JoinOfSources) -> JoinPlan:
    nothing: Any = None
    parents = {source: parent for parent, source in view.sides.items()}
    columns: list[tuple[str, str, str | None]] = [(LEFT_AT, LEFT, AT), (LEFT_KEY, LEFT, KEY)]
    if view.kind in ("inner", "left", "full"):
        columns += [(RIGHT_AT, RIGHT, AT), (RIGHT_KEY, RIGHT, KEY)]
    if view.kind == "existence":
        columns.append((EXISTS, LEFT, None))
    condition_columns, between = [(LEFT, KEY), (RIGHT, KEY)], None
    if view.within is not None:
        columns += [(LEFT_TIME, LEFT, TIME), (RIGHT_TIME, RIGHT, TIME)] if view.kind == "inner" else []
        condition_columns += [(LEFT, TIME), (RIGHT, TIME)]
        between = Between(EventTime(view.left, TIME), EventTime(view.right, TIME), *view.within)
    return JoinPlan(
        name=_LEAF,
        kind=view.kind,
        left=parents[view.left],
        right=parents[view.right],
        columns=tuple(columns),
        key=(KEY,),
        identity=view.kind,
        text=view.kind,
        plan=nothing,
        leaves={},
        condition=nothing,
        condition_columns=tuple(condition_columns),
        between=between,
    )
