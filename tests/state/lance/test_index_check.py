"""Tests of the comparison of an index with the rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest

from state.lance.index_check import IndexDifference, index_difference, indexed_columns
from state.location import Location
from tests.state.lance.wrong_index import make_wrong

_COLUMNS = ["text", "bytes", "number", "few"]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    """A dataset of three fragments with deletions, whose last fragment no index covers."""
    location = Location(str(tmp_path / "d.lance"))
    for fragment in range(3):
        numbers = range(fragment * 1_000, fragment * 1_000 + 1_000)
        rows = pa.table(
            {
                "text": [f"it's {number}" for number in numbers],
                "bytes": [number.to_bytes(4, "big") for number in numbers],
                "number": [None if number % 7 == 0 else number for number in numbers],
                "few": [number % 2 for number in numbers],
            }
        )
        dataset = lance.write_dataset(rows, location.lance_uri, mode="append" if fragment else "create")
        if fragment == 1:
            for column in _COLUMNS:
                dataset.create_scalar_index(column, "BTREE")
    dataset.delete("number % 10 = 3")
    return location


@pytest.mark.parametrize("seed", range(5))
def test_a_right_index_is_equal(location: Location, seed: int) -> None:
    dataset = lance.dataset(location.lance_uri)
    assert sorted(indexed_columns(dataset)) == sorted(_COLUMNS)
    assert [index_difference(location, dataset, each, Random(seed)) for each in _COLUMNS] == [None] * len(_COLUMNS)


@pytest.mark.parametrize("column", _COLUMNS)
def test_a_wrong_index_differs(location: Location, tmp_path: Path, column: str) -> None:
    make_wrong(location, column, tmp_path / "other.lance")
    dataset = lance.dataset(location.lance_uri)
    found = [index_difference(location, dataset, column, Random(seed), keys=64, fragments=3) for seed in range(3)]
    assert all(found), "each comparison sees it"
    [first, *_] = found
    assert isinstance(first, IndexDifference) and first.missing and "differs from the rows" in str(first)
    others = [each for each in _COLUMNS if each != column]
    assert not any(index_difference(location, dataset, each, Random(0), keys=64, fragments=3) for each in others)


def test_a_damaged_index_lacks_all_rows(location: Location) -> None:
    for file in (location.path / "_indices").rglob("*.lance"):
        file.write_bytes(bytes(file.stat().st_size))
    difference = index_difference(location, lance.dataset(location.lance_uri), "text", Random(1))
    assert difference is not None and difference.missing == difference.keys


def test_a_comparison_of_a_column_with_few_values_reads_few_rows(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "d.lance"))
    rows = pa.table({"few": [number % 20 for number in range(100_000)]})
    dataset = lance.write_dataset(rows, location.lance_uri)
    dataset.create_scalar_index("few", "BTREE")
    make_wrong(location, "few", tmp_path / "other.lance")
    difference = index_difference(location, lance.dataset(location.lance_uri), "few", Random(1))
    assert difference is not None and difference.keys == 1


def test_a_dataset_without_rows_or_keys_is_equal(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "d.lance"))
    rows = pa.table({"key": pa.array([None, None], pa.int64())})
    dataset = lance.write_dataset(rows, location.lance_uri)
    dataset.create_scalar_index("key", "BTREE")
    assert index_difference(location, dataset, "key", Random(0)) is None
    dataset.delete("true")
    assert index_difference(location, dataset, "key", Random(0)) is None
