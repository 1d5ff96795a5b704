from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from state.clock import ManualClock
from state.tables.catalog import Catalog, CatalogPipeline, put_pipeline, put_source, put_unmatched, put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogSource, CatalogView, EpochCounts, EpochSeconds, UnmatchedColumn
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore

PIPELINE = CatalogPipeline("flights", ansi=True)
SOURCE = CatalogSource("raw", '{"url": "s3://raw"}', pa.schema([("a", pa.int64())]).serialize().to_pybytes())
EMPTY_SOURCE = CatalogSource("empty", "{}", None)
VIEW = CatalogView(
    "totals", "aggregate", "SELECT ...", "plan", ("raw", "empty"), ("user",), 5, visible={"raw": ("a",), "empty": ()}
)
LEFT_OUT = UnmatchedColumn("raw", "new", "dt=1/a.json", 7)
GLOBAL_VIEW = CatalogView("all", "aggregate", "SELECT ...", "plan", ("raw",), (), 4, stopped_epoch=9, error="too wet")


def committed(*deltas: DeltaBuilder) -> Catalog:
    store = MemoryStateStore.create(MemoryDisk(), ManualClock())
    for epoch, delta in enumerate(deltas, 1):
        store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return Catalog.of(store.scan("catalog"))


def test_what_was_declared_comes_back() -> None:
    delta = DeltaBuilder()
    put_pipeline(delta, PIPELINE)
    for source in (SOURCE, EMPTY_SOURCE):
        put_source(delta, source)
    for view in (VIEW, GLOBAL_VIEW):
        put_view(delta, view)
    put_unmatched(delta, LEFT_OUT)
    catalog = committed(delta)
    sources, views = {"empty": EMPTY_SOURCE, "raw": SOURCE}, {"all": GLOBAL_VIEW, "totals": VIEW}
    assert catalog == Catalog(PIPELINE, sources, views, (LEFT_OUT,))


def test_a_later_definition_replaces_an_earlier_one_field_by_field() -> None:
    first, second = DeltaBuilder(), DeltaBuilder()
    put_source(first, EMPTY_SOURCE)
    put_view(first, GLOBAL_VIEW)
    put_source(second, replace(EMPTY_SOURCE, schema=b"now known"))
    put_view(second, replace(GLOBAL_VIEW, stopped_epoch=None))
    catalog = committed(first, second)
    assert catalog.sources["empty"].schema == b"now known"
    assert catalog.views["all"].stopped_epoch is None


def test_an_empty_store_has_an_empty_catalog() -> None:
    assert committed() == Catalog()
