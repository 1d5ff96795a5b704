"""The declaration of a pipeline: sources, views, and where the results go."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, overload

import pyarrow as pa
from typing_extensions import Unpack

from actors.formats.options import Csv, Json, Parquet, Text
from actors.formats.registry import Format, format_type
from actors.notifications.message_queue import MessageQueue
from actors.objects.object_store import ObjectStore
from actors.recovery.recovery import check, current_head
from actors.schemas.ddl import parse_schema
from actors.schemas.safe_types import safe_schema
from actors.sources.discovery import Discovery, Listing, Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import FilePolicy, SourceDefinition
from actors.telemetry.logging import configure_default
from slackwater.observability.run_observer import RunObserver
from slackwater.planning.dry_run.dry_run import DryRun, dry_run
from slackwater.planning.dry_run.prices import Prices
from slackwater.planning.explanation import ViewExplanation, explain
from slackwater.running.foreground import run_in_foreground
from slackwater.running.run import Run, RunReport
from slackwater.running.run_control import RunControl
from slackwater.settings import Settings
from spark_bridge.analysis.view_definition import ViewDefinition, ViewOptions
from state.clock import Clock, SystemClock
from state.errors import SettingsError, ViewError
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.ownership.owner import Ownership, new_run_id

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Pipeline:
    """Views over the files of some sources, kept at a root.

    Args:
        name: letters, digits and underscores; the root belongs to this name.
        root: a local path or URL where ledger and views are kept.
        storage_options: to reach the root, and every source on the same kind of store that has none of its own; in
            the names that obstore and Lance share (`access_key_id`, `endpoint`, `region`, `allow_http`, ...).
        settings: see `Settings`.

    Raises:
        SettingsError: a name or URL cannot be used.

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
    ) -> None:
        _check_name("pipeline", name)
        self.name = name
        self.root = Location(os.fspath(root), storage_options or {})
        self.settings = settings or Settings()
        self._sources: dict[str, SourceDefinition] = {}
        self._views: dict[str, ViewDefinition] = {}
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

    def source(
        self,
        name: str,
        url: str | os.PathLike[str],
        *,
        format: str | Format,
        pattern: str = "**",
        schema: pa.Schema | str | None = None,
        discovery: Discovery = Listing(),
        storage_options: Mapping[str, Any] | None = None,
        on_change: str = "ignore",
        on_bad_record: str = "quarantine",
        schema_evolution: str = "strict",
        metadata: Sequence[str] = (),
        order: str | None = None,
        materialize: bool = False,
    ) -> None:
        """Declares a prefix of a bucket, or a directory, whose files are read once each.

        Args:
            name: what views call it.
            url: a local path, `file://`, `s3://`, `gs://`, `az://` or `http(s)://`.
            format: `"parquet"`, `"csv"`, `"json"` (one object a line), `"text"` (one row a line), or an object with
                options: `Csv(delimiter=";")`.
            pattern: which names below the URL are taken; names that start with `_` or `.` are not, unless it asks.
            schema: a pyarrow schema or DDL text (`"id bigint, at timestamp"`); None takes that of the first files.
            discovery: how new files are found: `Listing(...)`, or `Notifications(...)` for a bucket of `s3://` that
                sends its events to a queue.
            storage_options: to reach the URL; see `Pipeline`.
            on_change: when a file that was ingested is another one now: `"ignore"` (it is noted), `"fail"`, `"append"`
                (the new version is read as a new file), or `"replace"` (its rows come in place of the old ones, in one
                epoch; only with `materialize`).
            on_bad_record: `"quarantine"` keeps a record that cannot be read and goes on, `"fail"` ends the run.
            schema_evolution: `"strict"` leaves columns out that the schema does not have, `"add_columns"` adds them to
                it, `"widen"` keeps numbers in the widest type of their kind.
            metadata: columns that tell where each row is from: any of `path`, `size`, `last_modified`, `etag`, `row`
                and `epoch`; they are called `_path`, `_size` and so on.
            order: `"name"`, or `"last_modified"` (and by name where times are equal): files are read one after the
                other, by one reader.  Whenever a file is opened, no file comes before it in this order of all that
                the listings that have ended, and the events that have come, had shown; one that is found later is read
                next.  (A run that looks for a file that kills it reads by suspicion.)  None reads many at a time.
            materialize: keep all rows of the source, with all columns, in a Lance dataset of their own; see
                `Snapshot.rows`.  It is decided when the source is first declared.

        Raises:
            SettingsError: an argument cannot be used, or the name is taken.
            SchemaError: the schema cannot be read or cannot be carried to Spark.
        """
        _check_name("source", name)
        if name in self._sources:
            raise SettingsError(f"source {name} is declared twice; give the second another name")
        location = Location(os.fspath(url), storage_options or {})
        if storage_options is None and location.scheme == self.root.scheme:
            location = replace(location, storage_options=self.root.storage_options)
        PathFilter(pattern)
        self._check_queue(name, discovery)
        self._sources[name] = SourceDefinition(
            name=name,
            location=location,
            format=_format(name, format),
            pattern=pattern,
            schema=None if schema is None else safe_schema(parse_schema(schema) if isinstance(schema, str) else schema),
            discovery=discovery,
            policy=FilePolicy(on_change=on_change, on_bad_record=on_bad_record),
            schema_evolution=schema_evolution,
            metadata=tuple(metadata),
            order=order,
            materialize=materialize,
        )

    def _check_queue(self, name: str, discovery: Discovery) -> None:
        """Refuses a second source on one queue: each would take messages that are the other's."""
        if not isinstance(discovery, Notifications):
            return
        for other in self._sources.values():
            if isinstance(other.discovery, Notifications) and other.discovery.queue_url == discovery.queue_url:
                raise SettingsError(
                    f"source {name}: source {other.name} reads the queue {discovery.queue_url} already, and two would "
                    "take each other's messages; give each a queue of its own (SNS sends the events to both), or let "
                    f"the views of both read {other.name}"
                )

    @overload
    def view(self, name_or_function: str, query: str, /, **options: Unpack[ViewOptions]) -> None: ...

    @overload
    def view(self, name_or_function: _Function, /, **options: Unpack[ViewOptions]) -> _Function: ...

    @overload
    def view(self, /, **options: Unpack[ViewOptions]) -> Callable[[_Function], _Function]: ...

    def view(
        self,
        name_or_function: str | _Function | None = None,
        query: str | None = None,
        /,
        **options: Unpack[ViewOptions],
    ) -> _Function | Callable[[_Function], _Function] | None:
        """Declares a view: by name and SQL, or as a decorator of a function.

        A function is named like its view, and its parameters are sources: Spark DataFrames in, a Spark DataFrame out.
        It is called once per start, with empty frames.  A view that is declared when its sources have been read
        already catches up, beside the others, and is shown when it is complete.

        Args:
            name_or_function: the name, or the function; neither for a decorator with options.
            query: Spark SQL over the sources.
            options: `on_full="allow"` lets a view that cannot be maintained epoch by epoch be recomputed as a whole,
                at most every `refresh_interval_s` seconds; `replace=True` builds it anew when the root has another view
                of the name; `on_missing="allow"` shows a backfill though files that were ingested are gone.

        Raises:
            ViewError: the name is taken or cannot be used, or the function's parameters are no plain names.
        """
        if name_or_function is None:
            return partial(self._declared, options)
        if not isinstance(name_or_function, str):
            return self._declared(options, name_or_function)
        self._add_view(ViewDefinition.of(name_or_function, query, **options))
        return None

    def _declared(self, options: ViewOptions, function: _Function) -> _Function:
        self._add_view(ViewDefinition.of(function, None, **options))
        return function

    def _add_view(self, definition: ViewDefinition) -> None:
        if definition.name in self._views:
            raise ViewError(f"view {definition.name} is declared twice; give the second another name")
        self._views[definition.name] = definition

    def run(self, until: str | None = None, *, takeover: bool = False) -> RunReport:
        """Runs in the foreground.

        In the main thread SIGINT (Ctrl-C) and SIGTERM end it after a last epoch, and the report is returned; a second
        signal ends the process at once.

        Args:
            until: `"caught_up"` to end when every file that was there is committed; None runs for ever.
            takeover: take the root over from an owner that still seems to live.

        Raises:
            UsageError: the declaration does not fit the root, or a view cannot be maintained.
            StorageError: a bucket cannot be reached.
            OwnedError: another process runs on this root.
            FencedError: another process has taken the root over.
            RunFailedError: a part of the run died; start it again.
        """
        return run_in_foreground(partial(self.start, takeover=takeover), until)

    def start(self, *, takeover: bool = False) -> Run:
        """Runs in the background.  Arguments and errors as `run`; those of the run itself are raised by `Run.wait`."""
        configure_default()
        definition = self._definition()
        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="check") as threads:
            list(threads.map(lambda source: ObjectStore(source.location).check(), definition.sources))
        root = LanceRoot(self.root, self._clock)
        check(definition, root)
        for source in definition.sources:
            if isinstance(source.discovery, Notifications):
                MessageQueue(source.discovery, source.location).claim(self.root.url)
        ownership = Ownership(self.root, self._clock, run_id=new_run_id(self._clock), pipeline=self.name)
        ownership.acquire(takeover=takeover)
        try:
            control = RunControl(
                definition=definition,
                views=tuple(self._views.values()),
                settings=self.settings,
                ownership=ownership,
                replaces=current_head(root),
                clock=self._clock,
            )
            run = Run(definition, control)
            ownership.tell(lambda: run.status().to_json())
            control.observer = RunObserver.of(self.name, run.status, self._clock)
            return run
        except BaseException:
            ownership.release("failed")
            raise

    def explain(self) -> tuple[ViewExplanation, ...]:
        """The class of each view, why, what it stores, what an epoch costs and touches.

        The views are analysed by the SparkSession of this process, or a local one.

        Raises:
            UsageError, StorageError: as `run`; a view that cannot be maintained is `refused` instead.
        """
        configure_default()
        return explain(self._definition(), tuple(self._views.values()), self.settings.spark, self._clock)

    def dry_run(
        self, *, prices: Prices | None = None, on_sources: Callable[[DryRun], None] = lambda found: None
    ) -> DryRun:
        """What a run would do and, in requests, cost.  Writes nothing, and works beside a running pipeline.

        Each source is listed once; of one without a schema the first files are read, and of one with large Parquet
        files a footer.  The views are analysed by the SparkSession of this process, or a local one.

        Args:
            prices: of requests; by default AWS's list prices.
            on_sources: is called with what is known before Spark starts, without views.

        Raises:
            UsageError: the declaration does not fit the root.  A view that is refused is so in the answer.
            StorageError: the root cannot be read.  What is wrong with a source is in the answer.
            RunFailedError: Spark cannot be started.
        """
        configure_default()
        return dry_run(
            self._definition(),
            tuple(self._views.values()),
            spark_settings=self.settings.spark,
            prices=prices or Prices(),
            on_sources=on_sources,
            clock=self._clock,
        )

    def _definition(self) -> PipelineDefinition:
        if not self._sources:
            raise SettingsError(f"pipeline {self.name} has no source; declare one with pipeline.source(...)")
        if not self._views:
            raise ViewError(f"pipeline {self.name} has no view; declare one with pipeline.view(...)")
        for view in self._views.values():
            for parameter in view.parameters:
                if parameter not in self._sources:
                    raise ViewError(
                        f"view {view.name} names the source {parameter}, which is not declared; "
                        f"there are {', '.join(sorted(self._sources))}"
                    )
        return PipelineDefinition(
            name=self.name,
            root=self.root,
            sources=tuple(self._sources.values()),
            views={view.name: view.may_read(self._sources) for view in self._views.values()},
            ansi=self.settings.spark.ansi,
            barrier=self.settings.barrier,
            fetch=self.settings.fetch,
            retention=self.settings.retention,
            placement=self.settings.placement,
        )


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{kind} {name!r}: a name has letters, digits and underscores, with a letter first")


def _is_format(given: Any) -> bool:
    return is_dataclass(given) and callable(getattr(given, "reader", None))


def _format(source: str, format: str | Format) -> Format:
    if isinstance(format, str):
        try:
            made: Format = format_type(format)()
        except SettingsError as error:
            raise SettingsError(f"source {source}: {error}") from None
        return made
    if isinstance(format, (Parquet, Csv, Json, Text)) or _is_format(format):
        return format
    raise SettingsError(
        f"source {source}: {format!r} is no format; give its name, or an object as Csv(), or one of your own with a "
        "method reader(limits)"
    )
