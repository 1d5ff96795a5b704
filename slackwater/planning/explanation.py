"""Explanation of views: class, reason, storage, cost of an epoch, and rows touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.recovery.recovery import check
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition, event_columns, row_keys
from slackwater.planning.shown_schema import shown_schema
from slackwater.reading.view import View
from slackwater.status.quantities import human_bytes
from slackwater.status.text import counted
from slackwater.status.view_costs import ViewCost, view_costs
from spark_bridge.engine.session.local_session import session_at_hand
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.spark_analysis import SourceWithoutSchemaError
from spark_bridge.query.view_planner import PlannedGraph, ViewPlanner
from state.clock import Clock
from state.errors import NotFoundError, StoreNotFoundError, ViewError
from state.lance.lance_root import LanceRoot
from state.tables.fingerprint import version_fingerprint
from state.tables.records import EpochRecord, ViewClass, ViewVersion
from state.tables.stored_rows import stored_rows_name

_EPOCHS = 100


class RowsTouched:
    """Estimates of the rows that an epoch touches, for the views of one root.

    Args:
        root: the root; it may have no store yet.
    """

    def __init__(self, root: LanceRoot) -> None:
        self._root = root
        self._records: Sequence[EpochRecord] = ()
        try:
            self._records = root.open(read_only=True).epochs(last=_EPOCHS)
        except StoreNotFoundError:
            pass
        self._costs = view_costs(self._records)

    def costs(self, plan: ViewPlan) -> dict[str, ViewCost]:
        """Name → cost per epoch, of a view and of its internal views.

        A view that none of the last 100 epochs changed is left out.
        """
        return {each.name: self._costs[each.name] for each in (plan, *plan.inner) if each.name in self._costs}

    def text(self, plan: ViewPlan) -> str:
        """The rows of a view that an epoch touches, in words."""
        if plan.view_class == "full":
            read = " and ".join(plan.columns)
            stored = [self._rows(each if each in plan.parents else stored_rows_name(each)) for each in plan.columns]
            if None in stored:
                return f"all stored rows of {read}, when some are new; their number is known once rows are stored"
            return f"all {sum(each or 0 for each in stored):,} stored rows of {read}, when some are new"
        with_rows = [record.counts.rows for record in self._records if record.counts.rows]
        if not with_rows:
            return "unknown before the first epochs with rows"
        new = round(median(with_rows))
        seen = f"the median of the last {len(with_rows)} epochs is {new:,} new rows"
        stored_rows = self._rows(plan.name)
        if plan.parents:
            of = "results" if plan.view_class == "append" else "groups"
            leaves = plan.computed.values()
            touched = dict.fromkeys(each.touched for each in leaves if each.touched is not None)
            of = " and ".join([*touched, of])
            at_times = "".join(each.also_read(self._rows) for each in leaves)
            return f"the {of} of the rows that change in {' and '.join(plan.parents)}: {seen} of the sources{at_times}"
        if plan.view_class == "append":
            return f"the result of the query over about {new:,} rows: {seen}"
        if stored_rows is None:
            return f"at most {new:,} groups: {seen}"
        return f"at most {min(new, stored_rows):,} of {stored_rows:,} groups: {seen}"

    def _rows(self, name: str) -> int | None:
        """The number of rows of a dataset at the last epoch; None without the dataset."""
        version: ViewVersion | None = self._records[-1].views.get(name) if self._records else None
        if version is None:
            return None
        try:
            return View(self._root.location, version, ()).count_rows()
        except NotFoundError:
            return None


@dataclass(frozen=True)
class ViewExplanation:
    """The explanation of one view.

    Args:
        name: the name of the view.
        view_class: `append`, `aggregate`, `full`, `refused`, or `unknown` while a source has neither schema nor file.
        text: the reason of the class, the storage, the cost of an epoch, and the rows that it touches.
        reads: the sources and views that its definition reads; empty for a refused or unknown one.
        costs: name of the view or of an internal view → cost per epoch, over the last 100 epochs of the root.
    """

    name: str
    view_class: ViewClass | Literal["refused", "unknown"]
    text: str
    reads: tuple[str, ...] = ()
    costs: Mapping[str, ViewCost] = field(default_factory=dict)


def _cost_text(each: ViewCost) -> str:
    cost = each.cost
    return (
        f"{each.seconds:.3f} s, at most {each.most_seconds:.3f} s; {counted(cost.given, 'row')} into Spark, "
        f"{cost.found:,} looked up, {cost.written:,} written ({human_bytes(cost.written_bytes)}); "
        f"the medians of {counted(each.epochs, 'epoch')}"
    )


def explain(
    definition: PipelineDefinition, views: Sequence[ViewDefinition], spark_settings: SparkSettings, clock: Clock
) -> tuple[ViewExplanation, ...]:
    """Analyses views with the Spark session of this process, or with a local one; reads few files per source.

    Raises:
        UsageError: the declaration does not fit the root.
        StorageError: a bucket cannot be reached.
    """
    root = LanceRoot(definition.root, clock)
    schemas, touched = check(definition, root), RowsTouched(root)
    found = {
        source.name: schemas.get(source.name) or shown_schema(source, definition.fetch, listed(source)).schema
        for source in definition.sources
    }
    materialized = [source.name for source in definition.sources if source.materialize]
    application = f"slackwater-explain-{definition.name}"
    with session_at_hand(spark_settings, application) as spark, closing(SparkJobs(spark)) as jobs:
        planner = ViewPlanner(
            spark, jobs, materialized, row_keys(definition.sources), event_columns(definition.sources)
        )
        graph = planner.graph({view.name: view for view in views}, found, {})
        planned = [_planned(graph, view.name) for view in views]
        plans = [each.plan for each in graph.views.values()]
        return tuple(
            each if isinstance(each, ViewExplanation) else _explain(planner, each, plans, touched) for each in planned
        )


def _planned(graph: PlannedGraph, name: str) -> ViewPlan | ViewExplanation:
    """The plan of a view, or the reason why it has no plan."""
    try:
        return graph.view(name).plan
    except SourceWithoutSchemaError as error:
        return ViewExplanation(name, "unknown", str(error))
    except ViewError as error:
        return ViewExplanation(name, "refused", str(error))


def _explain(planner: ViewPlanner, plan: ViewPlan, plans: Sequence[ViewPlan], touched: RowsTouched) -> ViewExplanation:
    name = plan.name
    costs = touched.costs(plan)
    did = [f"  did cost   {'' if each == name else f'{each}: '}{_cost_text(cost)}" for each, cost in costs.items()]
    text = planner.explain(plan, plans, [f"  touches    {touched.text(plan)}", *did])
    return ViewExplanation(name, plan.view_class, text.partition("\n")[2], (*plan.sources_read, *plan.views), costs)


def listed(source: SourceDefinition) -> Iterator[FileVersion]:
    """The files of a source that match its pattern, in the order of the listing."""
    accepts = source.path_filter.accepts
    for page in ObjectStore(source.location).list_pages():
        for path, etag, size, last_modified in page.objects():
            if accepts(path):
                version = version_fingerprint(etag, size, last_modified)
                yield FileVersion(source.name, path, version, etag, size, last_modified)
