"""The cost of a changed definition: the data that a run keeps, reads, recomputes and drops."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from actors.protocol.counters import SourceProgress
from actors.recovery.committed_files import CommittedFiles
from actors.recovery.recovery import check
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import event_columns, row_keys
from slackwater.planning.explanation import listed
from slackwater.planning.shown_schema import shown_schema
from slackwater.status.quantities import human_bytes
from slackwater.status.text import counted
from spark_bridge.engine.session.local_session import session_at_hand
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.maintenance.declaration import Declaration, Start
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.plans.planned_view import PlannedView, stored_groups
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.spark_analysis import SourceWithoutSchemaError
from spark_bridge.query.view_planner import PlannedGraph, ViewPlanner
from state.clock import Clock
from state.errors import DefinitionChangedError, StoreNotFoundError, UsageError, ViewError, ViewNotFoundError
from state.lance.lance_access import open_dataset
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, ViewClass, ViewVersion
from state.tables.stored_rows import base_name, declared_name, is_stored_rows, is_view, stored_rows_name

Becomes = Literal["kept", "taken over", "extended", "shared", "computed", "recomputed", "begun", "stale"]
"""The decision of a run on a view or an internal view.

* `kept`: it continues with its state.
* `taken over`: it is built from the groups of the stored view.
* `extended`: it is built from the groups of the stored view, and only the added measures are computed from rows.
* `shared`: it has the rows of another view.
* `computed`: it is computed once from all rows.
* `recomputed`: it is computed from all rows, and again at each change.
* `begun`: it starts without rows.
* `stale`: it has failed, and stays stale.
"""


@dataclass(frozen=True)
class Input:
    """Rows that are read once, for a view that is computed or taken over.

    Args:
        of: the files of a source, read again; the stored rows of a source; the rows of a view; or the groups of the
            stored view.
        name: the source or the view.
        files: number of files; None for rows of the root.
        rows: number of rows; None for files, and for a view that is recomputed itself.
        bytes: their size as read or stored; None for a view that is recomputed itself.
    """

    of: Literal["files", "stored rows", "view", "groups"]
    name: str
    files: int | None = None
    rows: int | None = None
    bytes: int | None = None

    @property
    def text(self) -> str:
        """The rows, for people."""
        if self.of == "files":
            return f"{counted(self.files or 0, 'file')} of {self.name} again ({human_bytes(self.bytes or 0)})"
        what = {"stored rows": "stored rows", "view": "rows", "groups": "groups"}[self.of]
        if self.rows is None or self.bytes is None:
            return f"the {what} of {self.name}, when they are there"
        return f"{self.rows:,} {what} of {self.name} ({human_bytes(self.bytes)})"


@dataclass(frozen=True)
class ViewStep:
    """The decision of a run on one view or one internal view.

    Args:
        name: its recorded name.
        becomes: see `Becomes`.
        reads: the rows that it is made of.
        shared_with: the view that has its rows; empty unless it is shared.
        measures: the measures that are added to the stored groups, as SQL; empty unless it is extended.
    """

    name: str
    becomes: Becomes
    reads: tuple[Input, ...] = ()
    shared_with: str = ""
    measures: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        read = " and ".join(each.text for each in self.reads) or "no rows"
        match self.becomes:
            case "kept":
                return "goes on with its state"
            case "taken over":
                return f"is made in one epoch of {read}; no file is read"
            case "extended":
                groups, *rows = (each.text for each in self.reads)
                only = " and ".join(self.measures)
                return (
                    f"is made of {groups}, and only {only} is computed, from {' and '.join(rows)}; "
                    "readers see the stored view until it is complete"
                )
            case "shared":
                return f"has the rows of {self.shared_with}"
            case "computed":
                return f"is computed from {read}; readers see the stored view until it is complete"
            case "recomputed":
                return f"is computed from {read}, and again when they change"
            case "begun":
                return "begins without rows: its sources have none yet"
            case "stale":
                return "is stale until it is retried or replaced"


@dataclass(frozen=True)
class DroppedData:
    """Stored data that no later epoch has; it is deleted with the last epoch that is retained and has it.

    Args:
        name: recorded name of the view or internal view.
        rows: number of rows, of its partials too.
        bytes: size of its files.
    """

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class DefinitionChange:
    """The comparison of a declared view with the stored view of its name.

    Args:
        name: the name of the view.
        view_class: the class of the declared one.
        is_same: whether the stored view is the declared one; then nothing changes.
        refusal: why a run would refuse the declaration as it is; empty if it would not.
        steps: the view with its internal views, and the views over it; parents precede their readers.
        dropped: the data that is dropped afterwards.
    """

    name: str
    view_class: ViewClass
    is_same: bool
    refusal: str
    steps: tuple[ViewStep, ...]
    dropped: tuple[DroppedData, ...]

    @property
    def text(self) -> str:
        """The comparison, for people."""
        if self.is_same:
            return f"{self.name}: the stored view is the declared one; nothing is computed"
        lines = [f"{self.name}: {self.view_class}, in place of the stored view"]
        lines += [f"  {each.name} {each.text}" for each in self.steps]
        lines += [f"  drops {each.rows:,} rows of {each.name} ({human_bytes(each.bytes)})" for each in self.dropped]
        if self.refusal:
            lines.append(f"  a run refuses the declaration as it is: {self.refusal}")
        return "\n".join(lines)


@dataclass(frozen=True)
class StoredEpoch:
    """The views at the last epoch of a root.

    Args:
        root: its location.
        views: name → view in the catalog.
        versions: recorded name → version.
        ingested: the sources that have ingested rows.
        finished: source → the finished files and their bytes.
    """

    root: Location
    views: Mapping[str, CatalogView]
    versions: Mapping[str, ViewVersion]
    ingested: Collection[str]
    finished: Mapping[str, SourceProgress]

    def size(self, name: str, datasets: Mapping[str, int] | None = None) -> tuple[int, int]:
        """Rows and bytes of some datasets of a recorded name; of all by default."""
        rows = size = 0
        for path, version in (self.versions[name].datasets if datasets is None else datasets).items():
            dataset = open_dataset(self.root.child(path), version)
            rows += int(dataset.count_rows())
            fragments = [each.metadata for each in dataset.get_fragments()]
            size += sum(file.file_size_bytes or 0 for each in fragments for file in each.files)
        return rows, size


def definition_change(
    definition: PipelineDefinition,
    views: Sequence[ViewDefinition],
    name: str,
    spark_settings: SparkSettings,
    clock: Clock,
) -> DefinitionChange:
    """Compares a declared view with the stored one of its name, and the views over it with theirs.

    A run on the last epoch of the root would make the same decisions.

    Args:
        definition: the pipeline.
        views: its declared views.
        name: the name of the view.
        spark_settings: the settings of the Spark that analyses the views.
        clock: the clock of the handle on the root.

    Raises:
        UsageError: the pipeline declares no such view, or does not fit the root.
        StoreNotFoundError: no pipeline has committed anything at the root.
        ViewNotFoundError: the root has no such view.
        ViewError: the declared view cannot be built or maintained.
        StorageError: the root cannot be read.
    """
    by_name = {each.name: each for each in views}
    if name not in by_name:
        declared = ", ".join(by_name) or "none"
        raise UsageError(f"pipeline {definition.name!r} declares no view {name!r} to compare; it declares: {declared}")
    root = LanceRoot(definition.root, clock)
    schemas = check(definition, root)
    found = {
        source.name: schemas.get(source.name) or shown_schema(source, definition.fetch, listed(source)).schema
        for source in definition.sources
    }
    stored = _stored(root, definition, name)
    materialized = [source.name for source in definition.sources if source.materialize]
    application = f"slackwater-explain-{definition.name}"
    with session_at_hand(spark_settings, application) as spark, closing(SparkJobs(spark)) as jobs:
        planner = ViewPlanner(
            spark, jobs, materialized, row_keys(definition.sources), event_columns(definition.sources)
        )
        planned = _planned(planner.graph(by_name, found, stored.views), name, by_name)
    return Comparison(by_name, planned, stored, materialized).of(name)


def _stored(root: LanceRoot, definition: PipelineDefinition, name: str) -> StoredEpoch:
    try:
        store = root.open(read_only=True)
    except StoreNotFoundError:
        raise StoreNotFoundError(
            f"{definition.root} has no store, and so no view {name!r} to compare with: run the pipeline first"
        ) from None
    views = Catalog.of(store.scan("catalog")).views
    if name not in views:
        there = ", ".join(sorted(filter(is_view, views))) or "none"
        raise ViewNotFoundError(f"{definition.root} has no view {name!r} to compare with; it has: {there}")
    files = CommittedFiles.read(store, definition)
    return StoredEpoch(definition.root, views, store.head.views, files.ingested, files.finished)


def _planned(graph: PlannedGraph, name: str, names: Collection[str]) -> Mapping[str, PlannedView]:
    graph.view(name)
    for each in names:
        try:
            graph.view(each)
        except (ViewError, SourceWithoutSchemaError):
            continue  # the run refuses it, or waits for it; this one is not about it
    return graph.views


class Comparison:
    """The decisions of a run on the next start.

    Args:
        definitions: name → definition of each declared view.
        planned: name → view of each that can be planned, internal views too.
        stored: the last epoch of the root.
        materialized: the sources whose rows are stored.
    """

    def __init__(
        self,
        definitions: Mapping[str, ViewDefinition],
        planned: Mapping[str, PlannedView],
        stored: StoredEpoch,
        materialized: Collection[str],
    ) -> None:
        self._definitions, self._planned, self._stored = definitions, planned, stored
        self._plans = {name: each.plan for name, each in planned.items()}
        self._materialized = materialized

    def of(self, name: str) -> DefinitionChange:
        # The comparison is that of a run which may do it.
        allowed = {each: replace(of, replace=True, cascade=True) for each, of in self._definitions.items()}
        declaration = self._declaration(allowed)
        try:
            self._declaration(self._definitions)
            refusal = ""
        except DefinitionChangedError as error:
            refusal = str(error)
        affected = self._affected(name)
        shared = self._shared(declaration)
        names = [each for each in self._plans if declared_name(each) in affected]
        steps = tuple(self._step(each, declaration, shared) for each in names)
        is_same = all(each.becomes in ("kept", "stale") for each in steps if declared_name(each.name) == name)
        dropped = () if is_same else tuple(self._dropped(affected, steps, declaration))
        return DefinitionChange(name, self._plans[name].view_class, is_same, refusal, steps, dropped)

    def _declaration(self, definitions: Mapping[str, ViewDefinition]) -> Declaration:
        groups = stored_groups(self._planned)
        return Declaration.of(definitions, self._plans, self._stored.views, self._stored.ingested, (), groups)

    def _affected(self, name: str) -> set[str]:
        """The view, and those over it."""
        affected = {name}
        for each, plan in self._plans.items():  # a view comes after the views that it reads
            if is_view(each) and not affected.isdisjoint(plan.views):
                affected.add(each)
        return affected

    def _shared(self, declaration: Declaration) -> SharedViews:
        """The internal views that have the rows of others, as `RecordedViews` chooses them at a start."""
        apart = {name for name in self._plans if self._definitions[declared_name(name)].on_missing == "allow"}
        begun = {base_name(name) for name, each in self._stored.versions.items() if each.pinned_epoch is not None}
        shared = SharedViews()
        shared.declare(self._plans, apart.union(declaration.incomplete), declaration.fresh, begun)
        return shared

    def _step(self, name: str, declaration: Declaration, shared: SharedViews) -> ViewStep:
        plan, start = self._plans[name], declaration.starts[name]
        if start is Start.STALE:
            return ViewStep(name, "stale")
        groups = self._planned[name].before
        is_of_groups = start is Start.OF_GROUPS
        lacks = groups.lacks if groups is not None and is_of_groups else ()
        if is_of_groups and not lacks:
            return ViewStep(name, "taken over", (self._groups(name),))
        if start is Start.CONTINUES:
            return ViewStep(name, "kept")
        if (representative := shared.representative(name)) != name:
            return ViewStep(name, "shared", shared_with=representative)
        if start is Start.NEW:
            return ViewStep(name, "begun")
        reads = tuple(self._reads(plan, shared, declaration.fresh))
        if lacks:
            return ViewStep(name, "extended", (self._groups(name), *reads), measures=lacks)
        return ViewStep(name, "recomputed" if plan.view_class == "full" else "computed", reads)

    def _groups(self, name: str) -> Input:
        """The groups of a stored view, where its partials are."""
        version = self._stored.versions[name]
        path = version.path if version.state_path is None else version.state_path
        rows, size = self._stored.size(name, {path: version.datasets[path]})
        return Input("groups", name, rows=rows, bytes=size)

    def _reads(self, plan: ViewPlan, shared: SharedViews, fresh: Collection[str]) -> Iterator[Input]:
        for parent in plan.parents:
            representative = shared.representative(parent)
            if representative in fresh or representative not in self._stored.versions:
                yield Input("view", parent)
            else:
                version = self._stored.versions[representative]
                rows, size = self._stored.size(representative, {version.path: version.version})
                yield Input("view", parent, rows=rows, bytes=size)
        sources = [each for each in plan.columns if each not in plan.parents and each not in plan.computed]
        # As `view_history`: stored rows if all its sources have them, else files.
        has_rows = all(each in self._materialized for each in sources)
        for source in sources:
            if not has_rows:
                read = self._stored.finished.get(source, SourceProgress())
                yield Input("files", source, files=read.done, bytes=read.bytes)
            elif (stored := stored_rows_name(source)) in self._stored.versions:
                rows, size = self._stored.size(stored)
                yield Input("stored rows", source, rows=rows, bytes=size)

    def _dropped(
        self, affected: Collection[str], steps: Sequence[ViewStep], declaration: Declaration
    ) -> Iterator[DroppedData]:
        """The datasets of the affected views that no recorded name has any longer."""
        stay = {each.name for each in steps if each.becomes in ("kept", "stale")}
        versions = self._stored.versions
        own = [name for name in versions if declared_name(name) in affected and not is_stored_rows(name)]
        # A backfill that has begun goes on, unless it is one of another definition.
        is_ended = {name: name == base_name(name) or name in declaration.abandoned for name in own}
        ended = [name for name in own if is_ended[name] and name not in stay]
        used = {path for name, each in versions.items() if name not in ended for path in each.datasets}
        for name in sorted(ended):
            left = {path: version for path, version in versions[name].datasets.items() if path not in used}
            if left:
                yield DroppedData(name, *self._stored.size(name, left))
