"""A changed file that does not end its run, and an end without one, break their promise."""

from __future__ import annotations

import pytest

from actors.file_errors import bad_input
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.change_checker import ChangeChecker
from tests.simulation.promises.store_versions import breaks, file_tables, finished, put, waiting
from tests.simulation.world.bucket import Bucket

BUCKET = Bucket(page_size=10)
FIRST = put(BUCKET, "a")
SECOND = put(BUCKET, "a")
OTHER = put(BUCKET, "b")
WHY = "the file has changed since it was listed"


def test_a_changed_file_ends_the_run() -> None:
    checker = ChangeChecker(BUCKET, fails=True)
    checker.check(file_tables([finished(FIRST), finished(OTHER)], queue=[waiting(SECOND)]))
    checker.check_error(bad_input(SECOND, WHY, "on_change"))


def test_an_end_without_a_changed_file_breaks_nothing_forgotten() -> None:
    with breaks("G4", "no file has changed that the error names"):
        ChangeChecker(BUCKET, fails=True).check_error(bad_input(OTHER, WHY, "on_change"))
    with breaks("G4", "no file has changed that the error names"):
        ChangeChecker(BUCKET, fails=True).check_error(bad_input(SECOND, "row 1: not a number"))
    with breaks("G4", "no file has changed that the error names"):
        ChangeChecker(BUCKET, fails=False).check_error(bad_input(SECOND, WHY, "on_change"))


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (file_tables([finished(FIRST, changed_epoch=2)]), "a has changed, and the run has gone on"),
        (file_tables([finished(FIRST)], queue=[waiting(SECOND, 1)]), "were read in two versions"),
    ],
    ids=["ignored", "read"],
)
def test_a_run_that_goes_on_breaks_nothing_forgotten(tables: FileTables, why: str) -> None:
    checker = ChangeChecker(BUCKET, fails=True)
    with breaks("G4", why):
        checker.check(tables)
    checker.is_accepted = True
    checker.check(tables)
    ChangeChecker(BUCKET, fails=False).check(tables)
