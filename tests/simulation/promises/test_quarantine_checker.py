"""Each fault in the quarantine breaks its promise."""

from __future__ import annotations

import pytest

from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.quarantine_checker import QuarantineChecker, check_lacked_columns
from tests.simulation.promises.store_versions import bad_record, breaks, file_tables, finished, put, waiting
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import lacks_column

BUCKET = Bucket(page_size=10)
BAD = put(BUCKET, "bad", bad_records=[1])
PATH = next(path for path in map(str, range(100)) if lacks_column(path))
LACKING = put(BUCKET, PATH)


def check(tables: FileTables) -> None:
    QuarantineChecker(BUCKET.contents).check(tables)


def test_quarantine_has_the_bad_records_that_were_read() -> None:
    check(file_tables(queue=[waiting(BAD, 1)]))
    check(file_tables(queue=[waiting(BAD, 2, rows_bad=1)], quarantine=[bad_record(BAD, 1)]))
    check(file_tables([finished(BAD, rows_bad=1)], quarantine=[bad_record(BAD, 1), {"row": None, "path": "queue#m"}]))
    check(file_tables([finished(BAD, rows_bad=1, status="forgotten")]))


@pytest.mark.parametrize(
    ("rows_bad", "quarantined"), [(1, []), (0, [1]), (1, [0, 1])], ids=["missing", "not counted", "a good record"]
)
def test_a_wrong_quarantine_breaks_bad_input_is_kept(rows_bad: int, quarantined: list[int]) -> None:
    with breaks("G6", "bad has the bad records [1]"):
        check(file_tables([finished(BAD, rows_bad=rows_bad)], quarantine=[bad_record(BAD, row) for row in quarantined]))


def test_a_bad_record_of_an_unread_file_breaks_bad_input_is_kept() -> None:
    with breaks("G6", "of which no row was read"):
        check(file_tables(queue=[waiting(BAD)], quarantine=[bad_record(BAD, 1)]))


def test_a_file_without_a_column_needs_the_report_with_its_first_row() -> None:
    check_lacked_columns(file_tables(queue=[waiting(LACKING)]))
    with breaks("G6", f"{PATH} lacks the column lacked, and no commit reports it"):
        check_lacked_columns(file_tables(queue=[waiting(LACKING, 1)]))
    with breaks("G6", "no commit reports it"):
        check_lacked_columns(file_tables([finished(LACKING)]))
