"""The analysis of a declared view: its class, its schema and its plan, or its refusal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.schemas.ddl import format_schema
from actors.schemas.metadata_columns import PATH, ROW
from actors.schemas.safe_types import STORABLE_NAME, can_be_stored, has_nul_in_names
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema
from spark_bridge.engine.catalyst.carried_column import with_places
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.engine.catalyst.epoch_timestamps import EpochTimestamps, wall_clock_literal
from spark_bridge.engine.catalyst.trees import Plan, parts_of
from spark_bridge.engine.session.spark_errors import one_line
from spark_bridge.operators.cut import InnerView
from spark_bridge.operators.join.joined_form import (
    has_join,
    with_joins,
    with_narrow_sides,
    without_constant_sides,
    without_order,
    without_unused,
)
from spark_bridge.operators.join.time_bounds import with_ages, with_bounds
from spark_bridge.operators.limit.limit_form import has_limit
from spark_bridge.operators.scalar_subquery.single_values import (
    SingleRows,
    ValueJoins,
    has_single_values,
)
from spark_bridge.operators.temporal_filter.temporal_conditions import has_temporal_filter
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan
from spark_bridge.operators.window.window_form import windows_of
from spark_bridge.plans.columns import grouping_columns, used_columns
from spark_bridge.plans.expiry import EventTime, Expiry
from spark_bridge.plans.function_source import constant_texts, definition_text, identity_texts
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.operators import (
    ExpressionCheck,
    has_python,
    refuse,
)
from spark_bridge.plans.plan_text import identity_text
from spark_bridge.plans.planned_view import PlannedView, names_within, parents_of
from spark_bridge.plans.total_order import TotalOrder
from spark_bridge.plans.view_definition import BY_TTL, BY_WATERMARK, EMITTED, EXPIRING, ON_CLOSE, ViewDefinition
from spark_bridge.plans.view_plan import Closing, ViewPlan
from spark_bridge.query.classification import Classification
from spark_bridge.query.closing import closing_of
from spark_bridge.query.declared_view import DeclaredView
from spark_bridge.query.full_analysis import (
    full_refusal,
    named_leaves,
    require_order,
    views_read,
)
from spark_bridge.query.inner_views import InnerCut, inner_text
from spark_bridge.query.plain_plan import PlainForm, leaves_used, require_own_leaves
from spark_bridge.query.row_expiry import RowExpiry, expiring
from spark_bridge.query.spark_analysis import SparkAnalysis
from state.errors import NotIncrementalError, SchemaError, ViewError
from state.tables.records import ViewClass
from state.tables.stored_rows import FILE_FIELD, is_view

RESERVED_PREFIX = "__sw_"


def analyse(
    spark: SparkSession,
    definition: ViewDefinition,
    schemas: Mapping[str, pa.Schema | None],
    materialized: Collection[str] = (),
    *,
    views: Mapping[str, PlannedView] = MappingProxyType({}),
    absent: Mapping[str, ViewError] = MappingProxyType({}),
    keys: RowKeys = MappingProxyType({}),
    event_times: Mapping[str, str] = MappingProxyType({}),
) -> ViewPlan:
    """Analyses a view over empty frames of its sources and parents, and chooses its class.

    Args:
        spark: any session; nothing is executed.
        schemas: source → its schema, None while it is not known; all declared sources.
        materialized: the sources whose rows are stored.
        views: name → view, of those that it may read.
        absent: name → error of each declared view that it cannot read; raised if it does.
        keys: the sources of which views see the last row of each key.
        event_times: source → the column with its event time, of the sources with one.

    Raises:
        ViewError: the view cannot be built: an unknown source, an error in the SQL, an unusable column name.
        NotIncrementalError: the view cannot be maintained epoch by epoch, and recomputation is not allowed or not
            possible.
        SourceWithoutSchemaError: it reads a source whose schema is not known yet.
    """
    return _Analysis(spark, definition, schemas, materialized, views, absent, keys, event_times).view_plan()


class _Analysis:
    """The analysis of one view."""

    def __init__(
        self,
        spark: SparkSession,
        definition: ViewDefinition,
        schemas: Mapping[str, pa.Schema | None],
        materialized: Collection[str],
        views: Mapping[str, PlannedView],
        absent: Mapping[str, ViewError],
        keys: RowKeys,
        event_times: Mapping[str, str],
    ) -> None:
        self._catalyst = Catalyst(spark)
        self._trees = self._catalyst.trees
        self._spark_analysis = SparkAnalysis(spark, self._catalyst, definition, schemas, views, absent, keys=keys)
        self._declared = DeclaredView(definition, schemas, materialized, keys, event_times)
        self._definition, self._name, self._views = definition, definition.name, views
        self._leaves: dict[int, str] = {}
        self._computed: dict[str, OperatorPlan] = {}
        self._named: tuple[str, ...] = ()
        self._check = ExpressionCheck(self._name, self._catalyst)
        self._classes = Classification(self._catalyst, self._declared, views, self._check)

    def view_plan(self) -> ViewPlan:
        analysed_plan = self._spark_analysis.analysed_plan()
        schema = self._result_schema(analysed_plan)
        views = {name: self._views[name] for name in views_read(self._trees, analysed_plan, self._views)}
        stored = parents_of(views)
        leaves = [name for name, _ in named_leaves(self._trees, analysed_plan, self._declared.schemas, stored)]
        used = self._named = tuple(dict.fromkeys(leaves))
        if not used:
            raise ViewError(f"view {self._name!r} uses no source; declared are {self._spark_analysis.declared_sources}")
        self._require_no_clock()
        unordered = without_order(self._trees, analysed_plan)
        form = PlainForm(self._catalyst, self._declared, {*names_within(self._views)}, stored)
        plan = form.of(with_joins(self._catalyst, unordered))
        self._leaves = form.leaves
        expiry = RowExpiry(self._catalyst, self._declared, used)
        parents = {name: each.plan for name, each in stored.items() if name in used}
        inner: dict[str, ViewPlan] = {}
        outer = dict(self._leaves)
        closing: Closing | None = None
        aging: EventTime | None = None
        expires = self._definition.expires
        try:
            plan = self._with_total_orders(form.with_plain_values(plan))
            if (ttl_us := self._definition.ttl_us) is not None:
                if has_join(self._trees, plan):
                    plan = with_bounds(self._catalyst, plan, self._leaves, self._declared.event_times, ttl_us)
                else:
                    aging, expires = expiry.time_of(plan, views, self._leaves), False
                    plan = with_ages(self._catalyst, plan, self._leaves, self._declared.event_times, ttl_us)
            single_leaves = self._single_leaves(parents)
            if (
                has_join(self._trees, plan)
                or has_single_values(self._trees, plan)
                or has_temporal_filter(self._trees, plan)
            ):
                plan = self._with_narrow_sides(plan, SingleRows(self._catalyst.plans, single_leaves))
            require_own_leaves(self._trees, self._name, plan, self._leaves)
            sources = {*self._leaves.values()} - {*stored}
            times = self._declared.event_times if expires else {}
            cut = InnerCut(self._catalyst, self._name, self._leaves, sources, self._check, single_leaves, times)
            before = plan
            plan = cut.of(plan)
            self._leaves, self._computed = cut.leaves, cut.computed
            self._require_no_schedule()
            expiries: dict[str, Expiry] = {}
            if expires:
                expiries = expiry.of_joins(parents, self._computed)
            elif aging is not None:
                expiries = expiry.of_ages(aging, self._computed)
            whole = identity_text(self._trees, before, self._leaves, format_schema(schema), []) if expires else ""
            for each in cut.views:
                inner[each.name] = self._inner_plan(each, parents | inner)
                if each.name in expiries:
                    inner[each.name] = expiring(inner[each.name], expiries[each.name], whole)
            view_class, reason = self._classes.maintained(plan)
            self._require_followed(plan, view_class, parents | inner)
            if self._definition.emit == "on_close":
                closing = closing_of(
                    self._catalyst, self._declared, plan, view_class, {**parents, **inner}, self._leaves
                )
                plan = with_places(self._catalyst, plan, self._leaves)
                reason += f", and shows a group when the watermark of {closing.source} has passed its {closing.what}"
            reason += inner_text(cut.views)
            if aging is not None:
                reason += (
                    f"; rows whose {aging.column} is more than {self._definition.ttl_text} before the watermark of "
                    f"{aging.source} do not count, and leave, by ttl"
                )
            elif expiries:
                reason += f"; rows of {' and '.join(expiries)} leave when the watermarks show that no partner comes"
                if self._definition.ttl is not None:
                    reason += f"; rows more than {self._definition.ttl_text} apart are no partners, by ttl"
            reason += "".join(
                f"; of {name} it sees {self._declared.keys[name].text}" for name in used if name in self._declared.keys
            )
            if unordered is not analysed_plan:
                reason += "; a view has no order, so its ORDER BY is left out"
        except NotIncrementalError as refusal:
            if self._definition.emit is not None or self._definition.expires:
                raise full_refusal(refusal) from None
            # The identity of a full view does not know the leaves within subqueries.
            plan, inner, self._computed, self._leaves = analysed_plan, {}, {}, outer
            view_class, reason = self._classes.recomputed(plan, refusal, [each for each in used if each not in stored])
        identities = [f"reads view {name}, which is\n{each.plan.identity}" for name, each in views.items()]
        if closing is not None:
            identities.append(EMITTED)
        if expires:
            identities.append(EXPIRING)
        planned = self._plan_of(self._name, plan, view_class, reason, schema, parents | inner, identities)
        if self._definition.ttl is not None:
            planned = replace(planned, definition=f"{planned.definition}\n{BY_TTL}{self._definition.ttl_text}")
        if expires:
            expiry.require_kept_groups([*inner.values(), planned])
            planned = replace(planned, definition=f"{planned.definition}\n{BY_WATERMARK}")
        if closing is not None:
            used_too = {**planned.columns, closing.source: planned.columns[closing.source] | {PATH, ROW}}
            definition = f"{planned.definition}\n{ON_CLOSE}"
            planned = replace(planned, columns=used_too, definition=definition, closing=closing)
        return replace(planned, views=tuple(views), inner=tuple(inner.values()))

    def _with_total_orders(self, plan: Plan) -> Plan:
        """The plan with total orders in windows and limits, and without columns that nothing uses; or the same plan.

        Raises:
            NotIncrementalError: a window function gives any answer.
        """
        windows = windows_of(self._trees, plan)
        for window in windows:
            self._check.check(window)
            for function in self._trees.items(window.windowExpressions()):
                require_order(self._trees, self._name, function)
        if not windows and not has_limit(self._trees, plan):
            return plan
        # Ties are told apart by all columns, also by those that nothing else uses: the orders come first.
        return without_unused(self._catalyst, TotalOrder(self._catalyst, self._name).of(plan))

    def _with_narrow_sides(self, plan: Plan, single: SingleRows) -> Plan:
        """The plan with joins in place of subqueries, in which each side has what the query uses."""
        plan = with_narrow_sides(self._catalyst, plan)
        joined = ValueJoins(self._catalyst, single).of(plan)
        if not joined.fastEquals(plan):
            plan = self._catalyst.queries.prune_columns(joined)
        return without_constant_sides(self._catalyst, plan, self._leaves)

    def _single_leaves(self, parents: Mapping[str, ViewPlan]) -> frozenset[int]:
        """The leaves of views that group into a single row."""
        single = SingleRows(self._catalyst.plans)
        names = {name for name, each in parents.items() if each.view_class == "aggregate" and single.has_one(each.plan)}
        return frozenset(number for number, name in self._leaves.items() if name in names)

    def _require_no_schedule(self) -> None:
        """Refuses a view that reads all rows in some epochs, if it is to be recomputed at intervals instead.

        Raises:
            NotIncrementalError: naming the operator.
        """
        definition = self._definition
        if definition.on_full != "allow" or not definition.refresh_interval_s:
            return
        for each in self._computed.values():
            if each.reads_all:
                raise refuse(self._name, each.text, "refresh_interval_s recomputes it at intervals, beside the epochs")

    def _inner_plan(self, inner: InnerView, parents: Mapping[str, ViewPlan]) -> ViewPlan:
        """The plan of an internal view.

        Raises:
            NotIncrementalError: it cannot be maintained epoch by epoch, or its rows cannot be stored.
        """
        view_class, reason = self._classes.maintained(inner.plan)
        self._require_followed(inner.plan, view_class, parents)
        try:
            schema = self._catalyst.schemas.arrow_schema(inner.plan)
            format_schema(schema)
        except (PySparkException, TypeError, SchemaError) as error:
            raise refuse(self._name, f"{inner.rows.whose} cannot be stored", one_line(error)) from None
        plan = self._plan_of(inner.name, inner.plan, view_class, reason, schema, parents, [])
        return replace(plan, content=self._content(inner.plan, plan, parents))

    def _content(self, analysed_plan: Plan, plan: ViewPlan, parents: Mapping[str, ViewPlan]) -> str | None:
        """The identity of an internal view's rows, equal in all views; None if the rows depend on the time of an epoch,
        or are not known.

        Args:
            analysed_plan: of the internal view, with the time of the epoch.
            parents: name → plan of each view whose stored rows it may read.
        """
        if plan.computed or plan.timestamps.are_in(analysed_plan) or self._has_python(analysed_plan):
            return None
        contents = {
            name: name if name not in parents or is_view(name) else parents[name].content for name in plan.columns
        }
        known = {name: content for name, content in contents.items() if content is not None}
        if len(known) < len(contents):
            return None
        leaves = {number: known[name] for number, name in plan.leaves.items()}
        return f"{plan.view_class} {identity_text(self._trees, analysed_plan, leaves, format_schema(plan.schema), [])}"

    def _has_python(self, plan: Plan) -> bool:
        """True if a plan calls a Python function, whose code its text does not show."""
        return any(
            has_python(self._trees, self._trees.items(part.expressions())) for part in parts_of(self._trees, plan)
        )

    def _plan_of(
        self,
        name: str,
        plan: Plan,
        view_class: ViewClass,
        reason: str,
        schema: pa.Schema,
        parents: Mapping[str, ViewPlan],
        identities: Sequence[str],
    ) -> ViewPlan:
        """The plan of the view, or of an internal view.

        Args:
            name: its recorded name.
            plan: with empty leaves; for a full view, the plan of Spark's analysis.
            reason: the reason for its class.
            parents: name → plan of each view whose stored rows it may read.
            identities: the texts of what its definition expands to.
        """
        if view_class == "full":
            # It reads stored rows, and none of the rows that an epoch hands over.
            used = self._named
            columns = dict.fromkeys(used, frozenset[str]())
        else:
            used = leaves_used(self._trees, plan, self._leaves)
            plan = TotalOrder(self._catalyst, self._name).of(plan)
            columns = used_columns(self._catalyst, plan, self._leaves)
        computed = {each: self._computed[each] for each in used if each in self._computed}
        stored = [name for each in used for name in (computed[each].sides if each in computed else (each,))]
        read = {each: parents[each] for each in stored if each in parents}
        is_changing = bool(read) or {*used} <= {*self._declared.materialized}
        if view_class == "append" and is_changing and not read:
            columns = {source: each | {FILE_FIELD.name} for source, each in columns.items()}
        function = self._definition.function
        texts = [] if function is None else identity_texts(function)
        within = [f"groups within by {each.identity}" for each in read.values() if not is_view(each.name)]
        within += [each.definition for each in computed.values()]
        timestamps = EpochTimestamps(self._catalyst)
        sources = [source for each in stored for source in (read[each].sources if each in read else (each,))]
        return ViewPlan(
            name=name,
            view_class=view_class,
            sources=tuple(dict.fromkeys(sources)),
            views=(),
            parents=tuple(read),
            columns=columns,
            schema=schema,
            key=grouping_columns(self._trees, plan) if view_class == "aggregate" else (),
            is_changing=is_changing,
            identity=identity_text(
                self._trees, plan, self._leaves, format_schema(schema), [*texts, *identities, *within]
            ),
            definition=(self._definition.query or "").strip() if function is None else definition_text(function),
            reason=reason,
            plan=plan if view_class == "full" else timestamps.put_into(plan),
            timestamps=timestamps,
            leaves={number: each for number, each in self._leaves.items() if each in used},
            computed=computed,
            clock=next((leaf.clock for leaf in computed.values() if isinstance(leaf, TemporalFilterPlan)), None),
        )

    def _require_followed(self, plan: Plan, view_class: ViewClass, parents: Collection[str]) -> None:
        """Refuses a view that cannot follow the changes of its parents.

        Raises:
            NotIncrementalError: with what to write instead.
        """
        used = leaves_used(self._trees, plan, self._leaves)
        of_groups = view_class == "aggregate" and any(name in parents or name in self._computed for name in used)
        by_values = any(name in self._computed for name in used)
        if (of_groups or by_values) and EpochTimestamps(self._catalyst).are_in(plan):
            advice = (
                "the groups of rows that change are computed again later"
                if of_groups
                else "rows of joins, windows and limits leave by their values, which would be others later; take the "
                "time below them"
            )
            raise refuse(self._name, "the time of an epoch", advice)

    def _require_no_clock(self) -> None:
        """Refuses a literal that Spark's parser reads from the clock: its plan shows a constant."""
        function = self._definition.function
        texts = [self._definition.query or ""] if function is None else constant_texts(function)
        for literal in filter(None, map(wall_clock_literal, texts)):
            raise refuse(
                self._name,
                literal,
                "it is read from the clock of each start; write current_date() or current_timestamp()",
            )

    def _result_schema(self, plan: Plan) -> pa.Schema:
        struct = self._catalyst.schemas.struct_type(plan)
        seen: dict[str, str] = {}
        for name in struct.names:
            if name.startswith(RESERVED_PREFIX):
                raise self._column_error(name, f"names that start with {RESERVED_PREFIX} are reserved")
            if not can_be_stored(name):
                raise self._column_error(name, STORABLE_NAME)
            if name.lower() in seen:
                raise self._column_error(name, f"there is a column {seen[name.lower()]!r} already")
            seen[name.lower()] = name
        try:
            schema = arrow_schema(struct)
            format_schema(schema)
            if unusable := [field.name for field in schema if has_nul_in_names(field.type)]:
                raise self._column_error(unusable[0], "a field in it has a NUL character in its name")
        except (PySparkException, TypeError, SchemaError) as error:
            raise ViewError(f"view {self._name!r}: {one_line(error)}") from None
        return schema

    def _column_error(self, name: str, what: str) -> ViewError:
        return ViewError(f"view {self._name!r}, column {name!r}: {what}; name it with AS")
