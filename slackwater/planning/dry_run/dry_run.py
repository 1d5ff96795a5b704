"""Dry run: the plan of each source and of each view, and the cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType

from actors.recovery.catalog_changes import CatalogChanges
from actors.recovery.committed_files import CommittedFiles
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition, event_columns, row_keys
from slackwater.extensions.file_action import AfterPlan, DeclaredFileAction
from slackwater.extensions.table_target import PublicationPlan, TablePublication, plan_publications
from slackwater.planning.dry_run.prices import Prices
from slackwater.planning.dry_run.source_survey import KnownSource, SourcePlan, SourceSurvey
from slackwater.planning.dry_run.view_plans import KnownViews, PlannedView, plan_views
from slackwater.status.run_status import INCOMPLETE
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import StoreNotFoundError
from state.lance.lance_root import LanceRoot
from state.ownership.owner import Owner, read_owner
from state.store.store import StateStore
from state.tables.catalog import Catalog

_AT_ONCE = 8


@dataclass(frozen=True)
class DryRun:
    """The plan of a run, and an estimate of its cost.

    Args:
        pipeline: the name of the pipeline.
        root: the URL of its root.
        is_first: True if the root has no store yet.
        owner: the process that owns the root; a run is refused while it lives.  None without one.
        sources: the plans of the sources.
        views: the plans of the declared views, then the stored views that are not declared.
        after: what it would do to files after the commit, of each source that declares it.
        publications: the tables that views would be published to.
    """

    pipeline: str
    root: str
    is_first: bool
    owner: Owner | None
    sources: tuple[SourcePlan, ...]
    views: tuple[PlannedView, ...]
    after: tuple[AfterPlan, ...] = ()
    publications: tuple[PublicationPlan, ...] = ()

    @property
    def is_refused(self) -> bool:
        """True if a run would not start, or would fail on existing files.  A living owner does not count."""
        refused = [*(each.refused for each in self.sources), *(each.refused for each in self.publications)]
        return any(refused) or any(view.is_refused for view in self.views)

    @property
    def paused(self) -> tuple[str, ...]:
        """The names of the sources that a run would pause."""
        return tuple(each.name for each in self.sources if each.paused is not None)

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 1 if a run would be refused, 3 if a run would pause a source, else 0."""
        return 1 if self.is_refused else INCOMPLETE if self.paused else 0

    @property
    def first_pass_dollars(self) -> float:
        """The estimated cost in requests of one listing of all sources and of reading the new files."""
        return sum(source.first_pass_dollars for source in self.sources)

    @property
    def idle_day_dollars(self) -> float:
        """The cost in requests of a day without new files."""
        return sum(source.idle_day_dollars for source in self.sources)


OnSources = Callable[[DryRun], None]


def dry_run(
    definition: PipelineDefinition,
    views: Sequence[ViewDefinition],
    *,
    after: Sequence[DeclaredFileAction] = (),
    published: Mapping[str, Collection[str]] = MappingProxyType({}),
    publications: Sequence[TablePublication] = (),
    spark_settings: SparkSettings,
    prices: Prices,
    on_sources: OnSources,
    clock: Clock,
) -> DryRun:
    """Lists the sources, reads the first files of sources without a schema, and analyses the views.

    Args:
        definition: the pipeline.
        views: the declared views.
        after: the declared actions on files after the commit.
        published: source → the views over it that tables follow.
        publications: the tables.
        spark_settings: the settings of the Spark that analyses the views.
        prices: the prices of requests.
        on_sources: called before Spark starts, with a result without views.
        clock: the clock that gives a new source its time of declaration.

    Raises:
        UsageError: the declaration does not fit the root.
        StorageError: the root cannot be read.
        RunFailedError: Spark cannot be started.
    """
    owner = read_owner(definition.root)
    catalog, committed, files, store = _committed(definition, LanceRoot(definition.root, clock), clock)
    seen = files.seen.indexes()

    def survey(source: SourceDefinition) -> SourcePlan:
        schema, not_before = catalog.schemas.get(source.name), catalog.not_before[source.name]
        known = KnownSource(files, seen[source.name], schema, not_before, source.name in committed)
        return SourceSurvey(source, known, definition.fetch, prices).plan()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="survey") as threads:
        sources = tuple(threads.map(survey, definition.sources))
    is_owned = owner is not None and not owner.is_gone()
    planned_after = tuple(
        each.plan(store, definition.root, views, published.get(each.source.name, ()), clock) for each in after
    )
    found = DryRun(
        definition.name,
        definition.root.url,
        store is None,
        owner if is_owned else None,
        sources,
        (),
        planned_after,
        plan_publications(publications, definition.root, clock),
    )
    on_sources(found)
    planned = plan_views(
        views,
        {source.name: source.schema for source in sources},
        [source.name for source in definition.sources if source.materialize],
        row_keys(definition.sources),
        event_columns(definition.sources),
        KnownViews(catalog.views, files.ingested, files.finished),
        spark_settings,
        f"slackwater-dry-run-{definition.name}",
    )
    return replace(found, views=planned)


def _committed(
    definition: PipelineDefinition, root: LanceRoot, clock: Clock
) -> tuple[CatalogChanges, Collection[str], CommittedFiles, StateStore | None]:
    """The catalog with the changes of the declaration, the sources and files of earlier runs, and the store, if any."""
    try:
        store = root.open(read_only=True)
    except StoreNotFoundError:
        catalog = CatalogChanges(Catalog())
        catalog.declare(definition, 0, clock.now())
        return catalog, (), CommittedFiles.nothing(definition), None
    recorded = Catalog.of(store.scan("catalog"))
    committed, catalog = frozenset(recorded.sources), CatalogChanges(recorded)
    catalog.declare(definition, store.head.epoch, clock.now())
    return catalog, committed, CommittedFiles.read(store, definition), store
