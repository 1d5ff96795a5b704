"""The choice of a backfill's history: stored rows if all its sources have them, else the files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from actors.sources.pipeline_definition import PipelineDefinition
from slackwater.backfill.ledger_history import LedgerHistory
from slackwater.backfill.stored_history import StoredHistory
from slackwater.reading.recorded_source import RecordedSource, recorded_sources
from spark_bridge.ingest.history import History, NotResumableError
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock
from state.errors import NotFoundError
from state.lance.lance_root import LanceRoot
from state.store.store import StateStore
from state.tables.records import EpochRecord, ViewVersion
from state.tables.stored_rows import stored_rows_name


def view_history(
    definition: PipelineDefinition,
    clock: Clock,
    schemas: Mapping[str, pa.Schema | None],
    plan: ViewPlan,
    since: int,
    epoch: int,
    progress: str | None,
) -> History:
    """The rows of a view's sources that were ingested up to an epoch, by the last record up to that epoch.

    The rows of a file up to an epoch are its first rows, so the rows since then are the others.  Stored rows are only
    appended, unless files are corrected or fragments compacted.

    Args:
        clock: the clock of the handle on the store.
        schemas: source → its present schema.
        plan: the plan of the view.
        since: the epoch whose rows the view has; 0 for none.
        epoch: the last epoch of the history.
        progress: the position to continue from; None for the start.

    Raises:
        NotFoundError: the store keeps no such record.
        NotResumableError: the store does not keep the epoch `since`, or rows that the view has were corrected or
            compacted.
        StorageError: the store cannot be read.
    """
    store = LanceRoot(definition.root, clock).open(read_only=True)
    records = store.epochs(before=epoch + 1, last=1)
    if not records:
        raise NotFoundError(
            f"view {plan.name!r}: its backfill needs epoch {epoch} of {definition.root}, which is no longer retained: "
            "drop the view, and declare it again"
        )
    sources = [replace(each, schema=schemas[each.name]) for each in definition.sources if each.name in plan.sources]
    [record] = records
    before = record_of(store, since)
    if all(source.materialize for source in sources):
        names = {source.name: stored_rows_name(source.name) for source in sources}
        stored = {source: record.views[name] for source, name in names.items() if name in record.views}
        known = {name: schema for name, schema in schemas.items() if schema is not None}
        had = (
            {} if before is None else {name: before.views[each] for name, each in names.items() if each in before.views}
        )
        if before is not None:
            _require_stored(recorded_sources(sources, store, before.state_version), had)
        return StoredHistory(definition.root, stored, known, plan.columns, progress, had)
    recorded = recorded_sources(sources, store, record.state_version)
    if before is not None:
        had_files = recorded_sources(sources, store, before.state_version)
        recorded = {name: rows_after(each, had_files[name]) for name, each in recorded.items()}
    # The limit of bad records was applied at ingestion.
    limits = replace(definition.fetch.limits, max_bad_records=sys.maxsize)
    return LedgerHistory(list(recorded.values()), plan.columns, replace(definition.fetch, limits=limits), progress)


def record_of(store: StateStore, since: int) -> EpochRecord | None:
    """The record of the epoch whose rows a view has; None without such an epoch."""
    if not since:
        return None
    # A tag may retain an older epoch, with fewer rows.
    records = [each for each in store.epochs(before=since + 1, last=1) if each.epoch == since]
    if not records:
        raise NotResumableError(f"epoch {since}, its last epoch, is no longer retained")
    return records[0]


def _require_stored(had: Mapping[str, RecordedSource], stored: Mapping[str, ViewVersion]) -> None:
    """Refuses an epoch whose rows were not stored: they may be stored since."""
    if apart := [name for name, source in had.items() if source.files and name not in stored]:
        raise NotResumableError(f"the rows of source {apart[0]} were not stored in its last epoch")


def rows_after(now: RecordedSource, had: RecordedSource) -> RecordedSource:
    """A source with the rows of its files that an earlier epoch does not have."""
    rows = {each.file: each.rows for each in had.files}
    present = {each.file: each.rows for each in now.files}
    for file, count in rows.items():
        if present.get(file, 0) < count:
            raise NotResumableError(f"{file.path} of source {now.definition.name} was replaced or removed")
    files = (replace(each, first=rows.get(each.file, 0)) for each in now.files)
    return replace(now, files=tuple(each for each in files if each.first < each.rows))
