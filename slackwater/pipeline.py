"""The declaration of a pipeline: its sources, its views and its root."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import pyarrow as pa
import structlog
from typing_extensions import Unpack

from actors.files import ReadingOrder
from actors.formats.options import DEBEZIUM_DELETED, Debezium, Parquet
from actors.formats.registry import Format, format_type, is_built_in
from actors.objects.object_store import ObjectStore
from actors.recovery.recovery import as_recorded, check, current_head
from actors.sources.discovery import Discovery
from actors.sources.path_filter import PathFilter
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.row_key import METADATA as OF_KEYS
from actors.sources.source import FilePolicy, OnBadRecord, OnChange, SourceDefinition
from actors.telemetry.logging import configure_default
from slackwater import __version__
from slackwater.extensions.companion import NamedOption, RunContext, RunOption, companions_of
from slackwater.extensions.file_action import DeclaredFileAction, FileAction, declared_action
from slackwater.extensions.run_views import RunViews
from slackwater.extensions.table_target import (
    TablePublication,
    Targets,
    check_publications,
    declared,
    places_of,
    published_views,
    require_own_names,
)
from slackwater.places.declared_place import DeclaredPlace
from slackwater.places.overlap_table import require_apart
from slackwater.places.pipeline_places import pipeline_places
from slackwater.places.source_access import check_stores, claim_queues, committed_sources
from slackwater.planning.dry_run.prices import Prices
from slackwater.running.foreground import run_in_foreground
from slackwater.settings import Settings
from slackwater.sources import EventTime, Key, Listing, Notifications, Replace, Schema
from slackwater.tables.static_table import FILE as TABLE_FILE
from slackwater.tables.static_table import StaticTable, table_location
from slackwater.tables.table_rows import table_rows
from spark_bridge.plans.view_definition import ViewDefinition, ViewOptions, sources_read
from state.capabilities.store_record import require_capable
from state.clock import Clock, SystemClock
from state.errors import SettingsError, StoreNotFoundError, ViewError
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.ownership.owner import Ownership, new_run_id
from state.places.marker import Marker, write_marker
from state.upkeep.branches import root_above

if TYPE_CHECKING:
    from slackwater.planning.definition_change import DefinitionChange
    from slackwater.planning.dry_run.dry_run import DryRun
    from slackwater.planning.explanation import ViewExplanation
    from slackwater.running.run import Run, RunReport

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Value = TypeVar("_Value", Key, EventTime)


class Pipeline:
    """Views over the files of sources, stored at a root.

    Args:
        name: letters, digits and underscores; the root belongs to this name.
        root: a local path or URL for the ledger and the views.
        storage_options: access to the root, and to every source on the same kind of store without options of its own;
            in the names that obstore and Lance share (`access_key_id`, `endpoint`, `region`, `allow_http`, ...).
        settings: see `Settings`.
        alerts: the alerts of its runs, see `Alert`.
        lineage: the receiver of events about its runs, see `OpenLineage`; None for none.

    Raises:
        SettingsError: a name or URL is not valid, or two alerts have one name.

    Examples:
        >>> pipeline = Pipeline("flights", root="/data/flights")
        >>> pipeline.source("flights", "/data/raw", format="parquet")
        >>> pipeline.view("by_carrier", "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier")
        >>> report = pipeline.run(until="caught_up")
    """

    def __init__(
        self,
        name: str,
        root: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        alerts: Sequence[NamedOption] = (),
        lineage: RunOption | None = None,
    ) -> None:
        _check_name("pipeline", name)
        self.name = name
        self.settings = settings or Settings()
        self.alerts = _alerts(alerts)
        self.lineage = lineage
        self.root = Location(os.fspath(root), storage_options or {}, self.settings.durability)
        self._sources: dict[str, SourceDefinition] = {}
        self._tables: dict[str, pa.Table] = {}
        self._views: dict[str, ViewDefinition] = {}
        self._published: dict[str, tuple[TablePublication, ...]] = {}
        self._after: dict[str, DeclaredFileAction] = {}
        self._clock: Clock = SystemClock()

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, root={str(self.root)!r})"

    @property
    def sources(self) -> Mapping[str, SourceDefinition]:
        """The declared sources, by name."""
        return MappingProxyType(self._sources)

    @property
    def views(self) -> Mapping[str, ViewDefinition]:
        """The declared views, by name."""
        return MappingProxyType(self._views)

    @property
    def publications(self) -> Mapping[str, tuple[TablePublication, ...]]:
        """The tables that follow each declared view, by its name."""
        return MappingProxyType(self._published)

    def source(
        self,
        name: str,
        url: str | os.PathLike[str],
        *,
        format: str | Format,
        pattern: str = "**",
        schema: pa.Schema | str | Schema | None = None,
        discovery: Discovery = Listing(),
        storage_options: Mapping[str, Any] | None = None,
        on_change: OnChange | Replace = "ignore",
        on_bad_record: OnBadRecord = "quarantine",
        metadata: Sequence[str] = (),
        order: ReadingOrder | None = None,
        materialize: bool = False,
        key: str | Sequence[str] | Key | None = None,
        event_time: str | EventTime | None = None,
        after: FileAction | None = None,
    ) -> None:
        """Declares a prefix of a bucket, or a directory, and reads each of its files once.

        Args:
            name: the name of the source in views.
            url: a local path, `file://`, `s3://`, `gs://`, `az://` or `http(s)://`.
            format: `"parquet"`, `"avro"`, `"orc"`, `"csv"`, `"json"` (one object per line; also `"jsonl"` or
                `"ndjson"`), `"debezium"` (one change per line, see `Debezium`), `"text"` (one row per line), or an
                object with options: `Csv(delimiter=";")`.
            pattern: a glob for names below the URL; names and directories that start with `_` or `.`, and
                unfinished files such as `*.tmp`, match only if it names them.
            schema: a pyarrow schema or DDL text (`"id bigint, at timestamp"`), or a `Schema(...)`, which also has the
                treatment of other columns; None takes the schema of the first files.
            discovery: the way to find new files: `Listing(...)`, or `Notifications(...)` for a bucket of `s3://` that
                sends its events to a queue.
            storage_options: access to the URL; see `Pipeline`.
            on_change: the reaction to a new version of an ingested file: `"ignore"` (the change is recorded),
                `"fail"`, `"append"` (it is read as a new file), or `"replace"` (its rows replace the old ones in one
                epoch, and the rows of deleted files are retracted; only with `materialize`).  `Replace(...)` is
                `"replace"` with other limits for deleted files.
            on_bad_record: `"quarantine"` keeps a record that cannot be read and continues, `"fail"` ends the run.
            metadata: columns about the origin of each row: any of `path`, `size`, `last_modified`, `etag`, `row` and
                `epoch`; they are called `_path`, `_size` and so on.
            order: `"name"`, or `"last_modified"` (then by name): one reader reads the files one after the other, in
                this order over all files that completed listings and received events have found; a file that is found
                later is read next.  (A run in search of a file that kills it reads suspicious files first.)  None
                reads many files at a time.
            materialize: keep all rows of the source, with all columns, in a Lance dataset of their own; see
                `Snapshot.rows`.  The first declaration of the source decides it.
            key: a column, or several, of which each row is a new version of a record, or a `Key(...)`, which also has
                their order: views see the last row of each key.  The source gets the metadata `path` and `row`.
            event_time: the column with the time of a row, or an `EventTime(...)`, which also has the lateness: the
                source then has a watermark.  The first declaration decides the column.
            after: the action on a file when every declared view and publication has its rows, see
                docs/howto/after-the-commit.md: `Delete(keep_s=86_400)`, `Move("s3://archive/")` or
                `Tag({"slackwater": "done"})`.  Files with quarantined records and changed files are never touched.
                A dry run lists the files of the action.  None: files are never touched.

        Raises:
            SettingsError: an argument is not valid, or the name is taken.
            SchemaError: the schema cannot be read or cannot be carried to Spark.
        """
        self._check_source_name(name)
        made = _format(name, format)
        columns = schema if isinstance(schema, Schema) else Schema(schema)
        limits = on_change if isinstance(on_change, Replace) else Replace()
        row_key = _value(name, Key, key)
        if row_key is not None and row_key.deleted is None and isinstance(made, Debezium):
            row_key = replace(row_key, deleted=DEBEZIUM_DELETED)
        location = Location(os.fspath(url), storage_options or {})
        if storage_options is None and location.scheme == self.root.scheme:
            location = replace(location, storage_options=self.root.storage_options)
        PathFilter(pattern)
        self._check_queue(name, discovery)
        source = SourceDefinition(
            name=name,
            location=location,
            format=made,
            pattern=pattern,
            schema=columns.arrow,
            discovery=discovery,
            policy=FilePolicy(
                on_change="replace" if isinstance(on_change, Replace) else on_change,
                on_bad_record=on_bad_record,
                max_removed_share=limits.max_removed_share,
                max_removed_files=limits.max_removed_files,
            ),
            schema_evolution=columns.evolution,
            metadata=tuple(dict.fromkeys([*metadata, *(OF_KEYS if row_key else ())])),
            order=order,
            materialize=materialize,
            timestamps=columns.timestamps,
            key=row_key,
            event_time=_value(name, EventTime, event_time),
        )
        if after is not None:
            self._after[name] = declared_action(source, after)
            source = self._after[name].source
        self._sources[name] = source

    def table(
        self,
        name: str,
        data: Any,
        *,
        format: str | Format | None = None,
        pattern: str = "**",
        schema: pa.Schema | str | Schema | None = None,
        discovery: Discovery = Listing(),
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Declares a small table that views join: a frame that comes with the pipeline, or files that are replaced.

        It is a source whose rows are stored and replaced: when it changes, all views change in one epoch, and earlier
        epochs keep the rows that they had.

        Args:
            name: the name of the table in views.
            data: an Arrow table, a pandas, polars or Spark frame, or a list of dicts, of at most 256 MB, whose rows are
                stored at the root when the pipeline starts; or a URL or local path as in `source`, whose files are
                read.  A frame that differs from the frame of the last start replaces the rows; `Run.replace_table` and
                `slackwater replace-table` do so in between, and hold until the declaration changes.
            format: of the files, as in `source`.
            pattern: of the files; all of them may go at once, and leave the views.
            schema: of the files.
            discovery: of the files.
            storage_options: access to the URL.

        Raises:
            SettingsError: an argument is not valid, or the name is taken.
            SchemaError: the schema cannot be read or cannot be carried to Spark.
        """
        if isinstance(data, (str, os.PathLike)):
            if format is None:
                raise SettingsError(f'table {name}: give the format of its files, for example format="parquet"')
            self.source(
                name,
                data,
                format=format,
                pattern=pattern,
                schema=schema,
                discovery=discovery,
                storage_options=storage_options,
                on_change=Replace(max_removed_share=1.0),
                materialize=True,
            )
            self._sources[name] = replace(self._sources[name], table="files")
            return
        of_files = (format, pattern, schema, discovery, storage_options)
        if of_files != (None, "**", None, Listing(), None):
            raise SettingsError(
                f"table {name}: format, pattern, schema, discovery and storage_options are for a table of files; leave "
                "them out for a frame, which has its schema"
            )
        self._check_source_name(name)
        rows = table_rows(name, data)
        self._sources[name] = SourceDefinition(
            name=name,
            location=table_location(self.root, name),
            format=Parquet(),
            pattern=TABLE_FILE,
            schema=rows.schema,
            policy=FilePolicy(on_change="replace"),
            materialize=True,
            table="frame",
        )
        self._tables[name] = rows

    def _check_source_name(self, name: str) -> None:
        _check_name("source", name)
        for other in self._sources:
            if other.lower() == name.lower():
                # Spark's names are the same in upper and lower case.
                as_what = "" if other == name else f", as {other}"
                raise SettingsError(f"source {name} is declared twice{as_what}; give the second another name")

    def _check_queue(self, name: str, discovery: Discovery) -> None:
        """Refuses a second source on one queue: each would take messages of the other."""
        if not isinstance(discovery, Notifications):
            return
        for other in self._sources.values():
            if isinstance(other.discovery, Notifications) and other.discovery.queue_url == discovery.queue_url:
                raise SettingsError(
                    f"source {name}: source {other.name} already reads the queue {discovery.queue_url}, and two would "
                    "take each other's messages; give each a queue of its own (SNS sends the events to both), or let "
                    f"the views of both read {other.name}"
                )

    @overload
    def view(
        self, name_or_function: str, query: str, /, *, publish: Targets = (), **options: Unpack[ViewOptions]
    ) -> None: ...

    @overload
    def view(
        self, name_or_function: _Function, /, *, publish: Targets = (), **options: Unpack[ViewOptions]
    ) -> _Function: ...

    @overload
    def view(self, /, *, publish: Targets = (), **options: Unpack[ViewOptions]) -> Callable[[_Function], _Function]: ...

    def view(
        self,
        name_or_function: str | _Function | None = None,
        query: str | None = None,
        /,
        *,
        publish: Targets = (),
        **options: Unpack[ViewOptions],
    ) -> _Function | Callable[[_Function], _Function] | None:
        """Declares a view: by name and SQL, or as a decorator of a function.

        A function has the name of its view, and its parameters are sources: Spark DataFrames in, a Spark DataFrame
        out.  It is called once per start, with empty frames.  A view that is declared after its sources were read gets
        the earlier rows by a backfill while the other views continue, and is shown when it is complete.

        Args:
            name_or_function: the name, or the function; neither for a decorator with options.
            query: Spark SQL over the sources.
            publish: a table that follows the view while a run lasts, or several: `Delta(...)`, `Iceberg(...)`,
                `ParquetFiles(...)`.  It belongs to the declaration, and not to the view: a later run may have others.
            options: `on_full="allow"` recomputes a view as a whole if it cannot be maintained epoch by epoch, at most
                every `refresh_interval_s` seconds, and above 0 also one that would read all of its rows in an epoch;
                `replace=True` rebuilds the view if the root has another view of this name; `on_missing="allow"`
                shows a backfill without files that were ingested and deleted; `emit="on_close"` shows a group of a
                window or session of event time once, when the watermark has passed its end; `expire="by_watermark"`
                lets the rows of a join leave when the watermarks show that no partner comes, and leaves late rows out;
                `ttl="7 days"` does that for joins whose condition does not bound the times, as if it did; in a view
                without a join, rows more than 7 days before the watermark do not count, and leave;
                `expect={"amount is positive": "amount > 0"}` counts the rows that do not fulfil these conditions of
                Spark's SQL, and a null does not; conditions over the view as a whole are in `slackwater.expect`;
                `on_violation="hold"` also keeps publications, SQL clients and the tag `published` at the last epoch
                without such rows, see `Views.held`; `on_violation="quarantine"` leaves them out: the view
                `NAME_quarantine` has them, each with the names of what it violates in the column `violated`.

        Raises:
            ViewError: the name is taken or not valid, the parameters of the function are not plain names, or an
                expectation is none.
            SettingsError: `publish` is no table; UsageError if the library of its format is not installed.
        """
        if name_or_function is None:
            return partial(self._declared, options, publish)
        if not isinstance(name_or_function, str):
            return self._declared(options, publish, name_or_function)
        self._add_view(ViewDefinition.of(name_or_function, query, **options), publish)
        return None

    def _declared(self, options: ViewOptions, publish: Targets, function: _Function) -> _Function:
        self._add_view(ViewDefinition.of(function, None, **options), publish)
        return function

    def _add_view(self, definition: ViewDefinition, publish: Targets) -> None:
        parts = {each.name: each for each in definition.parts}
        if twice := self._views.keys() & parts.keys():
            raise ViewError(f"view {min(twice)} is declared twice; give the second another name")
        self._published[definition.name] = declared(definition.name, publish, self.root)
        self._views |= parts

    def run(self, until: Literal["caught_up"] | None = None, *, takeover: bool = False) -> RunReport:
        """Runs in the foreground.

        In the main thread SIGINT (Ctrl-C) and SIGTERM end it after a last epoch, and the report is returned; a second
        signal ends the process at once.

        Args:
            until: `"caught_up"` ends the run when every file of the first listings is committed; None runs forever.
            takeover: take the root over from an owner that seems to live.

        Raises:
            UsageError: the declaration does not fit the root, or a view cannot be maintained.
            StorageError: a bucket cannot be reached.
            OwnedError: another process runs on this root.
            FencedError: another process has taken the root over.
            CommitRefusedError: a table of `publish` was written by another program.
            RunFailedError: a part of the run died; start it again.
        """
        return run_in_foreground(partial(self.start, takeover=takeover), until)

    def start(self, *, takeover: bool = False) -> Run:
        """Runs in the background.  Arguments and errors as `run`; errors of the run itself are raised by `Run.wait`."""
        configure_default()
        definition = self._definition()
        publications = self._publications()
        root = LanceRoot(self.root, self._clock)
        definition = as_recorded(definition, root)
        committed = committed_sources(root)
        check_stores(definition.sources, committed)
        check(definition, root, holds_back=any(view.on_violation == "hold" for view in self._views.values()))
        self._require_free_root(root)
        run_id = new_run_id(self._clock)
        claim_queues(definition.sources, self.root, committed)
        if publications:
            check_publications(publications, self.root, self._clock, self._own_places())
        record = require_capable(self.root, self._clock, run_id, lambda: current_head(root).term > 0)
        if warning := record.warning(self.root):
            structlog.get_logger(actor="run").warning("the store of the root lacks a capability", text=warning)
        ownership = Ownership(self.root, self._clock, run_id=run_id, pipeline=self.name)
        ownership.acquire(takeover=takeover)
        ownership.notify(self._starting_status())
        try:
            # These load Ray and Spark: a run that is refused needs neither.
            from slackwater.running.run import Run
            from slackwater.running.run_control import RunControl
            from slackwater.status.observability.run_observer import RunObserver

            replaces = current_head(root)
            ownership.confirm()
            write_marker(self.root, Marker("root", self.name, self.root.url, "", __version__, record.identity))
            for name, rows in self._tables.items():
                StaticTable(table_location(self.root, name), name).declare(rows)
            context = self._context(run_id, ownership.confirm)
            companions = companions_of(self._options(), context)
            control = RunControl(
                definition=definition,
                views=tuple(self._views.values()),
                settings=self.settings,
                ownership=ownership,
                replaces=replaces,
                places=self._own_places(),
                needs=context.views,
                clock=self._clock,
            )
            run = Run(definition, control)
            ownership.notify(lambda: run.status().to_json())
            control.observer = RunObserver.of(self.name, run.status, self._clock)
            if publications:
                control.publish(publications)
            control.accompany(companions, run.status)
            return run
        except BaseException as error:
            ownership.release("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise

    def _starting_status(self) -> Callable[[], dict[str, Any]]:
        """The status of a run that starts Ray: its sources, and the seconds since its begin."""
        from slackwater.status.run_status import RunStatus, SourceStatus, StartupStep

        began_s, sources = self._clock.monotonic(), dict.fromkeys(self._sources, SourceStatus())

        def status() -> dict[str, Any]:
            seconds = self._clock.monotonic() - began_s
            step = StartupStep("Ray", seconds, done=False)
            message = f"starting; waiting for {step.name}"
            return RunStatus(message=message, sources=sources, seconds=seconds, startup=(step,)).to_json()

        return status

    def explain(self) -> tuple[ViewExplanation, ...]:
        """Explains each view: its class and the reason, its storage, and the cost of an epoch.

        The views are analysed by the SparkSession of this process, or a local one.

        Raises:
            UsageError, StorageError: as `run`; a view that cannot be maintained is `refused` instead.
        """
        from slackwater.planning.explanation import explain

        configure_default()
        return explain(self._recorded_definition(), tuple(self._views.values()), self.settings.spark, self._clock)

    def explain_change(self, name: str) -> DefinitionChange:
        """Compares a declared view with the stored view of its name: the parts that a run would keep, and compute.

        The views are analysed by the SparkSession of this process, or a local one.  Nothing is written.

        Args:
            name: the name of the view.

        Raises:
            UsageError: this pipeline declares no such view, or does not fit its root; a ViewError if the declared view
                cannot be built or maintained.
            NotFoundError: the root has no store, or no such view.
            StorageError: the root or a source cannot be read.
        """
        from slackwater.planning.definition_change import definition_change

        configure_default()
        views = tuple(self._views.values())
        return definition_change(self._recorded_definition(), views, name, self.settings.spark, self._clock)

    def dry_run(
        self, *, prices: Prices | None = None, on_sources: Callable[[DryRun], None] = lambda found: None
    ) -> DryRun:
        """Plans a run: its files, requests and cost.  Writes nothing, and works during a run of the pipeline.

        Each source is listed once; the first files of a source without a schema are read, and a footer of one with
        large Parquet files.  The views are analysed by the SparkSession of this process, or a local one.

        Args:
            prices: of requests; by default AWS's list prices.
            on_sources: called with the plan of the sources, before Spark starts.

        Raises:
            UsageError: the declaration does not fit the root.  A refused view is in the result.
            StorageError: the root cannot be read.  An error of a source is in the result.
            RunFailedError: Spark cannot be started.
        """
        from slackwater.planning.dry_run.dry_run import dry_run

        configure_default()
        return dry_run(
            self._recorded_definition(),
            tuple(self._views.values()),
            after=tuple(self._after.values()),
            published=self._published_over(),
            publications=self._publications(),
            spark_settings=self.settings.spark,
            prices=prices or Prices(),
            on_sources=on_sources,
            clock=self._clock,
        )

    def _publications(self) -> list[TablePublication]:
        return [each for view in self._published.values() for each in view]

    def _published_over(self) -> Mapping[str, set[str]]:
        """Source → the views over it, also by way of others, that tables follow."""
        reads = sources_read(self._views, self._sources)
        followed = [name for name, tables in self._published.items() if tables]
        return {source: {name for name in followed if source in reads[name]} for source in self._sources}

    def _context(self, run_id: str, confirm_owner: Callable[[], None]) -> RunContext:
        """The run for its companions.  It has the published tables from the start: they keep files from deletion."""
        published = published_views(self._publications())
        return RunContext(
            pipeline=self.name,
            root=self.root,
            run_id=run_id,
            clock=self._clock,
            places=self._places(),
            views=RunViews(self._views.values(), self._sources, published),
            confirm_owner=confirm_owner,
        )

    def _options(self) -> list[RunOption]:
        """The options that accompany a run; at its end, they end in this order."""
        return [*self.alerts, *self._after.values(), *([] if self.lineage is None else [self.lineage])]

    def _require_free_root(self, root: LanceRoot) -> None:
        """Checks that a new root is not in another root or in a table.

        Raises:
            SettingsError: it is.
        """
        try:
            root.open(read_only=True)
        except StoreNotFoundError:
            pass
        else:
            return
        if root_above(self.root) is not None:
            return
        found = ObjectStore(self.root.child("_")).enclosing_table()
        if found is not None:
            raise SettingsError(f"root {self.root} is in {found}: choose a root outside")

    def _places(self) -> list[DeclaredPlace]:
        """Every place that a run reads or writes, as far as the declaration names it."""
        return [*self._own_places(), *places_of(self._publications())]

    def _own_places(self) -> list[DeclaredPlace]:
        """The places of the root, the sources and the archives, without the published tables."""
        sources = pipeline_places(self.root, self._sources.values(), changing=self._after)
        return [*sources, *(place for action in self._after.values() for place in action.places())]

    def _recorded_definition(self) -> PipelineDefinition:
        """The definition, with the defaults that the root has recorded."""
        return as_recorded(self._definition(), LanceRoot(self.root, self._clock))

    def _definition(self) -> PipelineDefinition:
        if not self._sources:
            raise SettingsError(f"pipeline {self.name} has no source; declare one with pipeline.source(...)")
        if not self._views:
            raise ViewError(f"pipeline {self.name} has no view; declare one with pipeline.view(...)")
        for view in self._views.values():
            if view.name in self._sources:
                raise ViewError(f"view {view.name} has the name of a source; rename one of them")
            for parameter in view.parameters:
                if parameter not in self._sources and parameter not in self._views:
                    raise ViewError(
                        f"view {view.name} reads {parameter}, which is neither a source nor a view; "
                        f"declared are {', '.join(sorted({*self._sources, *self._views}))}"
                    )
        require_own_names(self._publications())
        require_apart(self._places())
        return PipelineDefinition(
            name=self.name,
            root=self.root,
            sources=tuple(self._sources.values()),
            views=sources_read(self._views, self._sources),
            ansi=self.settings.spark.ansi,
            barrier=self.settings.barrier,
            fetch=self.settings.fetch,
            retention=self.settings.retention,
            placement=self.settings.placement,
            join_memory_bytes=self.settings.join_memory_bytes,
            backfill_weight=self.settings.backfill_weight,
        )


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{kind} {name!r} is not a valid name: use letters, digits and underscores, with a letter first"
        )


def _alerts(given: Sequence[NamedOption]) -> tuple[NamedOption, ...]:
    names = [each.name for each in given]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"two alerts have the name {name!r}; give one of them another, as in name='to the log'")
    return tuple(given)


def _value(source: str, kind: type[_Value], given: Any) -> _Value | None:
    """The value of an option: a plain value is the first argument of its class."""
    if given is None or isinstance(given, kind):
        return given
    try:
        return kind(given)
    except SettingsError as error:
        raise SettingsError(f"source {source}: {error}") from None


def _is_format(given: Any) -> bool:
    return is_dataclass(given) and callable(getattr(given, "reader", None))


def _format(source: str, format: str | Format) -> Format:
    if isinstance(format, str):
        try:
            made: Format = format_type(format)()
        except SettingsError as error:
            raise SettingsError(f"source {source}: {error}") from None
        return made
    if is_built_in(format) or _is_format(format):
        return format
    raise SettingsError(
        f"source {source}: {format!r} is not a valid format; give a name, an object such as Csv(), or your own object "
        "with a method reader(limits)"
    )
