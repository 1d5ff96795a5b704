"""A root with a ledger and a queue of files, and the recovery of an attempt from it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from actors.fetching.file_progress import Ending, FileProgress
from actors.formats.options import Parquet
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import RecoveredState
from actors.recovery.recovery import recover as recover_root
from actors.settings import BarrierSettings, FetchSettings
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.records import EpochCounts, EpochSeconds

SCHEMA = pa.schema([("x", pa.int64())])


def definition(root: Path, *sources: str, schema: pa.Schema | None = SCHEMA) -> PipelineDefinition:
    return PipelineDefinition(
        name="p",
        root=Location(str(root)),
        sources=tuple(
            SourceDefinition(name=name, location=Location(f"/raw/{name}"), format=Parquet(), schema=schema)
            for name in sources
        ),
        views={"v": frozenset(sources)},
        ansi=False,
        barrier=BarrierSettings(),
        fetch=FetchSettings(),
    )


def root(made: PipelineDefinition) -> LanceRoot:
    return LanceRoot(made.root, SystemClock())


def recover(made: PipelineDefinition, plan: AttemptPlan = AttemptPlan("run")) -> RecoveredState:
    return recover_root(made, plan, root(made))


def commit(made: PipelineDefinition, *files: tuple[FileProgress, Ending | None]) -> None:
    """Commits one epoch: files with an ending go to the ledger, the others to the queue."""
    recovered = recover(made)
    delta = DeltaBuilder()
    for progress, ending in files:
        source, path, version = progress.key
        delta.put("seen", path_fingerprint(source, path), 0, source=source, path=path, version=version)
        if ending is None:
            delta.put("queue", progress.state_key, 0, **progress.queue_row())
        else:
            row = progress.ledger_row(ending, done_epoch=9, changed_epoch=None)
            delta.put("ledger", progress.state_key, 0, **row)
    recovered.store.commit(
        epoch=recovered.store.head.epoch + 1,
        delta=delta.build(),
        views={},
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )
