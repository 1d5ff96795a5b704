from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.contenders.batch_queries import DuckdbBatch
from benchmarks.realistic import require_same
from benchmarks.realistic_pipelines import FILES, PIPELINES
from benchmarks.realistic_run import Feed, phases

ROWS = 100


@pytest.mark.parametrize("name", PIPELINES)
def test_duckdb_computes_every_view_from_the_files_of_an_epoch(name: str, tmp_path: Path) -> None:
    pipeline = PIPELINES[name]()
    pipeline.write_tables(tmp_path)
    files = pipeline.write_epoch(tmp_path, 0, ROWS)
    assert len(list(files.glob("*/*"))) == FILES
    batch = DuckdbBatch(pipeline)
    batch.read_tables(tmp_path / "tables")
    answers = batch.answers(files)
    assert answers.keys() == pipeline.views.keys()
    assert any(rows.num_rows for rows in answers.values())


@pytest.mark.parametrize("name", PIPELINES)
def test_the_views_are_declared_over_the_same_names(name: str, tmp_path: Path) -> None:
    pipeline = PIPELINES[name]()
    declared = pipeline.declare(tmp_path)
    assert declared.views.keys() == pipeline.views.keys()
    assert declared.sources.keys() >= pipeline.streams.keys()


@pytest.mark.parametrize("name", PIPELINES)
def test_epochs_have_the_rows_asked_for_and_differ(name: str) -> None:
    pipeline = PIPELINES[name]()
    first, second = pipeline.rows(0, ROWS), pipeline.rows(1, ROWS)
    assert first.num_rows == second.num_rows == ROWS
    assert not first.equals(second)
    assert first.equals(PIPELINES[name]().rows(0, ROWS))


def test_the_files_of_an_epoch_appear_once(tmp_path: Path) -> None:
    pipeline = PIPELINES["demo"]()
    pipeline.write_epoch(tmp_path, 0, ROWS)
    pipeline.write_epoch(tmp_path, 1, ROWS)
    feed = Feed(tmp_path)
    assert len(feed) == 2
    assert feed.put(1) == FILES
    names = {file.name.partition("-")[0] for file in (tmp_path / "in").glob("*/*")}
    assert names == {"0001"}


def test_cold_and_warm_epochs_do_not_overlap() -> None:
    assert phases(100) == (range(1, 11), range(60, 100))
    assert phases(25) == (range(1, 11), range(15, 25))
    assert phases(6) == (range(1, 3), range(3, 6))


def table(*totals: float | None) -> dict[str, pa.Table]:
    return {"v": pa.table({"k": list(range(len(totals))), "total": list(totals)})}


def test_rows_may_have_another_order_and_other_last_digits() -> None:
    expected = table(1.0, None, 3.0)
    found = {"v": expected["v"].take([2, 0, 1])}
    require_same(found, expected)
    require_same(table(1.0, None, 3.0 + 1e-12), expected)


@pytest.mark.parametrize("found", [table(1.0, None, 3.001), table(1.0, 2.0, 3.0), table(1.0, None)])
def test_other_rows_are_an_error(found: dict[str, pa.Table]) -> None:
    with pytest.raises(AssertionError, match="v"):
        require_same(found, table(1.0, None, 3.0))
