"""Stored rows are compared with the ledger, file by file, and whatever is wrong with them is seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lance
import pytest

import slackwater as sw
from slackwater.verification.verification import Outcome, ViewCheck
from state.location import Location
from state.tables.stored_rows import PATH_COLUMN
from tests.slackwater.reading.stored_root import StoredRoot
from tests.state.lance.wrong_index import make_wrong


@pytest.fixture
def written(tmp_path: Path) -> StoredRoot:
    return StoredRoot(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def check(written: StoredRoot, epoch: int | None = None) -> ViewCheck:
    (found,) = sw.verify(sw.open(written.root.url), epoch).views
    return found


@pytest.mark.more
def test_rows_that_the_ledger_has_are_equal_at_each_epoch(written: StoredRoot) -> None:
    written.ingest("a.csv", [0, 1, 3], rows_read=4, bad=[2])
    written.ingest("a.csv", [4, 5], rows_read=6, bad=[2])
    written.ingest("bad.csv", [], rows_read=2, bad=[0, 1])
    written.ingest("b.csv", [0], rows_read=1)
    for record, rows in zip(written.records, (3, 5, 5, 6), strict=True):
        found = check(written, record.epoch)
        assert (found.view, found.outcome, found.engine) == ("flights.rows", Outcome.EQUAL, "ledger")
        assert (found.epoch, found.rows, found.expected_rows, found.differences) == (record.epoch, rows, rows, None)


@pytest.mark.parametrize(
    ("positions", "counts"),
    [
        ([0, 1, 3], (1, 0, 0)),
        ([0, 1, 3, 4, 4], (0, 1, 0)),
        ([0, 1, 1, 4], (0, 0, 1)),
        ([0, 1, 4, 5], (0, 0, 1)),
        ([-1, 0, 1, 3], (0, 0, 1)),
        ([0, 1, 2, 3], (0, 0, 1)),
        ([], (4, 0, 0)),
    ],
    ids=["one is missing", "one is there twice", "one instead of another", "behind the end", "before the first",
         "a quarantined one", "the whole file is missing"],
)  # fmt: skip
def test_other_rows_are_seen(written: StoredRoot, positions: Sequence[int], counts: tuple[int, int, int]) -> None:
    written.ingest("b.csv", [0], rows_read=1)
    written.ingest("a.csv", positions, rows_read=5, bad=[2])
    found = check(written)
    assert found.outcome is Outcome.DIFFERENT and found.differences is not None
    differences = found.differences
    assert (differences.missing, differences.extra, differences.changed) == counts
    (example,) = differences.examples
    assert example.view == {"path": "a.csv", "rows": len(positions), "positions": len(set(positions))}
    assert example.expected == {"path": "a.csv", "rows": 4, "positions": 4}


def test_rows_of_a_file_that_the_ledger_does_not_have_are_seen(written: StoredRoot) -> None:
    written.ingest("a.csv", [0, 1], rows_read=2)
    written.ingest("b.csv", [0], rows_read=0)
    found = check(written)
    assert found.differences is not None
    assert (found.differences.missing, found.differences.extra, found.expected_rows) == (0, 1, 2)


def test_bad_records_that_were_cleared_still_count(written: StoredRoot) -> None:
    written.ingest("a.csv", [0, 2], rows_read=3, bad=[1])
    written.forget_bad("a.csv", 1)
    assert check(written).outcome is Outcome.EQUAL


@pytest.mark.more
def test_a_wrong_index_is_named_and_the_result_is_not_equal(written: StoredRoot, tmp_path: Path) -> None:
    for number in range(30):
        written.ingest(f"{number}.csv", range(number), rows_read=number)
    view = written.views["flights.rows"]
    location = written.root.child(view.path)
    dataset = lance.dataset(location.lance_uri)
    dataset.create_scalar_index(PATH_COLUMN, "BTREE")
    written.views["flights.rows"] = view.at({view.path: dataset.version})
    written.commit()
    assert sw.verify(sw.open(written.root.url)).all_equal
    make_wrong(location, PATH_COLUMN, tmp_path / "other.lance")
    written.views["flights.rows"] = view.at({view.path: lance.dataset(location.lance_uri).version})
    written.commit()
    found = sw.verify(sw.open(written.root.url))
    [index] = found.wrong_indexes
    assert (index.dataset, index.column) == (view.path, PATH_COLUMN) and index.missing > 0
    assert all(each.outcome is Outcome.EQUAL for each in found.views) and not found.all_equal
