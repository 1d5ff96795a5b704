"""The class of a view: whether, and how, it is maintained epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan, simple_name
from spark_bridge.operators.group.aggregate_calls import aggregate_calls
from spark_bridge.operators.temporal_filter.temporal_conditions import has_temporal_filter
from spark_bridge.plans.operators import (
    PROJECTION_OPERATORS,
    ExpressionCheck,
    refuse,
    refuse_operator,
)
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.stored_values import can_name_groups
from spark_bridge.query.declared_view import DeclaredView
from spark_bridge.query.full_analysis import (
    full_refusal,
    require_recomputable,
)
from state.errors import NotIncrementalError
from state.tables.records import ViewClass


class Classification:
    """Chooses the class of a view, or of an internal view of it.

    Args:
        views: name → view, of the views that it may read.
    """

    def __init__(
        self, catalyst: Catalyst, declared: DeclaredView, views: Mapping[str, PlannedView], check: ExpressionCheck
    ) -> None:
        self._catalyst, self._trees, self._declared = catalyst, catalyst.trees, declared
        self._views, self._check = views, check

    def maintained(self, plan: Plan) -> tuple[ViewClass, str]:
        """The class and its reason.  Descends to the first operator that is neither Project nor Filter."""
        above: list[Plan] = []
        while simple_name(plan) in ("Project", "Filter"):
            above.append(plan)
            plan = plan.child()
        groups_rows = simple_name(plan) == "Aggregate"
        for each in above:
            self._check.check(each, is_of_rows=not groups_rows)
        if not groups_rows:
            self._require_projection(plan)
            return "append", "it looks at one row at a time"
        self._check.check_aggregate(plan)
        self._require_projection(plan.child())
        aggregate_calls(self._catalyst, self._declared.name, plan)
        self._require_group_types(plan)
        having = ", with a filter on the groups" if any(simple_name(each) == "Filter" for each in above) else ""
        groups = plan.groupingExpressions().size()
        by = f"by {groups} expression{'s' if groups > 1 else ''}" if groups else "into a single row"
        return "aggregate", f"it groups once, {by}{having}"

    def recomputed(self, plan: Plan, refusal: NotIncrementalError, sources: Iterable[str]) -> tuple[ViewClass, str]:
        """The class and the reason of a view that must be recomputed as a whole.

        Raises:
            NotIncrementalError: recomputation is not possible, or not allowed.
        """
        is_query = self._declared.definition.function is None
        try:
            require_recomputable(
                self._catalyst, self._declared.name, plan, self._declared.schemas, self._views, is_query=is_query
            )
        except NotIncrementalError as other:
            # A filter by the time is maintained, but for the reason that is known.
            raise (refusal if has_temporal_filter(self._trees, plan) else other) from None
        apart = sorted({*sources} - {*self._declared.materialized})
        if self._declared.definition.on_full != "allow":
            raise full_refusal(refusal, apart) from None
        if apart:
            raise NotIncrementalError(
                f"{refusal}; to be recomputed as a whole it needs the stored rows of {', '.join(apart)}: declare each "
                "source with materialize=True"
            ) from None
        return "full", refusal.args[0].partition(" because of ")[2]

    def _require_group_types(self, aggregate: Plan) -> None:
        for grouping in self._trees.items(aggregate.groupingExpressions()):
            if not can_name_groups(self._catalyst.schemas, grouping):
                kind = self._catalyst.schemas.data_type(grouping).simpleString()
                raise refuse(self._declared.name, f"grouping by {grouping.sql()} of type {kind}", "group by its parts")

    def _require_projection(self, plan: Plan) -> None:
        children = self._trees.items(plan.children())
        if not children:
            return
        if simple_name(plan) not in PROJECTION_OPERATORS:
            raise refuse_operator(self._declared.name, plan)
        self._check.check(plan, is_of_rows=True)
        for child in children:
            self._require_projection(child)
