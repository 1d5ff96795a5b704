"""Slackwater keeps SQL views up to date over the files that arrive in an object store.

    import slackwater as sw

    pipeline = sw.Pipeline("flights", root="s3://lake/flights")
    pipeline.source("flights", "s3://raw/flights/", format="parquet")
    pipeline.view("by_carrier", "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier")
    report = pipeline.run(until="caught_up")

    sw.open("s3://lake/flights").snapshot().view("by_carrier").to_arrow()

Data flow: a `Pipeline` declares sources and views → `run` or `start` hosts the actors on Ray and the views on Spark,
and returns a `RunReport` or a `Run` → every epoch is one commit at the root → `open` gives a `Store`, whose `Snapshot`
of an epoch holds the ledger and every view at that one moment.

Invariants:

* Reading (`open`) needs no Ray, no Spark and no Java.
* A name is imported when it is first used (PEP 562): `import slackwater` alone loads none of them.
* Every error on purpose is a `SlackwaterError`; see `state/errors.py` for the tree.

    pipeline.py   Pipeline: sources, views, run, start, explain, dry_run
    run.py        Run: a run in the background
    run_control.py its control thread: attempts, and recovery between them
    attempt.py    one attempt: a coordinator with its actors, and the thread that takes epochs to Spark
    materializer_loop.py that thread
    view_history.py what a backfill reads: stored_history.py or ledger_history.py, up to a history_position.py
    spark_application.py the Spark application of a run, replaced when it is lost
    run_requests.py what is asked of a run: pause, resume, throttle, stop, retry
    corrections.py and which files it reads again or forgets
    command_loop.py what other processes ask of it, through the store
    run_status.py RunStatus, RunReport: what a run says of itself; startup_steps.py the steps of its start
    flow_meter.py how fast it is, and where it waits
    run_events.py what happens in it, for programs
    run_progress.py how far its sources are; discovery_totals.py and how their files are found
    observability/ what it shows to Prometheus, Grafana and OpenTelemetry
    counted.py    numbers of things, in words
    owner_watch.py whether the run that a root names is alive
    root_watcher.py a run watched from elsewhere; stored_status.py what the store alone tells of it
    store.py      open, Store: epochs, files, quarantine, why, owner, watch
    file_table.py the table of files, quarantine_table.py that of bad records, and so epoch_table.py, source_table.py,
                  view_table.py
    file_search.py files in a ledger of millions, a page.py at a time
    source_discovery.py how the files of a source are found, as the owner and the store say
    dry_run/      DryRun: what a run would do and cost; shown_schema.py: the schema that files show
    explanation.py ViewExplanation: how a view is kept up to date; rows_touched.py: by how much an epoch changes it
    snapshot.py   Snapshot: one epoch
    story.py      what happened to one object
    trace.py      Trace: where the time of one epoch went
    view.py       a view at one epoch: to_arrow, to_pandas, to_polars, to_spark, to_ray, lance, get, scan
    selection.py  which columns and rows of it are asked for
    view_reader.py one version of its dataset, as all of these read it
    snapshot_sql.py SQL over the views of an epoch; view_relation.py how DuckDB scans one of them
    view_changes.py a view that is followed; view_difference.py what two versions of it differ in
    verification/ Store.verify: every view, computed again and compared
    settings.py   Settings
    foreground.py a run that its process waits for, and the signals that end it
    shipped_code.py what the workers of a cluster import
    commands.py   ask: a command to the owner of a root, or done here if there is none
    retry.py      which quarantined files may be read again
    maintenance.py as the owner of a root that nobody runs on
    json_values.py values for programs that read JSON
    cli/          the command `slackwater`
    ui/           `slackwater ui`: a root as a web page
    demo/         `slackwater demo`
    testing/      the S3 and SQS servers and the guards that our tests use
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from actors.formats.options import Csv, Json, Parquet, Text
    from actors.settings import (
        BarrierSettings,
        CacheSettings,
        FetchSettings,
        ReadLimits,
        RecoverySettings,
        RequestSettings,
    )
    from actors.sources.discovery import Listing, Notifications
    from actors.sources.placement import ActorResources, PlacementSettings
    from slackwater.pipeline import Pipeline
    from slackwater.planning.dry_run.dry_run import DryRun
    from slackwater.planning.dry_run.prices import Prices
    from slackwater.planning.explanation import ViewExplanation
    from slackwater.reading.changes.view_changes import ViewChange
    from slackwater.reading.snapshot import Snapshot
    from slackwater.reading.store import Store, open
    from slackwater.reading.story import Story
    from slackwater.reading.tables.page import Page
    from slackwater.reading.view import View
    from slackwater.running.run import Run
    from slackwater.settings import RaySettings, Settings
    from slackwater.status.run_status import RunReport, RunStatus, SourceStatus, StartupStep, ViewStatus
    from slackwater.status.trace import Trace
    from spark_bridge.session.settings import SparkSettings
    from state.errors import (
        AccessDeniedError,
        BadInputError,
        BucketNotFoundError,
        CommandRefusedError,
        CommandUnansweredError,
        CommitRefusedError,
        CommitUnknownError,
        DefinitionChangedError,
        EpochExpiredError,
        EpochNotFoundError,
        FencedError,
        NotFoundError,
        NotIncrementalError,
        OwnedError,
        ProtocolError,
        QueueNotFoundError,
        RootMismatchError,
        RunFailedError,
        SchemaError,
        SettingsError,
        SlackwaterError,
        SparkLostError,
        SparkNotStartedError,
        StorageError,
        StorageFullError,
        StorageUnavailableError,
        StoreNotFoundError,
        UsageError,
        ViewError,
        ViewNotFoundError,
    )
    from state.tables.epoch_trace import Span
    from state.upkeep.retention import RetentionSettings, Thinning

_MODULES = {
    "ActorResources": "actors.sources.placement",
    "BarrierSettings": "actors.settings",
    "CacheSettings": "actors.settings",
    "Csv": "actors.sources.source",
    "DryRun": "slackwater.planning.dry_run.dry_run",
    "FetchSettings": "actors.settings",
    "Json": "actors.sources.source",
    "Listing": "actors.sources.source",
    "Notifications": "actors.sources.source",
    "Page": "slackwater.reading.tables.page",
    "Parquet": "actors.sources.source",
    "Pipeline": "slackwater.pipeline",
    "PlacementSettings": "actors.sources.placement",
    "Prices": "slackwater.planning.dry_run.prices",
    "RaySettings": "slackwater.settings",
    "ReadLimits": "actors.settings",
    "RecoverySettings": "actors.settings",
    "RequestSettings": "actors.settings",
    "RetentionSettings": "state.upkeep.retention",
    "Run": "slackwater.running.run",
    "RunReport": "slackwater.status.run_status",
    "RunStatus": "slackwater.status.run_status",
    "Settings": "slackwater.settings",
    "Snapshot": "slackwater.reading.snapshot",
    "SourceStatus": "slackwater.status.run_status",
    "SparkSettings": "spark_bridge.session.settings",
    "StartupStep": "slackwater.status.run_status",
    "Store": "slackwater.reading.store",
    "Story": "slackwater.reading.story",
    "Span": "state.tables.epoch_trace",
    "Text": "actors.sources.source",
    "Thinning": "state.upkeep.retention",
    "Trace": "slackwater.status.trace",
    "View": "slackwater.reading.view",
    "ViewChange": "slackwater.reading.changes.view_changes",
    "ViewExplanation": "slackwater.planning.explanation",
    "ViewStatus": "slackwater.status.run_status",
    "open": "slackwater.reading.store",
}

__all__ = [
    "AccessDeniedError",
    "ActorResources",
    "BadInputError",
    "BarrierSettings",
    "BucketNotFoundError",
    "CacheSettings",
    "CommandRefusedError",
    "CommandUnansweredError",
    "CommitRefusedError",
    "CommitUnknownError",
    "Csv",
    "DefinitionChangedError",
    "DryRun",
    "EpochExpiredError",
    "EpochNotFoundError",
    "FencedError",
    "FetchSettings",
    "Json",
    "Listing",
    "NotFoundError",
    "NotIncrementalError",
    "Notifications",
    "OwnedError",
    "Page",
    "Parquet",
    "Pipeline",
    "PlacementSettings",
    "Prices",
    "ProtocolError",
    "QueueNotFoundError",
    "RaySettings",
    "ReadLimits",
    "RecoverySettings",
    "RequestSettings",
    "RetentionSettings",
    "RootMismatchError",
    "Run",
    "RunFailedError",
    "RunReport",
    "RunStatus",
    "SchemaError",
    "Settings",
    "SettingsError",
    "SlackwaterError",
    "Snapshot",
    "SourceStatus",
    "Span",
    "SparkLostError",
    "SparkNotStartedError",
    "SparkSettings",
    "StartupStep",
    "StorageError",
    "StorageFullError",
    "StorageUnavailableError",
    "Store",
    "StoreNotFoundError",
    "Story",
    "Text",
    "Thinning",
    "Trace",
    "UsageError",
    "View",
    "ViewChange",
    "ViewError",
    "ViewExplanation",
    "ViewNotFoundError",
    "ViewStatus",
    "__version__",
    "open",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name, "state.errors" if name in __all__ else None)
    if module is None:
        raise AttributeError(f"module 'slackwater' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
