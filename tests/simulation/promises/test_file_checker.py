"""Each fault in ledger, queue and `seen` breaks its promise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.command_checker import CommandChecker
from tests.simulation.promises.file_checker import FileChecker
from tests.simulation.promises.store_versions import SOURCE, breaks, file_tables, finished, put, waiting
from tests.simulation.world.bucket import Bucket

BUCKET = Bucket(page_size=10)
FILE, OTHER, BAD = put(BUCKET, "a"), put(BUCKET, "b"), put(BUCKET, "bad", bad_records=[1])
KEY = SOURCE, "a", FILE.version


def check(tables: FileTables, new_rows: int = 0) -> None:
    FileChecker(BUCKET, CommandChecker()).check(tables, new_rows)


def test_the_rows_that_the_views_must_have_are_returned() -> None:
    checker = FileChecker(BUCKET, CommandChecker())
    bad = SOURCE, "bad", BAD.version
    assert checker.check(file_tables(queue=[waiting(FILE, 2), waiting(BAD, 2)]), 3) == {KEY: (0, 1), bad: (0,)}
    assert checker.check(file_tables([finished(FILE), finished(BAD)]), 2) == {KEY: (0, 1, 2), bad: (0, 2)}


def test_the_rows_of_a_file_that_is_back_count_again() -> None:
    checker = FileChecker(BUCKET, CommandChecker())
    checker.check(file_tables([finished(FILE)]), 3)
    assert checker.check(file_tables([finished(FILE, status="forgotten")]), 0) == {}
    assert checker.check(file_tables([finished(FILE)]), 3) == {KEY: (0, 1, 2)}


def test_a_finished_file_that_is_read_again_breaks_exactly_once() -> None:
    with breaks("G1", "a is finished, and is read again"):
        check(file_tables([finished(FILE)], [waiting(FILE, 1)]), 4)


@pytest.mark.parametrize(
    "fields",
    [{"rows_read": 2}, {"rows_read": 4, "status": "vanished"}, {"status": "quarantined"}, {"status": "lost"}],
)
def test_a_status_that_does_not_fit_the_file_breaks_nothing_forgotten(fields: dict[str, Any]) -> None:
    with breaks("G4", "a has Content"):
        check(file_tables([finished(FILE, **fields)]), 3)


def test_a_wrong_count_of_rows_breaks_nothing_forgotten() -> None:
    with breaks("G4", "3 rows were ingested, the epoch counts 2"):
        check(file_tables([finished(FILE)]), 2)


def test_a_file_that_counts_as_deleted_and_never_left_breaks_nothing_forgotten() -> None:
    with breaks("G4", "a counts as deleted"):
        check(file_tables([finished(FILE, deleted_epoch=2)]), 3)


def test_an_object_in_seen_without_a_row_breaks_nothing_forgotten() -> None:
    with breaks("G4", "is in `seen`, and has no row"):
        check(file_tables(queue=[waiting(FILE)], seen=[waiting(FILE), waiting(OTHER)]))


def test_a_file_that_is_not_in_seen_breaks_nothing_forgotten() -> None:
    with breaks("G4", "is not in `seen`"):
        check(file_tables(queue=[waiting(FILE), waiting(OTHER)], seen=[waiting(FILE)]))
