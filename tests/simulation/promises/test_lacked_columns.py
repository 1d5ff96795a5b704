"""A lost report of a missing column breaks its promise."""

from __future__ import annotations

from tests.simulation.promises.lacked_columns import check_lacked_columns
from tests.simulation.promises.store_versions import breaks, file_tables, finished, put, waiting
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import lacks_column

BUCKET = Bucket(page_size=10)
PATH = next(path for path in map(str, range(100)) if lacks_column(path))
FILE = put(BUCKET, PATH)


def test_a_file_without_a_column_needs_the_report_with_its_first_row() -> None:
    check_lacked_columns(file_tables(queue=[waiting(FILE)]))
    with breaks("G6", f"{PATH} lacks the column lacked, and no commit reports it"):
        check_lacked_columns(file_tables(queue=[waiting(FILE, 1)]))
    with breaks("G6", "no commit reports it"):
        check_lacked_columns(file_tables([finished(FILE)]))
