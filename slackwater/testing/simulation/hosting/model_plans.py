"""The plans and the definitions of model views."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from slackwater.testing.simulation.promises.model_view import (
    ClosedWindows,
    JoinOfSources,
    ModelView,
    SideOfJoin,
    hidden_in,
)
from slackwater.testing.simulation.world.file_rows import SCHEMA
from spark_bridge.analysis.computed_leaves import LEFT, RIGHT, JoinPlan
from spark_bridge.analysis.view_definition import ON_CLOSE, ViewDefinition
from spark_bridge.analysis.view_plan import Closing, ViewPlan
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD, is_view

AT, KEY = "at", "key"
SIDE = pa.schema([(AT, pa.string()), (KEY, pa.int64()), JOIN_FIELD])
"""The rows of a side of a join."""
LEFT_AT, LEFT_KEY, RIGHT_AT, RIGHT_KEY, EXISTS = "left_at", "left_key", "right_at", "right_key", "exists"
_JOIN = "join"


def definition_of(view: ModelView) -> ViewDefinition:
    """The declaration of a model view; nothing reads its query."""
    return ViewDefinition(view.name, query=f"SELECT * FROM {', '.join(sorted(view.parents or view.sources))}")


def plan_of(view: ModelView, materialized: Collection[str]) -> ViewPlan:
    """The plan of a model view.

    Args:
        view: the view.
        materialized: the sources whose rows are stored.
    """
    nothing: Any = None
    is_join, is_side = isinstance(view, JoinOfSources), isinstance(view, SideOfJoin)
    columns = {name: frozenset[str]() for name in view.parents or view.sources}
    if is_side and view.sources <= {*materialized}:
        columns = dict.fromkeys(view.sources, frozenset({FILE_FIELD.name}))
    content = f"{'rows' if is_side else 'groups'} of {', '.join(sorted(view.sources))}"
    closing = Closing(min(view.sources), 0) if isinstance(view, ClosedWindows) else None
    return ViewPlan(
        name=view.name,
        view_class="full" if view.is_full else "aggregate" if view.has_state else "append",
        sources=tuple(sorted(view.sources)),
        views=tuple(filter(is_view, view.parents)),
        parents=view.parents,
        columns={_JOIN: frozenset()} if is_join else columns,
        schema=SIDE if is_side else SCHEMA,
        key=(),
        is_changing=False,
        identity=view.name,
        definition=view.name + ON_CLOSE if closing else view.name,
        reason="",
        plan=nothing,
        timestamps=nothing,
        leaves={},
        computed={_JOIN: _join_plan(view)} if isinstance(view, JoinOfSources) else {},
        content=None if is_view(view.name) else content,
        closing=closing,
        inner=tuple(plan_of(each, materialized) for each in hidden_in(view)),
    )


def _join_plan(view: JoinOfSources) -> JoinPlan:
    nothing: Any = None
    parents = {source: parent for parent, source in view.sides.items()}
    columns: list[tuple[str, str, str | None]] = [(LEFT_AT, LEFT, AT), (LEFT_KEY, LEFT, KEY)]
    if view.kind in ("inner", "left", "full"):
        columns += [(RIGHT_AT, RIGHT, AT), (RIGHT_KEY, RIGHT, KEY)]
    if view.kind == "existence":
        columns.append((EXISTS, LEFT, None))
    return JoinPlan(
        name=_JOIN,
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
        condition_columns=((LEFT, KEY), (RIGHT, KEY)),
    )
