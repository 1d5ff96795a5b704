"""Plans of the views: start and cost of each view in a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from actors.protocol.counters import SourceProgress
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.engine.session.local_session import session_at_hand
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.maintenance.declaration import Declaration, Start, undeclared
from spark_bridge.plans.planned_view import stored_groups
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.spark_analysis import SourceWithoutSchemaError
from spark_bridge.query.view_planner import PlannedGraph, ViewPlanner
from state.errors import DefinitionChangedError, ViewError
from state.tables.records import CatalogView, ViewClass
from state.tables.stored_rows import is_view

_TAKES_OVER = "  takes over the groups of the stored view in one epoch; no row is read again"


@dataclass(frozen=True)
class PlannedView:
    """The plan of one view.

    Args:
        name: the name of the view.
        view_class: `append`, `aggregate`, `full`, `refused`, or `unknown` while a source has neither schema nor file.
        beginning: `begins` without rows, `continues`, `catches up` with the rows that were read without it, `takes
            over` the groups of the stored view that it replaces, `is refused`, `waits` for the schema of a source, or
            `stays`, since it is not declared or has failed.
        text: the reason of the class, the storage, and the cost of an epoch; for a refused view the reason.
    """

    name: str
    view_class: ViewClass | Literal["refused", "unknown"]
    beginning: str
    text: str

    @property
    def is_refused(self) -> bool:
        """True if a run would not start because of this view."""
        return self.beginning == "is refused"


@dataclass(frozen=True)
class KnownViews:
    """The state of the views and of their sources at the root.

    Args:
        views: name → the view in the catalog.
        ingested: the sources with ingested rows.
        finished: source → the finished files and their bytes.
    """

    views: Mapping[str, CatalogView]
    ingested: Collection[str]
    finished: Mapping[str, SourceProgress]


def plan_views(
    definitions: Sequence[ViewDefinition],
    schemas: Mapping[str, pa.Schema | None],
    materialized: Collection[str],
    keys: RowKeys,
    event_times: Mapping[str, str],
    known: KnownViews,
    settings: SparkSettings,
    name: str,
) -> tuple[PlannedView, ...]:
    """Analyses the views with the Spark session of this process, or with a local one.

    Args:
        schemas: source → its schema, None while it is unknown; all sources.
        materialized: the sources whose rows are stored.
        keys: the sources of which views see the last row of each key.
        event_times: source → the column with its event time.
        known: the state at the root.
        name: the name of the Spark application.

    Raises:
        RunFailedError: Spark cannot be started.
    """
    with session_at_hand(settings, name) as spark, closing(SparkJobs(spark)) as jobs:
        by_name = {each.name: each for each in definitions}
        planner = ViewPlanner(spark, jobs, materialized, keys, event_times)
        graph = planner.graph(by_name, schemas, known.views)
        planned = [_planned(planner, graph, by_name, name, materialized, known) for name in by_name]
    left_out = undeclared(by_name, known.views)
    stored = [PlannedView(each, known.views[each].view_class, "stays", "the view is not declared") for each in left_out]
    return (*planned, *stored)


def _planned(
    planner: ViewPlanner,
    graph: PlannedGraph,
    definitions: Mapping[str, ViewDefinition],
    name: str,
    materialized: Collection[str],
    known: KnownViews,
) -> PlannedView:
    try:
        plan = graph.view(name).plan
        plans = {each: planned.plan for each, planned in graph.views.items()}
        groups = stored_groups(graph.views)
        declaration = Declaration.of(definitions, _up_to(name, plans), known.views, known.ingested, (), groups)
    except SourceWithoutSchemaError:
        return PlannedView(name, "unknown", "waits", "one of its sources has neither a schema nor a file yet")
    except (ViewError, DefinitionChangedError) as error:
        return PlannedView(name, "refused", "is refused", str(error))
    text = planner.explain(plan).partition("\n")[2]
    start = declaration.starts[name]
    is_of_groups = start is Start.OF_GROUPS
    lacks = groups[name].lacks if is_of_groups else ()
    if is_of_groups and not lacks:
        return PlannedView(name, plan.view_class, "takes over", f"{_TAKES_OVER}\n{text}")
    if start is Start.BACKFILLS or lacks:
        catching_up = _catching_up(plan, materialized, known)
        if lacks:
            catching_up += f", for {' and '.join(lacks)} alone: the rest is in the groups of the stored view"
        return PlannedView(name, plan.view_class, "catches up", f"{catching_up}\n{text}")
    if start is Start.STALE:
        failed = f"  failed over its rows: {known.views[name].error}; `slackwater retry --view {name}` rebuilds it"
        return PlannedView(name, plan.view_class, "stays", f"{failed}\n{text}")
    return PlannedView(name, plan.view_class, "begins" if start is Start.NEW else "continues", text)


def _up_to(name: str, plans: Mapping[str, ViewPlan]) -> dict[str, ViewPlan]:
    """The plan of a view, after the plans of all views that it reads directly or indirectly."""
    wanted = [name]
    for each in wanted:
        wanted += plans[each].views
    return {each: plan for each, plan in plans.items() if each in wanted}


def _catching_up(plan: ViewPlan, materialized: Collection[str], known: KnownViews) -> str:
    """The input of the backfill, as a line in the style of `ViewPlan.explain`."""
    parts = [f"the rows of {parent}" for parent in plan.parents if is_view(parent)]
    for source in plan.sources_read:
        so_far = known.finished.get(source, SourceProgress())
        if source in materialized:
            parts.append(f"the stored rows of {source}")
        else:
            parts.append(f"the {so_far.done:,} files of {source} that were read ({so_far.bytes:,} bytes), again")
    return f"  catches up by reading {' and '.join(parts)}"
