"""Each forbidden change of a file's row breaks its promise."""

from __future__ import annotations

import pytest

from actors.files import FileVersion
from actors.sources.source import OnChange
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.command_checker import CommandChecker
from tests.simulation.promises.store_versions import breaks, file_tables, finished, put, waiting
from tests.simulation.promises.transition_checker import TransitionChecker
from tests.simulation.world.bucket import Bucket

BUCKET = Bucket(page_size=10)
FILE = put(BUCKET, "a")
CHANGED = put(BUCKET, "a")


def check(*versions: FileTables, on_change: OnChange = "ignore") -> None:
    checker = TransitionChecker(on_change, CommandChecker())
    for tables in versions:
        checker.check(tables)


def vanished(file: FileVersion) -> FileTables:
    return file_tables([finished(file, 0, status="vanished")])


def test_a_file_that_waits_is_read_and_finished() -> None:
    check(
        file_tables(), *(file_tables(queue=[waiting(FILE, row)]) for row in (0, 1, 1, 2)), file_tables([finished(FILE)])
    )


def test_a_later_version_may_wait_in_place_of_an_unread_one() -> None:
    check(file_tables(queue=[waiting(FILE)]), file_tables(queue=[waiting(CHANGED)]))
    check(file_tables(queue=[waiting(FILE)]), file_tables([finished(CHANGED)]))


def test_a_row_that_leaves_the_ledger_breaks_nothing_forgotten() -> None:
    with breaks("G4", "a is no longer in the ledger"):
        check(file_tables([finished(FILE)]), file_tables())


@pytest.mark.parametrize(
    "after", [file_tables(), file_tables(queue=[waiting(CHANGED)]), file_tables([finished(FILE, 1)])]
)
def test_a_half_read_file_that_leaves_the_queue_breaks_nothing_forgotten(after: FileTables) -> None:
    with breaks("G4", "a was waiting, and its row is deleted"):
        check(file_tables(queue=[waiting(FILE, 2)]), after)


def test_an_offset_that_goes_back_breaks_monotonic() -> None:
    with breaks("G3", "a was at row 2 and is at 1"):
        check(file_tables(queue=[waiting(FILE, 2)]), file_tables(queue=[waiting(FILE, 1)]))


@pytest.mark.parametrize(
    "after", [finished(FILE, 2), finished(FILE, status="quarantined"), finished(FILE, status="forgotten")]
)
def test_a_finished_file_that_changes_breaks_monotonic(after: dict[str, object]) -> None:
    with breaks("G3", "a was done with 3 rows"):
        check(file_tables([finished(FILE)]), file_tables([after]))


def test_a_file_that_vanished_may_be_back() -> None:
    check(vanished(FILE), file_tables([finished(FILE)]))


def test_only_a_source_that_replaces_forgets_files_that_are_deleted() -> None:
    forgotten = file_tables([finished(FILE, status="forgotten", deleted_epoch=2)])
    versions = file_tables([finished(FILE)]), forgotten, file_tables([finished(FILE, done_epoch=3)])
    check(*versions, on_change="replace")
    with breaks("G3", "a was done with 3 rows, and is forgotten with 3"):
        check(*versions)
