"""The analysis of a declared view: its class, its schema and its plan, or its refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id, parts_of, simple_name
from spark_bridge.engine.session.spark_errors import one_line
from spark_bridge.operators.cut import InnerView
from spark_bridge.operators.group.aggregate_calls import aggregate_calls
from spark_bridge.operators.group.aggregate_functions import with_plain_pivot
from spark_bridge.operators.join.join_plan import JoinPlan
from spark_bridge.operators.join.joined_form import (
    has_join,
    with_joins,
    with_narrow_sides,
    without_constant_sides,
    without_order,
    without_unused,
)
from spark_bridge.operators.join.time_bounds import with_ages, with_bounds
from spark_bridge.operators.limit.limit_form import drops_nothing, has_limit, keeps_any_row
from spark_bridge.operators.scalar_subquery.single_values import (
    SingleRows,
    ValueJoins,
    existence,
    has_single_values,
    is_existence,
    is_single_value,
)
from spark_bridge.operators.temporal_filter.temporal_conditions import has_temporal_filter
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan
from spark_bridge.operators.window.session_windows import with_sessions
from spark_bridge.operators.window.time_windows import (
    has_grouping_sets,
    session_positions,
    window_positions,
    window_time,
)
from spark_bridge.operators.window.window_form import windows_of
from spark_bridge.plans.columns import aggregate_of, grouping_columns, used_columns
from spark_bridge.plans.expiry import EventTime, Expiry
from spark_bridge.plans.function_source import constant_texts, definition_text, identity_texts
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.operators import (
    PLACES_ROWS,
    PROJECTION_OPERATORS,
    ExpressionCheck,
    has_python,
    refuse,
    refuse_operator,
)
from spark_bridge.plans.plan_text import identity_text
from spark_bridge.plans.planned_view import PlannedView, names_within, parents_of
from spark_bridge.plans.stored_values import can_name_groups
from spark_bridge.plans.total_order import TotalOrder
from spark_bridge.plans.view_definition import BY_TTL, BY_WATERMARK, EMITTED, EXPIRING, ON_CLOSE, ViewDefinition
from spark_bridge.plans.view_plan import Closing, ViewPlan
from spark_bridge.query.full_analysis import (
    full_refusal,
    named_leaves,
    require_order,
    require_recomputable,
    views_read,
)
from spark_bridge.query.inner_views import InnerCut, inner_text
from spark_bridge.query.spark_analysis import LEAVES, SparkAnalysis
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
        self._catalyst, self._keys, self._event_times = Catalyst(spark), keys, event_times
        self._trees = self._catalyst.trees
        self._spark_analysis = SparkAnalysis(spark, self._catalyst, definition, schemas, views, absent, keys=keys)
        self._definition = definition
        self._name = definition.name
        self._schemas, self._views, self._expanded = schemas, views, {*names_within(views)}
        self._materialized = materialized
        self._leaves: dict[int, str] = {}
        self._computed: dict[str, OperatorPlan] = {}
        self._named: tuple[str, ...] = ()
        self._check = ExpressionCheck(self._name, self._catalyst)

    def view_plan(self) -> ViewPlan:
        analysed_plan = self._spark_analysis.analysed_plan()
        schema = self._result_schema(analysed_plan)
        views = {name: self._views[name] for name in views_read(self._trees, analysed_plan, self._views)}
        stored = parents_of(views)
        leaves = [name for name, _ in named_leaves(self._trees, analysed_plan, self._schemas, stored)]
        used = self._named = tuple(dict.fromkeys(leaves))
        if not used:
            raise ViewError(f"view {self._name!r} uses no source; declared are {self._spark_analysis.declared_sources}")
        self._require_no_clock()
        unordered = without_order(self._trees, analysed_plan)
        plan = self._plain(with_joins(self._catalyst, unordered), stored)
        parents = {name: each.plan for name, each in stored.items() if name in used}
        inner: dict[str, ViewPlan] = {}
        outer = dict(self._leaves)
        closing: Closing | None = None
        aging: EventTime | None = None
        expires = self._definition.expires
        try:
            plan = self._with_total_orders(self._with_plain_values(plan, stored))
            if (ttl_us := self._definition.ttl_us) is not None:
                if has_join(self._trees, plan):
                    plan = with_bounds(self._catalyst, plan, self._leaves, self._event_times, ttl_us)
                else:
                    aging, expires = self._aging(plan, views), False
                    plan = with_ages(self._catalyst, plan, self._leaves, self._event_times, ttl_us)
            single_leaves = self._single_leaves(parents)
            if (
                has_join(self._trees, plan)
                or has_single_values(self._trees, plan)
                or has_temporal_filter(self._trees, plan)
            ):
                plan = self._with_narrow_sides(plan, SingleRows(self._catalyst.plans, single_leaves))
            self._require_own_leaves(plan)
            sources = {*self._leaves.values()} - {*stored}
            times = self._event_times if expires else {}
            cut = InnerCut(self._catalyst, self._name, self._leaves, sources, self._check, single_leaves, times)
            before = plan
            plan = cut.of(plan)
            self._leaves, self._computed = cut.leaves, cut.computed
            self._require_no_schedule()
            expiries = self._expiries(parents) if expires else {} if aging is None else self._ages(aging)
            whole = identity_text(self._trees, before, self._leaves, format_schema(schema), []) if expires else ""
            for each in cut.views:
                inner[each.name] = self._inner_plan(each, parents | inner)
                if each.name in expiries:
                    inner[each.name] = self._expiring(inner[each.name], expiries[each.name], whole)
            view_class, reason = self._classify(plan)
            self._require_followed(plan, view_class, parents | inner)
            if self._definition.emit == "on_close":
                closing = self._closing(plan, view_class, {**parents, **inner})
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
            reason += "".join(f"; of {name} it sees {self._keys[name].text}" for name in used if name in self._keys)
            if unordered is not analysed_plan:
                reason += "; a view has no order, so its ORDER BY is left out"
        except NotIncrementalError as refusal:
            if self._definition.emit is not None or self._definition.expires:
                raise full_refusal(refusal) from None
            # The identity of a full view does not know the leaves within subqueries.
            plan, inner, self._computed, self._leaves = analysed_plan, {}, {}, outer
            view_class, reason = self._recomputed(plan, refusal, [each for each in used if each not in stored])
        identities = [f"reads view {name}, which is\n{each.plan.identity}" for name, each in views.items()]
        if closing is not None:
            identities.append(EMITTED)
        if expires:
            identities.append(EXPIRING)
        planned = self._plan_of(self._name, plan, view_class, reason, schema, parents | inner, identities)
        if self._definition.ttl is not None:
            planned = replace(planned, definition=f"{planned.definition}\n{BY_TTL}{self._definition.ttl_text}")
        if expires:
            self._require_kept_groups([*inner.values(), planned])
            planned = replace(planned, definition=f"{planned.definition}\n{BY_WATERMARK}")
        if closing is not None:
            used_too = {**planned.columns, closing.source: planned.columns[closing.source] | {PATH, ROW}}
            definition = f"{planned.definition}\n{ON_CLOSE}"
            planned = replace(planned, columns=used_too, definition=definition, closing=closing)
        return replace(planned, views=tuple(views), inner=tuple(inner.values()))

    def _closing(self, plan: Plan, view_class: ViewClass, parents: Collection[str]) -> Closing:
        """The windows of a view that shows a group when its window closes.

        Raises:
            ViewError: it has none, or they cannot be closed; with what to write instead.
        """
        used = self._used(plan)
        if view_class != "aggregate" or parents or len(used) != 1:
            raise self._cannot_close(
                "it does not group the rows of one source",
                "write SELECT ... FROM source GROUP BY window(...), and let another view read this one",
            )
        [source] = used
        if source not in self._event_times:
            raise self._cannot_close(f"source {source} has no event time", 'declare it with event_time="at"')
        if source in self._materialized:
            advice = "declare it without materialize=True and on_change"
            raise self._cannot_close(f"rows of source {source} can be replaced or forgotten", advice)
        if not {PATH, ROW} <= {*(self._schemas[source] or pa.schema([])).names}:
            advice = 'declare the source with metadata=("path", "row"), by which late rows are kept'
            raise self._cannot_close(f"source {source} has no {PATH} and {ROW}", advice)
        aggregate, column = aggregate_of(plan), self._event_times[source]
        sessions = session_positions(self._trees, aggregate)
        windows = [*window_positions(self._trees, aggregate), *sessions]
        times = {window_time(self._trees, aggregate, each, self._leaves) for each in windows}
        if len(windows) != 1 or times != {(source, column)}:
            advice = f"group by window({column}, '10 minutes') or session_window, with the column as it is"
            raise self._cannot_close(f"it does not group by one window of the event time {column}", advice)
        if has_grouping_sets(self._trees, aggregate):
            advice = "group by all keys, and let another view group the rows of this one"
            raise self._cannot_close("a group of ROLLUP, CUBE or GROUPING SETS may have no window", advice)
        if sessions and any(call.is_distinct for call in aggregate_calls(self._catalyst, self._name, aggregate)):
            advice = "take approx_count_distinct, or leave emit out"
            raise self._cannot_close("it has DISTINCT over sessions, which may become one", advice)
        return Closing(source, windows[0], column if sessions else None)

    def _expiries(self, parents: Collection[str]) -> dict[str, Expiry]:
        """Internal view → when its rows leave, of each side of a join with bounds; there is one such join at least.

        Raises:
            ViewError: no row can leave, or it would be missed; with what to write instead.
        """
        if parents:
            what = f"it reads view {' and '.join(parents)}"
            raise self._cannot_expire(what, "join sources, and let another view read this one")
        joins = [each for each in self._computed.values() if isinstance(each, JoinPlan)]
        expiring = [each for each in joins if each.between is not None]
        if not expiring:
            raise self._without_bounds(joins)
        expiries: dict[str, Expiry] = {}
        for join in expiring:
            for side, expiry in join.expiries:
                needed = expiry.needed | expiries.get(side, expiry).needed
                expiries[side] = Expiry(expiry.time, needed)
        for expiry in expiries.values():
            self._require_expiring(expiry.time)
        for leaf in self._computed.values():
            if leaf not in expiring and not expiries.keys().isdisjoint(leaf.sides):
                advice = "bound the event times of that join too, or make it a view of its own"
                raise self._cannot_expire("rows that it joins with bounds are joined without bounds as well", advice)
        return expiries

    def _aging(self, plan: Plan, views: Collection[str]) -> EventTime:
        """The event time by which rows leave a view without a join, by a time to live.

        Raises:
            ViewError: it has none, or it is not that of all rows; with what to write instead.
        """
        if self._definition.emit is not None:
            raise self._cannot_expire('emit="on_close" lets groups leave already', "leave one of the two out")
        if self._definition.expire is not None:
            raise self._cannot_expire('it has expire="by_watermark" and no join', "leave expire out")
        if views:
            raise self._cannot_expire(f"it reads view {' and '.join(views)}", "declare it over the source")
        sources = dict.fromkeys(self._named)
        if len(sources) > 1:
            advice = "declare a view with a ttl over each, and let another view put them together"
            raise self._cannot_expire(f"it reads {' and '.join(sources)}", advice)
        [source] = sources
        if source in self._keys:
            raise self._cannot_expire(
                f"source {source} has a key", "leave ttl out: its rows are replaced by later ones"
            )
        if source not in self._event_times:
            raise self._cannot_expire(f"source {source} has no event time", 'declare it with event_time="at"')
        if has_single_values(self._trees, plan):
            advice = "declare a view with a ttl for the rows, and let another view compare them"
            raise self._cannot_expire("it compares rows with the value of a subquery", advice)
        self._require_own_leaves(plan)
        if EpochTimestamps(self._catalyst).are_in(plan):
            advice = "leave one of the two out: a ttl follows the watermark, and now() the clock"
            raise self._cannot_expire("it uses the time of the epoch", advice)
        return EventTime(source, self._event_times[source])

    def _ages(self, aging: EventTime) -> dict[str, Expiry]:
        """Internal view → expiry of its rows by a time to live; notes that the filters over them follow a watermark."""
        ttl_us, expiries = self._definition.ttl_us, dict[str, Expiry]()
        assert ttl_us is not None
        for name, leaf in self._computed.items():
            if isinstance(leaf, TemporalFilterPlan):
                text = f"the rows with {aging.column} at most {self._definition.ttl_text} before the watermark"
                identity = f"{leaf.bounds[0].column} by {BY_TTL}{ttl_us} us of {aging.source}"
                self._computed[name] = replace(leaf, clock=aging.source, text=text, identity=identity)
                column = EventTime(aging.source, leaf.bounds[0].column)
                expiries[leaf.rows] = Expiry(column, frozenset({(aging.source, ttl_us)}), ages=True)
        return expiries

    def _without_bounds(self, joins: Sequence[JoinPlan]) -> ViewError:
        if not joins:
            return self._cannot_expire("it joins no rows", f"leave {self._expire_option} out")
        for source in self._named:
            if source in self._keys:
                advice = f"leave {self._expire_option} out: its rows are replaced by later ones"
                return self._cannot_expire(f"source {source} has a key", advice)
            if source not in self._event_times:
                return self._cannot_expire(f"source {source} has no event time", 'declare it with event_time="at"')
            kind = (self._schemas[source] or pa.schema([])).field(self._event_times[source]).type
            if not pa.types.is_timestamp(kind):
                advice = "declare a schema in which it is a timestamp"
                return self._cannot_expire(f"the event time of source {source} is a date", advice)
        if self._definition.ttl is not None:
            what = "no join has a timestamp that is an event time on either side"
            return self._cannot_expire(
                what, "join sources with event times; in EXISTS and IN, bound the times yourself"
            )
        times = " and ".join(dict.fromkeys(f"{name}.{self._event_times[name]}" for name in self._named))
        return self._cannot_expire(
            f"no join bounds the difference of two event times, of {times}, on both sides",
            "add to its condition, with the columns as they are, "
            "a.at BETWEEN b.at - INTERVAL 1 HOUR AND b.at + INTERVAL 1 HOUR",
        )

    def _require_expiring(self, time: EventTime) -> None:
        source = time.source
        if source in self._materialized:
            advice = "declare it without materialize=True and on_change"
            raise self._cannot_expire(f"rows of source {source} can be replaced or forgotten", advice)
        if not {PATH, ROW} <= {*(self._schemas[source] or pa.schema([])).names}:
            advice = 'declare the source with metadata=("path", "row"), by which late rows are kept'
            raise self._cannot_expire(f"source {source} has no {PATH} and {ROW}", advice)

    def _expiring(self, plan: ViewPlan, expiry: Expiry, whole: str) -> ViewPlan:
        """The plan of rows that leave; a side of a join belongs to one query, since another one would miss them."""
        needed = ", ".join(f"{source} {us}" for source, us in sorted(expiry.needed))
        if expiry.ages:
            identity = f"{plan.identity}\n{expiry.time.column} by {BY_TTL}{needed}"
            return replace(plan, content=None, identity=identity, expiry=expiry)
        columns = {source: used | {PATH, ROW} for source, used in plan.columns.items()}
        identity = f"{plan.identity}\n{EXPIRING} {expiry.time.column} {needed}\nof {whole}"
        return replace(plan, columns=columns, identity=identity, content=None, expiry=expiry)

    def _require_kept_groups(self, plans: Iterable[ViewPlan]) -> None:
        """Refuses groups of rows that may leave, which may be computed again from rows that have expired.

        Raises:
            ViewError: with what to write instead.
        """
        advice = "let another view group the rows of this one"
        for each in (plan for plan in plans if plan.view_class == "aggregate"):
            joins = [leaf for leaf in each.computed.values() if isinstance(leaf, JoinPlan)]
            expiring = [join for join in joins if join.between is not None]
            for join in expiring:
                if join.kind != "inner":
                    raise self._cannot_expire(f"it groups the rows of a join ({join.text})", advice)
                if len(expiring) < len(each.columns):
                    raise self._cannot_expire("it groups the rows of a join beside others", advice)

    def _cannot_expire(self, what: str, advice: str) -> ViewError:
        return ViewError(f"view {self._name!r} cannot have {self._expire_option}, as {what}: {advice}")

    @property
    def _expire_option(self) -> str:
        return 'expire="by_watermark"' if self._definition.ttl is None else f'ttl="{self._definition.ttl_text}"'

    def _cannot_close(self, what: str, advice: str) -> ViewError:
        return ViewError(f'view {self._name!r} cannot have emit="on_close", as {what}: {advice}')

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

    def _with_plain_values(self, plan: Plan, stored: Collection[str]) -> Plan:
        """The plan in which the plans of subqueries of one value are plain, too."""
        catalyst = self._catalyst
        if not catalyst.trees.may_have(plan, "PLAN_EXPRESSION"):
            return plan
        children = catalyst.trees.items(plan.children())
        if children:
            plan = catalyst.trees.with_children(plan, [self._with_plain_values(each, stored) for each in children])
        if not plan.subqueries().size():
            return plan

        def plain(expression: Expression) -> Expression | None:
            if not is_single_value(expression) and not is_existence(expression):
                return None
            rows = expression.plan()
            while is_existence(expression) and keeps_any_row(rows):
                rows = rows.child()
            below = self._plain(with_joins(catalyst, rows), stored)
            below = self._with_plain_values(below, stored)
            return existence(catalyst, below) if is_existence(expression) else expression.withNewPlan(below)

        return catalyst.plans.with_expressions(plan, lambda each: catalyst.trees.rewrite(each, plain)) or plan

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
        view_class, reason = self._classify(inner.plan)
        self._require_followed(inner.plan, view_class, parents)
        try:
            schema = self._catalyst.schemas.arrow_schema(inner.plan)
            format_schema(schema)
        except (PySparkException, TypeError, SchemaError) as error:
            raise refuse(self._name, f"{inner.rows.whose} cannot be stored", one_line(error)) from None
        plan = self._plan_of(inner.name, inner.plan, view_class, reason, schema, parents, [])
        return replace(plan, content=self._content(inner.plan, plan, parents))

    def _content(self, analysed_plan: Plan, plan: ViewPlan, parents: Mapping[str, ViewPlan]) -> str | None:
        """What an internal view has, whatever view it is in; None if that depends on the time of an epoch, or is
        unknown.

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
        """Whether a plan calls a Python function, whose code its text does not show."""
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
            plan: with empty leaves; that of Spark's analysis if it is recomputed as a whole.
            reason: the reason for its class.
            parents: name → plan of each view whose stored rows it may read.
            identities: the texts of what its definition expands to.
        """
        if view_class == "full":
            # It reads stored rows, and none of the rows that an epoch hands over.
            used = self._named
            columns = dict.fromkeys(used, frozenset[str]())
        else:
            used = self._used(plan)
            plan = TotalOrder(self._catalyst, self._name).of(plan)
            columns = used_columns(self._catalyst, plan, self._leaves)
        computed = {each: self._computed[each] for each in used if each in self._computed}
        stored = [name for each in used for name in (computed[each].sides if each in computed else (each,))]
        read = {each: parents[each] for each in stored if each in parents}
        is_changing = bool(read) or {*used} <= {*self._materialized}
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

    def _used(self, plan: Plan) -> tuple[str, ...]:
        """The sources and the views whose rows a plan reads, in the order of their first use."""
        leaves = (part for part in parts_of(self._trees, plan) if not part.children().size())
        names = (self._leaves.get(attribute_id(leaf.output().apply(0))) for leaf in leaves)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def _require_followed(self, plan: Plan, view_class: ViewClass, parents: Collection[str]) -> None:
        """Refuses a view that cannot follow the changes of its parents.

        Raises:
            NotIncrementalError: with what to write instead.
        """
        used = self._used(plan)
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

    def _plain(self, plan: Plan, stored: Collection[str]) -> Plan:
        """The plan without aliases of relations, with the definitions of views in place of their names.

        It has no operators either that give the rows of their child.

        Notes the leaf of each source and of each parent, and a leaf that is none of them.

        Args:
            plan: analysed.
            stored: the views whose stored rows are read.
        """
        kind = simple_name(plan)
        children = self._trees.items(plan.children())
        if kind == "View" and plan.isTempView():
            name = str(plan.desc().identifier().table())
            leaf = children[0]
            if name in stored or (name in self._schemas and simple_name(leaf) in LEAVES):
                self._leaves[attribute_id(leaf.output().apply(0))] = name
                return self._catalyst.rows.local_relation(leaf.output())
            if name in self._expanded or name in self._keys:
                return self._plain(leaf, stored)
        if kind == "SubqueryAlias" or self._keeps_rows(kind, plan):
            return self._plain(children[0], stored)
        if not children:
            return plan
        plan = self._trees.with_children(plan, [self._plain(child, stored) for child in children])
        if self._drops_duplicates(plan):
            plan = self._catalyst.plans.without_duplicates(plan)
        if simple_name(plan) == "Aggregate":
            plan = with_plain_pivot(self._catalyst, plan)
            # A view that shows closed sessions puts them together itself.
            plan = plan if self._definition.emit is not None else with_sessions(self._catalyst, plan)
        return plan

    def _keeps_rows(self, kind: str, plan: Plan) -> bool:
        """Whether an operator gives the rows of its child: in other tasks, in the order of a task, or a single one."""
        match kind:
            case "Sort":
                return not getattr(plan, "global")()
            case "GlobalLimit" | "LocalLimit":
                return drops_nothing(self._catalyst.plans, plan)
            case _:
                return kind in PLACES_ROWS

    def _require_own_leaves(self, plan: Plan) -> None:
        """Refuses rows that are neither of a source nor of a view."""
        for leaf in self._trees.leaves(plan):
            output = self._trees.items(leaf.output())
            if not output or attribute_id(output[0]) not in self._leaves:
                raise refuse_operator(self._name, leaf)

    def _drops_duplicates(self, plan: Plan) -> bool:
        """Whether an operator only keeps one of equal rows."""
        if simple_name(plan) == "Deduplicate":
            return {attribute_id(each) for each in self._trees.items(plan.keys())} == {
                attribute_id(each) for each in self._trees.items(plan.child().output())
            }
        return simple_name(plan) == "Distinct"

    def _classify(self, plan: Plan) -> tuple[ViewClass, str]:
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
        aggregate_calls(self._catalyst, self._name, plan)
        self._require_group_types(plan)
        having = ", with a filter on the groups" if any(simple_name(each) == "Filter" for each in above) else ""
        groups = plan.groupingExpressions().size()
        by = f"by {groups} expression{'s' if groups > 1 else ''}" if groups else "into a single row"
        return "aggregate", f"it groups once, {by}{having}"

    def _recomputed(self, plan: Plan, refusal: NotIncrementalError, sources: Iterable[str]) -> tuple[ViewClass, str]:
        """The class and the reason of a view that must be recomputed as a whole.

        Raises:
            NotIncrementalError: recomputation is not possible, or not allowed.
        """
        is_query = self._definition.function is None
        try:
            require_recomputable(self._catalyst, self._name, plan, self._schemas, self._views, is_query=is_query)
        except NotIncrementalError as other:
            # A filter by the time is maintained, but for the reason that is known.
            raise (refusal if has_temporal_filter(self._trees, plan) else other) from None
        apart = sorted({*sources} - {*self._materialized})
        if self._definition.on_full != "allow":
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
                raise refuse(self._name, f"grouping by {grouping.sql()} of type {kind}", "group by its parts")

    def _require_projection(self, plan: Plan) -> None:
        children = self._trees.items(plan.children())
        if not children:
            return
        if simple_name(plan) not in PROJECTION_OPERATORS:
            raise refuse_operator(self._name, plan)
        self._check.check(plan, is_of_rows=True)
        for child in children:
            self._require_projection(child)

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
