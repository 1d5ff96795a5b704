"""The plans of all declared views, each over the columns that it knows; only changed views are analysed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from textwrap import indent
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.operators.group.aggregate_calls import missing_calls
from spark_bridge.plans.columns import visible_schemas
from spark_bridge.plans.function_source import definition_text
from spark_bridge.plans.planned_view import PlannedView, StoredGroups
from spark_bridge.plans.row_conditions import RowConditions
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.analysis import analyse
from spark_bridge.query.removal import removal_text
from spark_bridge.query.spark_analysis import AnalysisFailedError, SourceWithoutSchemaError, names_read
from state.errors import ViewError, ViewFailedError
from state.tables.records import CatalogView
from state.tables.stored_rows import next_name

_ANALYSED = "while it was analysed"
_Result = TypeVar("_Result")
_Schemas = Mapping[str, "pa.Schema | None"]
_Reads = Callable[[ViewDefinition, Collection[str]], Collection[str]]
_Plan = Callable[[ViewDefinition, Mapping[str, PlannedView], Mapping[str, ViewError]], PlannedView]


class ViewPlanner:
    """Analyses views, and keeps the plans: an analysis takes 0.1 s.

    Attributes:
        broken: name → reason of each view of the catalog whose analysis failed in the last call of `planned`, and of
            the views that read it.  The text of such a view is the recorded text.

    Args:
        materialized: the sources whose rows are stored.
        keys: the sources of which views see the last row of each key.
        event_times: source → the column with its event time.
    """

    def __init__(
        self,
        spark: SparkSession,
        jobs: SparkJobs,
        materialized: Collection[str],
        keys: RowKeys = MappingProxyType({}),
        event_times: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._spark, self._jobs, self._materialized, self._keys = spark, jobs, materialized, keys
        self._event_times = event_times
        self._catalyst = Catalyst(spark)
        self._last: dict[str, PlannedView] = {}
        self.broken: dict[str, str] = {}

    def planned(
        self, definitions: Mapping[str, ViewDefinition], schemas: _Schemas, known: Mapping[str, CatalogView]
    ) -> dict[str, PlannedView]:
        """Name → view, for all views whose sources have schemas, and their internal views.

        Each view follows the views that it reads.

        A view of `broken` is left out.  Errors of the other views as `analyse`.

        Args:
            definitions: name → definition of each declared view.
            schemas: source → schema, None while it is not known; all sources.
            known: the views of the catalog.
        """
        graph, broken = self.graph(definitions, schemas, known), dict[str, str]()
        for name, definition in definitions.items():
            try:
                graph.view(name)
            except SourceWithoutSchemaError:
                continue
            except AnalysisFailedError as error:
                if not _is_recorded(definition, known.get(name)):
                    raise
                broken[name] = error.reason
        self._last, self.broken = graph.views, broken
        return graph.views

    def graph(
        self, definitions: Mapping[str, ViewDefinition], schemas: _Schemas, known: Mapping[str, CatalogView]
    ) -> PlannedGraph:
        """The same views, planned one by one, so that each has an error of its own.

        Raises:
            ViewError: a view has the name of a source.
        """
        for name in definitions:
            if source := next((each for each in schemas if each.casefold() == name.casefold()), None):
                raise ViewError(f"view {name!r} has the name of the source {source!r}; rename one of them")
        return PlannedGraph(definitions, self._reads, partial(self._planned, schemas, known))

    def explain(self, plan: ViewPlan, views: Collection[ViewPlan] = (), more: Iterable[str] = ()) -> str:
        """A plan of this planner for people: `ViewPlan.explain`, the removal of rows, and its internal views.

        Args:
            views: the other views, internal views too, which may share its rows.
            more: further lines about it.
        """
        lines = [plan.explain(), f"  rows leave {removal_text(self._catalyst, plan)}"]
        if same := [each.name for each in views if each.content == plan.content is not None and each is not plan]:
            lines.append(f"  shared     with {' and '.join(same)}: the same rows, which are kept once")
        internal = (indent(f"internal view {self.explain(each, views)}", "  ") for each in plan.inner)
        return "\n".join([*lines, *more, *internal])

    def _reads(self, definition: ViewDefinition, names: Collection[str]) -> frozenset[str]:
        """The views among `names` that a view reads."""
        if not names:
            return frozenset()
        return self._run(definition.name, partial(names_read, self._catalyst, definition, names))

    def _run(self, name: str, analysis: Callable[[], _Result]) -> _Result:
        try:
            return self._jobs.run("view", _ANALYSED, {name: analysis})[name]
        except ViewFailedError as error:
            raise AnalysisFailedError(name, error.reason) from error

    def _planned(
        self,
        schemas: _Schemas,
        known: Mapping[str, CatalogView],
        definition: ViewDefinition,
        views: Mapping[str, PlannedView],
        absent: Mapping[str, ViewError],
    ) -> PlannedView:
        """Plans a view.  A stored view or a backfill keeps the columns of its first plan; a new definition sees all."""
        for stored in (known.get(definition.name), known.get(next_name(definition.name))):
            if stored is None:
                continue
            try:
                planned = self._plan(definition, visible_schemas(schemas, stored), views, absent)
            except SourceWithoutSchemaError:
                raise
            except ViewError:
                continue
            if planned.plan.identity == stored.identity:
                return planned
        planned = self._plan(definition, schemas, views, absent)
        stored = known.get(definition.name)
        if stored is None or stored.stopped_epoch is not None or stored.missing:
            return planned
        return replace(planned, before=self._before(planned.plan, stored, visible_schemas(schemas, stored), views))

    def _before(
        self, plan: ViewPlan, stored: CatalogView, schemas: _Schemas, views: Mapping[str, PlannedView]
    ) -> StoredGroups | None:
        """The groups of a stored view, planned again from its text, if another plan has a use for them."""
        last = self._last.get(plan.name)
        before = None if last is None or last.plan is not plan else last.before
        if before is not None and before.plan.identity == stored.identity:
            return before
        if stored.view_class != "aggregate" or plan.view_class != "aggregate":
            return None
        try:
            known = self._analysed(ViewDefinition(plan.name, stored.definition), schemas, views, {})
        except ViewError:
            return None  # its text is that of a function, or it reads what is not declared any more
        missing = missing_calls(self._catalyst, known, plan) if known.identity == stored.identity else None
        if missing is None:
            return None
        has_all = not missing.shown
        # Rows that only files have may be missing when they are read again, others have expired or are those of a time.
        is_whole = plan.is_changing and not plan.has_temporal_filter
        can_be_completed = is_whole and all(each.expiry is None for each in plan.inner)
        return StoredGroups(known, has_all, missing.anywhere) if has_all or can_be_completed else None

    def _plan(
        self,
        definition: ViewDefinition,
        schemas: _Schemas,
        views: Mapping[str, PlannedView],
        absent: Mapping[str, ViewError],
    ) -> PlannedView:
        """The last plan, if the definition, the schemas and the views that it reads are the same; else a new one."""
        last = self._last.get(definition.name)
        if last is not None and last.definition == definition and _is_same(last, schemas, views):
            plan = last.plan
        else:
            whole = definition.whole or definition
            plan = self._analysed(whole, schemas, views, absent)
            # It refuses invalid conditions.
            try:
                RowConditions(self._spark, self._jobs, whole.name, plan.schema, whole.row_conditions)
            except ViewFailedError as error:
                raise AnalysisFailedError(whole.name, error.reason) from error
            for name, condition in whole.view_conditions.items():
                condition.check(f"view {whole.name!r}: expectation {name!r}", plan.schema)
            if whole is not definition:
                _require_single_rows(plan)
                plan = self._analysed(definition, schemas, views, absent)
        return PlannedView(definition, plan, schemas, {each: views[each] for each in plan.views})

    def _analysed(
        self,
        definition: ViewDefinition,
        schemas: _Schemas,
        views: Mapping[str, PlannedView],
        absent: Mapping[str, ViewError],
    ) -> ViewPlan:
        analysis = partial(
            analyse,
            self._spark,
            definition,
            schemas,
            self._materialized,
            views=views,
            absent=absent,
            keys=self._keys,
            event_times=self._event_times,
        )
        return self._run(definition.name, analysis)


class PlannedGraph:
    """The views of one declaration, each planned after those that it reads.

    Attributes:
        views: name → view, of the planned views and their internal views; each follows the views that it reads.

    Args:
        definitions: name → definition of each declared view.
        reads: finds the views that a view reads: (definition, names of views) -> names.
        plan: plans a view: (definition, views that it may read, errors of the views that it cannot read) -> the view.
    """

    def __init__(self, definitions: Mapping[str, ViewDefinition], reads: _Reads, plan: _Plan) -> None:
        self._definitions, self._reads, self._plan = definitions, reads, plan
        self._errors: dict[str, ViewError] = {}
        self.views: dict[str, PlannedView] = {}

    def view(self, name: str) -> PlannedView:
        """One view.

        Raises:
            ViewError: the view cannot be built, or a view that it reads cannot; as `analyse`.
        """
        self._visit(name, ())
        if name in self._errors:
            raise self._errors[name]
        return self.views[name]

    def _visit(self, name: str, path: tuple[str, ...]) -> None:
        if name in self.views or name in self._errors:
            return
        path = (*path, name)
        views, absent = {}, {}
        definition = self._definitions[name]
        try:
            read = sorted(self._reads(definition, self._definitions.keys() - {name}))
        except AnalysisFailedError as error:
            self._errors[name] = error
            return
        for each in read:
            if each in path:
                absent[each] = _circle(path[path.index(each) :])
                continue
            self._visit(each, path)
            if each in self._errors:
                absent[each] = _unplanned(name, each, self._errors[each])
            else:
                views[each] = self.views[each]
        try:
            planned = self._plan(definition, views, absent)
        except ViewError as error:
            self._errors[name] = error
            return
        self.views.update({each.plan.name: each for each in (*planned.inner, planned)})


def _is_same(last: PlannedView, schemas: _Schemas, views: Mapping[str, PlannedView]) -> bool:
    """Whether the schemas and the views that a planned view reads are what they were.

    A view that it mentions may be new, and what it took for a name of nothing: then it was not planned.
    """
    read_views = all(each in views and views[each].plan is last.views[each].plan for each in last.plan.views)
    return read_views and all(last.schemas.get(each) == schemas.get(each) for each in last.plan.sources)


def _is_recorded(definition: ViewDefinition, known: CatalogView | None) -> bool:
    """True if the catalog has a view with the text of the declared view, which was accepted before."""
    if known is None:
        return False
    function = definition.function
    text = (definition.query or "").strip() if function is None else definition_text(function)
    return known.definition == text or known.definition.startswith(f"{text}\n-- ")


def _require_single_rows(plan: ViewPlan) -> None:
    """Refuses to take single rows out of a view whose rows come and go together.

    Raises:
        ViewError: with what to write instead.
    """
    if plan.view_class != "append":
        raise ViewError(
            f"view {plan.name!r}: on_violation='quarantine' takes single rows out, and in this view {plan.reason}; "
            "declare it on a view of single rows that this one reads, or write on_violation='hold'"
        )


def _circle(path: Collection[str]) -> ViewError:
    names = [*path, next(iter(path))]
    return ViewError(f"views read each other in a circle: {' reads '.join(map(repr, names))}; remove one of these uses")


def _unplanned(name: str, read: str, error: ViewError) -> ViewError:
    """The error of a view that reads a view with an error; it waits for a schema if that one does."""
    if isinstance(error, SourceWithoutSchemaError):
        return error
    if isinstance(error, AnalysisFailedError):
        return AnalysisFailedError(
            name, f"view {read!r}, which it reads, has failed", f"view {name!r} reads view {read!r}: {error}"
        )
    return ViewError(f"view {name!r} reads view {read!r}, which cannot be built: {error}")
