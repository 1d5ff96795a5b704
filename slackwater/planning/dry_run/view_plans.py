"""What a run would do with each view."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from actors.protocol.reports import SourceProgress
from spark_bridge.analysis.declaration import Declaration
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.analysis.view_planner import ViewPlanner
from spark_bridge.session.local_session import session_at_hand
from spark_bridge.session.settings import SparkSettings
from spark_bridge.session.spark_jobs import SparkJobs
from state.errors import DefinitionChangedError, ViewError
from state.tables.records import CatalogView


@dataclass(frozen=True)
class PlannedView:
    """One view.

    Args:
        name: of the view.
        view_class: `append`, `aggregate`, `full`, `refused`, or `unknown` while a source has neither schema nor file.
        beginning: `begins` with the first rows, `goes on`, `catches up` with what was read without it, `is refused`,
            `waits` for the schema of a source, or `stays` as it is, since it is not declared.
        text: why, what is stored and what an epoch costs; of a view that is refused, why.
    """

    name: str
    view_class: str
    beginning: str
    text: str

    @property
    def is_refused(self) -> bool:
        """Whether a run would not start because of it."""
        return self.beginning == "is refused"


@dataclass(frozen=True)
class KnownViews:
    """What the root knows of views, and of what they read.

    Args:
        views: of the catalog.
        ingested: the sources of which rows were ingested.
        finished: source → what was read of it.
    """

    views: Mapping[str, CatalogView]
    ingested: Collection[str]
    finished: Mapping[str, SourceProgress]


def plan_views(
    definitions: Sequence[ViewDefinition],
    schemas: Mapping[str, pa.Schema | None],
    materialized: Collection[str],
    known: KnownViews,
    settings: SparkSettings,
    name: str,
) -> tuple[PlannedView, ...]:
    """Analyses the views by the Spark of this process, or one of their own.

    Args:
        definitions: the declared views.
        schemas: of all sources; None while one is not known.
        materialized: the sources whose rows are stored.
        known: what the root knows.
        settings: of Spark.
        name: of the Spark application.

    Raises:
        RunFailedError: Spark cannot be started.
    """
    with session_at_hand(settings, name) as spark, closing(SparkJobs(spark)) as jobs:
        planner = ViewPlanner(spark, jobs, materialized)
        planned = [_planned(planner, each, schemas, materialized, known) for each in definitions]
    frozen = Declaration.of({each.name: each for each in definitions}, {}, known.views, known.ingested).frozen
    stored = [PlannedView(each, known.views[each].view_class, "stays", "it is not declared") for each in frozen]
    return (*planned, *stored)


def _planned(
    planner: ViewPlanner,
    definition: ViewDefinition,
    schemas: Mapping[str, pa.Schema | None],
    materialized: Collection[str],
    known: KnownViews,
) -> PlannedView:
    name, only = definition.name, {definition.name: definition}
    try:
        found = planner.planned(only, schemas, known.views)
        if name not in found:
            return PlannedView(name, "unknown", "waits", "a source that it reads has neither a schema nor a file yet")
        plan = found[name].plan
        declaration = Declaration.of(only, {name: plan}, known.views, known.ingested)
    except (ViewError, DefinitionChangedError) as error:
        return PlannedView(name, "refused", "is refused", str(error))
    text = plan.explain().partition("\n")[2]
    if name in declaration.backfills:
        return PlannedView(name, plan.view_class, "catches up", f"{_catching_up(plan, materialized, known)}\n{text}")
    return PlannedView(name, plan.view_class, "begins" if name in declaration.new else "goes on", text)


def _catching_up(plan: ViewPlan, materialized: Collection[str], known: KnownViews) -> str:
    """What a backfill reads, in a line as those of `ViewPlan.explain`."""
    parts = []
    for source in plan.sources:
        so_far = known.finished.get(source, SourceProgress())
        if source in materialized:
            parts.append(f"the stored rows of {source}")
        else:
            parts.append(f"the {so_far.done:,} files of {source} that were read ({so_far.bytes:,} bytes), once more")
    return f"  catches up by reading {' and '.join(parts)}"
