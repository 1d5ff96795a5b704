"""A wrong place is an error of the first start; a source that a run has read before does not stop a later start."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from actors.recovery.catalog_changes import CatalogChanges
from slackwater.pipeline import Pipeline
from slackwater.places.source_access import check_stores, committed_sources
from state.clock import SystemClock
from state.errors import BucketNotFoundError
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.tables.catalog import Catalog
from state.tables.records import EpochCounts, EpochSeconds


def declared(place: Path, *sources: str) -> Pipeline:
    pipeline = Pipeline("shop", place / "root")
    for name in sources:
        pipeline.source(name, place / name, format="csv", schema="n int")
    pipeline.view("v", f"SELECT n FROM {sources[0]}")
    return pipeline


def test_a_source_that_no_run_has_read_must_be_accessible(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    pipeline = declared(tmp_path, "orders", "clicks")
    committed = committed_sources(LanceRoot(pipeline.root, SystemClock()))
    assert committed == frozenset() and not (tmp_path / "root").exists()
    with pytest.raises(BucketNotFoundError, match=str(tmp_path / "clicks")):
        check_stores(pipeline._definition().sources, committed)


def test_a_source_of_the_root_that_is_refused_does_not_stop_a_start(tmp_path: Path) -> None:
    pipeline = declared(tmp_path, "orders")
    store = LanceStateStore.create(pipeline.root, SystemClock())
    changes = CatalogChanges(Catalog())
    changes.declare(pipeline._definition(), 0)
    store.take_over()
    store.commit(epoch=1, delta=changes.take_delta([]), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    committed = committed_sources(LanceRoot(pipeline.root, SystemClock()))
    assert committed == {"orders"}
    with capture_logs() as logs:
        check_stores(pipeline._definition().sources, committed)
    assert [(each["event"], each["source"]) for each in logs] == [
        ("a source is refused, and the run starts without it", "orders")
    ]
    (tmp_path / "orders").mkdir()
    with pytest.raises(BucketNotFoundError, match=str(tmp_path / "clicks")):
        check_stores(declared(tmp_path, "orders", "clicks")._definition().sources, committed)


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("id\n1\n")
    pipeline = declared(tmp_path, "orders")
    with pytest.raises(BucketNotFoundError, match=f"it is a file; give its directory {tmp_path}, and pattern='orders'"):
        check_stores(pipeline._definition().sources, frozenset())
