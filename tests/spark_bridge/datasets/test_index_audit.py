"""Tests of the audit of indexes after tidying: a wrong index is rebuilt, or dropped, and reported."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest
import structlog

from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.view_table import ViewTable
from state.lance.index_check import index_difference, indexed_columns
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from tests.state.lance.wrong_index import make_wrong

SCHEMA = pa.schema([pa.field(KEY_COLUMN, pa.string(), nullable=False), ("n", pa.int64())])
_ROWS = 12_000


def groups(numbers: range, n: int = 0) -> pa.Table:
    return pa.table({KEY_COLUMN: [f"group {each}" for each in numbers], "n": [n] * len(numbers)}, schema=SCHEMA)


def reopened(location: Location) -> ViewTable:
    return ViewTable.open(location, lance.dataset(location.lance_uri).version)


def fill(table: ViewTable) -> None:
    """Makes the next task of tidying due."""
    for number in range(16):
        table.append(groups(range(_ROWS + number, _ROWS + number + 1)))


@pytest.fixture
def location(tmp_path: Path) -> Location:
    """A view with an index."""
    location = Location(str(tmp_path / "views" / "v-7.lance"))
    table, audit = ViewTable.create(location, groups(range(_ROWS))), IndexAudit(Random(1))
    assert table.tidy(audit)
    assert (audit.checks, audit.rebuilt) == (1, {})
    return location


def test_a_wrong_index_is_rebuilt_and_reported(location: Location, tmp_path: Path) -> None:
    make_wrong(location, KEY_COLUMN, tmp_path / "other.lance")
    table, audit = reopened(location), IndexAudit(Random(1))
    assert table.rows_of(groups(range(3)).column(KEY_COLUMN).combine_chunks(), ["n"]).num_rows == 3, "other rows"
    fill(table)
    with structlog.testing.capture_logs() as logs:
        assert table.tidy(audit)
    assert audit.rebuilt == {"v": 1}
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["dataset"] == str(location) and line["column"] == KEY_COLUMN and line["missing"] > 0
    assert "slackwater verify" in line["event"]
    table.upsert(groups(range(100), n=7))
    dataset = lance.dataset(location.lance_uri)
    assert list(indexed_columns(dataset)) == [KEY_COLUMN]
    assert index_difference(location, dataset, KEY_COLUMN, Random(2), keys=100, fragments=100) is None
    assert dataset.count_rows() == _ROWS + 16 and dataset.count_rows("n = 7") == 100


def test_an_index_that_is_wrong_again_is_dropped_for_good(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wrong(location, KEY_COLUMN, tmp_path / "other.lance")
    table, audit = reopened(location), IndexAudit(Random(1))
    fill(table)
    create = lance.LanceDataset.create_scalar_index

    def creates_wrong(dataset: lance.LanceDataset, *arguments: Any, **options: Any) -> None:
        create(dataset, *arguments, **options)
        if dataset.uri == location.lance_uri:  # and not the other dataset that gives the wrong index
            make_wrong(location, KEY_COLUMN, tmp_path / f"other-{dataset.version}.lance")
            dataset.checkout_latest()

    with monkeypatch.context() as patch, structlog.testing.capture_logs() as logs:
        patch.setattr(lance.LanceDataset, "create_scalar_index", creates_wrong)
        assert table.tidy(audit)
    assert audit.rebuilt == {"v": 2}
    assert "dropped" in [line for line in logs if line["log_level"] == "error"][-1]["action"]
    for _ in range(2):
        fill(table)
        table.tidy(audit)
        assert indexed_columns(lance.dataset(location.lance_uri)) == {}
    table.upsert(groups(range(100), n=7))
    assert lance.dataset(location.lance_uri).count_rows("n = 7") == 100


def test_a_right_index_costs_no_version(location: Location) -> None:
    table, audit = reopened(location), IndexAudit(Random(1))
    before = lance.dataset(location.lance_uri).version
    audit.check(location, table.snapshot(), [KEY_COLUMN])
    assert audit.checks == 1 and lance.dataset(location.lance_uri).version == before
