"""Slackwater keeps SQL views up to date over the files that arrive in an object store.

    import slackwater as sw

    pipeline = sw.Pipeline("flights", root="s3://lake/flights")
    pipeline.source("flights", "s3://raw/flights/", format="parquet")
    pipeline.view("by_carrier", "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier")
    report = pipeline.run(until="caught_up")

    sw.open("s3://lake/flights").snapshot().view("by_carrier").to_arrow()

Data flow: a `Pipeline` declares sources and views → `run` or `start` hosts the actors on Ray and the views on Spark,
and returns a `RunReport` or a `Run` → every epoch is one commit at the root → `open` gives a `Store`, whose `Snapshot`
has the ledger and all views of one epoch.

Invariants:

* Reading (`open`) needs no Ray, no Spark and no Java.
* A name is imported at its first use (PEP 562): `import slackwater` alone loads none of them.
* Every expected error is a `SlackwaterError`; `state/errors.py` has the tree.

    pipeline.py    Pipeline: sources, views, run, start, explain, dry_run
    settings.py    Settings, and formats.py, the interface of a custom format
    expect.py      expectations over a view as a whole
    tables/        static tables, which come with a pipeline
    running/       Run: attempts, recovery, requests of the user, Spark
    backfill/      the earlier rows that a backfill reads
    branching/     branch, merge, drop_branch: roots that share the files of an epoch
    places/        the places of a pipeline, and which of them may overlap
    planning/      DryRun, ViewExplanation and DefinitionChange: the work of a run, before it starts
    reading/       Store, Snapshot, View: reading a root
    after_commit/  files that are deleted, moved or tagged when their rows are committed
    publishing/    a view as a Delta or Iceberg table, or as Parquet files: once, or beside a run
    confinement/   worker processes for SQL that others wrote
    verification/  Store.verify: every view computed again and compared
    watching/      the state of a run, observed through its root
    commands/      requests from other processes to the owner of a root
    alerts/        notices when a state of a run begins and ends
    lineage/       events of OpenLineage about runs, views and publications
    observability/ metrics for Prometheus and Grafana, spans for OpenTelemetry
    status/        RunStatus, RunReport and Trace, as values
    doctor/        `slackwater doctor`: checks of a machine, a store and a pipeline
    cli/           the command `slackwater`; terminal/, its output
    ui/            `slackwater ui`: a web page about a root
    demo/          `slackwater demo`
    testing/       S3 and SQS servers, and proxies with faults
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
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
    from slackwater import expect
    from slackwater.after_commit.actions import Delete, Move, Tag
    from slackwater.alerts.alert import Alert
    from slackwater.branching.branch import branch, drop_branch
    from slackwater.branching.merge import merge
    from slackwater.branching.merge_steps import Merged
    from slackwater.lineage.open_lineage import OpenLineage
    from slackwater.pipeline import Pipeline
    from slackwater.planning.definition_change import DefinitionChange
    from slackwater.planning.dry_run.dry_run import DryRun
    from slackwater.planning.dry_run.prices import Prices
    from slackwater.planning.explanation import ViewExplanation
    from slackwater.publishing.publication import Publication
    from slackwater.publishing.targets import Delta, Iceberg, ParquetFiles
    from slackwater.reading.changes.root_difference import ViewDifference
    from slackwater.reading.changes.view_changes import ViewChange
    from slackwater.reading.snapshot import Snapshot
    from slackwater.reading.store import Store, open
    from slackwater.reading.story import Story
    from slackwater.reading.tables.page import Page
    from slackwater.reading.view import View
    from slackwater.running.run import Run
    from slackwater.settings import RaySettings, Settings
    from slackwater.status.run_status import (
        AfterCommitStatus,
        PublicationStatus,
        RunReport,
        RunStatus,
        SourceStatus,
        StartupStep,
        ViewStatus,
    )
    from slackwater.status.trace import Trace
    from spark_bridge.engine.session.settings import SparkSettings
    from state.errors import (
        AccessDeniedError,
        BadInputError,
        BucketNotFoundError,
        CommandRefusedError,
        CommandUnansweredError,
        CommitRefusedError,
        CommitUnknownError,
        DamagedStoreError,
        DefinitionChangedError,
        EpochExpiredError,
        EpochNotFoundError,
        FencedError,
        NodeLostError,
        NotFoundError,
        NotIncrementalError,
        OwnedError,
        ProtocolError,
        PublishError,
        QueueNotFoundError,
        RemovalRefusedError,
        RootMismatchError,
        RowsLostError,
        RunFailedError,
        SchemaError,
        SettingsError,
        SlackwaterError,
        SparkLostError,
        SparkNotStartedError,
        StorageError,
        StorageFullError,
        StorageUnavailableError,
        StoreCapabilityError,
        StoreNotFoundError,
        UsageError,
        ViewError,
        ViewFailedError,
        ViewNotFoundError,
    )
    from state.tables.epoch_trace import Span
    from state.upkeep.retention import RetentionSettings, Thinning

_MODULES = {
    "ActorResources": "actors.sources.placement",
    "AfterCommitStatus": "slackwater.status.run_status",
    "Alert": "slackwater.alerts.alert",
    "Avro": "actors.formats.options",
    "BarrierSettings": "actors.settings",
    "CacheSettings": "actors.settings",
    "Csv": "actors.formats.options",
    "Debezium": "actors.formats.options",
    "DefinitionChange": "slackwater.planning.definition_change",
    "Delete": "slackwater.after_commit.actions",
    "Delta": "slackwater.publishing.targets",
    "DryRun": "slackwater.planning.dry_run.dry_run",
    "FetchSettings": "actors.settings",
    "Iceberg": "slackwater.publishing.targets",
    "Json": "actors.formats.options",
    "Listing": "actors.sources.discovery",
    "Merged": "slackwater.branching.merge_steps",
    "Move": "slackwater.after_commit.actions",
    "Notifications": "actors.sources.discovery",
    "OpenLineage": "slackwater.lineage.open_lineage",
    "Orc": "actors.formats.options",
    "Page": "slackwater.reading.tables.page",
    "Parquet": "actors.formats.options",
    "ParquetFiles": "slackwater.publishing.targets",
    "Pipeline": "slackwater.pipeline",
    "PlacementSettings": "actors.sources.placement",
    "Prices": "slackwater.planning.dry_run.prices",
    "Publication": "slackwater.publishing.publication",
    "PublicationStatus": "slackwater.status.run_status",
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
    "Span": "state.tables.epoch_trace",
    "SparkSettings": "spark_bridge.engine.session.settings",
    "StartupStep": "slackwater.status.run_status",
    "Store": "slackwater.reading.store",
    "Story": "slackwater.reading.story",
    "Tag": "slackwater.after_commit.actions",
    "Text": "actors.formats.options",
    "Thinning": "state.upkeep.retention",
    "Trace": "slackwater.status.trace",
    "View": "slackwater.reading.view",
    "ViewChange": "slackwater.reading.changes.view_changes",
    "ViewDifference": "slackwater.reading.changes.root_difference",
    "ViewExplanation": "slackwater.planning.explanation",
    "ViewStatus": "slackwater.status.run_status",
    "branch": "slackwater.branching.branch",
    "drop_branch": "slackwater.branching.branch",
    "merge": "slackwater.branching.merge",
    "open": "slackwater.reading.store",
}

__all__ = [
    "AccessDeniedError",
    "ActorResources",
    "AfterCommitStatus",
    "Alert",
    "Avro",
    "BadInputError",
    "BarrierSettings",
    "BucketNotFoundError",
    "CacheSettings",
    "CommandRefusedError",
    "CommandUnansweredError",
    "CommitRefusedError",
    "CommitUnknownError",
    "Csv",
    "DamagedStoreError",
    "Debezium",
    "DefinitionChange",
    "DefinitionChangedError",
    "Delete",
    "Delta",
    "DryRun",
    "EpochExpiredError",
    "EpochNotFoundError",
    "FencedError",
    "FetchSettings",
    "Iceberg",
    "Json",
    "Listing",
    "Merged",
    "Move",
    "NodeLostError",
    "NotFoundError",
    "NotIncrementalError",
    "Notifications",
    "OpenLineage",
    "Orc",
    "OwnedError",
    "Page",
    "Parquet",
    "ParquetFiles",
    "Pipeline",
    "PlacementSettings",
    "Prices",
    "ProtocolError",
    "Publication",
    "PublicationStatus",
    "PublishError",
    "QueueNotFoundError",
    "RaySettings",
    "ReadLimits",
    "RecoverySettings",
    "RemovalRefusedError",
    "RequestSettings",
    "RetentionSettings",
    "RootMismatchError",
    "RowsLostError",
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
    "StoreCapabilityError",
    "StoreNotFoundError",
    "Story",
    "Tag",
    "Text",
    "Thinning",
    "Trace",
    "UsageError",
    "View",
    "ViewChange",
    "ViewDifference",
    "ViewError",
    "ViewExplanation",
    "ViewFailedError",
    "ViewNotFoundError",
    "ViewStatus",
    "__version__",
    "branch",
    "drop_branch",
    "expect",
    "merge",
    "open",
]


def __getattr__(name: str) -> Any:
    if name == "expect":
        return import_module("slackwater.expect")
    module = _MODULES.get(name, "state.errors" if name in __all__ else None)
    if module is None:
        raise AttributeError(f"module 'slackwater' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
