"""The choice of a backfill's history: stored rows if all its sources have them, else the files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from actors.sources.pipeline_definition import PipelineDefinition
from slackwater.backfill.ledger_history import LedgerHistory
from slackwater.backfill.stored_history import StoredHistory
from slackwater.reading.recorded_source import recorded_sources
from spark_bridge.ingest.history import History
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock
from state.errors import NotFoundError
from state.lance.lance_root import LanceRoot
from state.tables.stored_rows import stored_rows_name


def view_history(
    definition: PipelineDefinition,
    clock: Clock,
    schemas: Mapping[str, pa.Schema | None],
    plan: ViewPlan,
    epoch: int,
    progress: str | None,
) -> History:
    """The rows of a view's sources that were ingested up to an epoch, by the last record up to that epoch.

    Args:
        clock: the clock of the handle on the store.
        schemas: source → its present schema.
        plan: the plan of the view.
        epoch: the last epoch of the history.
        progress: the position to continue from; None for the start.

    Raises:
        NotFoundError: the store keeps no such record.
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
    if all(source.materialize for source in sources):
        names = {source.name: stored_rows_name(source.name) for source in sources}
        stored = {source: record.views[name] for source, name in names.items() if name in record.views}
        known = {name: schema for name, schema in schemas.items() if schema is not None}
        return StoredHistory(definition.root, stored, known, plan.columns, progress)
    recorded = recorded_sources(sources, store, record.state_version)
    # The limit of bad records was applied at ingestion.
    limits = replace(definition.fetch.limits, max_bad_records=sys.maxsize)
    return LedgerHistory(list(recorded.values()), plan.columns, replace(definition.fetch, limits=limits), progress)
