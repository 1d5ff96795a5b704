"""Each false report of a run breaks its promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.protocol.run_state import RunState
from state.tables.records import EpochCounts, ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promises.run_checker import RunChecker
from tests.simulation.promises.store_versions import (
    SOURCE,
    bad_record,
    breaks,
    file_tables,
    finished,
    put,
    record,
    waiting,
)
from tests.simulation.world.bucket import Bucket

STATE = RunState(1, "running", 1, 0)
RUN = "run-1"
URL = "https://queue/s"
PATH = SOURCE, "a"


@pytest.fixture
def bucket() -> Bucket:
    return Bucket(page_size=10)


@pytest.fixture
def checker(bucket: Bucket) -> RunChecker:
    return RunChecker(bucket, "ignore")


def test_a_run_that_reports_an_uncommitted_or_an_earlier_epoch_breaks_monotonic(checker: RunChecker) -> None:
    checker.check_state(RUN, STATE, is_committed=False)
    checker.check_state(RUN, replace(STATE, epoch=2), is_committed=True)
    with breaks("G3", "run-1 was at epoch 2, and reports epoch 1"):
        checker.check_state(RUN, replace(STATE, epoch=1), is_committed=True)
    with breaks("G3", "run-1 was at epoch 2, and reports epoch 3"):
        checker.check_state(RUN, replace(STATE, epoch=3), is_committed=False)


def test_a_run_that_reports_other_totals_than_its_epochs_breaks_nothing_forgotten(checker: RunChecker) -> None:
    records = [record(1, rows=2), record(2, rows=3)]
    state = replace(STATE, epochs=2, totals=EpochCounts(rows=5))
    checker.check_totals(RUN, state, records)
    for wrong in (replace(state, epochs=1), replace(state, totals=EpochCounts(rows=4))):
        with breaks("G4", "run-1 has committed 2 epochs, 5 rows, 0 files"):
            checker.check_totals(RUN, wrong, records)


def test_a_run_that_stops_with_other_views_than_its_last_epoch_breaks_nothing_forgotten(checker: RunChecker) -> None:
    old, new, frozen = ViewVersion("v", "v", 1), ViewVersion("v", "v", 2), ViewVersion("f", "f", 1)
    checker.check_views(RUN, {"v": new}, {"v": new, "f": frozen})
    for recorded in ({"v": old}, {"f": frozen}):
        with breaks("G4", "run-1 has stopped, and"):
            checker.check_views(RUN, {"v": new}, recorded)


def test_a_run_that_has_caught_up_with_an_unfinished_file_breaks_nothing_forgotten(
    bucket: Bucket, checker: RunChecker
) -> None:
    file = put(bucket, "a")
    checker.check_caught_up({PATH: file}, file_tables([finished(file)]), is_settled=True)
    with breaks("G4", "a is not finished"):
        checker.check_caught_up({PATH: file}, file_tables(queue=[waiting(file, 2)]), is_settled=False)


def test_a_file_that_is_retried_after_the_mark_was_finished(bucket: Bucket, checker: RunChecker) -> None:
    file = put(bucket, "a")
    tables = file_tables(queue=[waiting(file, 2)])
    checker.check_caught_up({PATH: file}, tables, [(*PATH, file.version)], is_settled=False)


def test_only_a_source_that_ignores_changes_has_caught_up_without_the_changed_version(bucket: Bucket) -> None:
    old, new = put(bucket, "a"), put(bucket, "a")
    noted = file_tables([finished(old, changed_epoch=2)])
    RunChecker(bucket, "ignore").check_caught_up({PATH: new}, noted, is_settled=True)
    with breaks("G4", "a is not finished"):
        RunChecker(bucket, "replace").check_caught_up({PATH: new}, noted, is_settled=True)


def test_a_present_file_that_counts_as_vanished_breaks_nothing_forgotten(bucket: Bucket, checker: RunChecker) -> None:
    file = put(bucket, "a")
    tables = file_tables([finished(file, 0, status="vanished")])
    checker.check_caught_up({PATH: file}, tables, is_settled=False)
    with breaks("G4", "a is in the bucket, and counts as vanished"):
        checker.check_caught_up({PATH: file}, tables, is_settled=True)


def test_a_deleted_message_that_is_not_an_event_and_not_in_quarantine_breaks_bad_input_is_kept(
    bucket: Bucket, checker: RunChecker
) -> None:
    kept: Row = {**bad_record(put(bucket, "a"), 0), "path": f"{URL}#m", "row": None}
    checker.check_message_deleted(URL, "m", None, file_tables(quarantine=[kept]))
    with breaks("G6", "m is deleted, and is not in quarantine"):
        checker.check_message_deleted(URL, "m", None, file_tables())


def test_a_deleted_message_about_an_unknown_version_breaks_nothing_forgotten(
    bucket: Bucket, checker: RunChecker
) -> None:
    old, new = put(bucket, "a"), put(bucket, "a")
    change = PATH, 2
    checker.check_message_deleted(URL, "m", change, file_tables(queue=[waiting(new)]))
    checker.check_message_deleted(URL, "m", (PATH, 1), file_tables(queue=[waiting(old)]))
    for tables in (file_tables(), file_tables(queue=[waiting(old)])):
        with breaks("G4", "no epoch knows this version"):
            checker.check_message_deleted(URL, "m", change, tables)


def test_a_deleted_message_about_a_file_that_is_not_noted_as_gone_breaks_nothing_forgotten(
    bucket: Bucket, checker: RunChecker
) -> None:
    file = put(bucket, "a")
    bucket.vanish(*PATH)
    settled = (
        file_tables(),
        file_tables([finished(file, deleted_epoch=2)]),
        file_tables([finished(file, 0, status="vanished")]),
        file_tables([finished(file)], must_list=True),
    )
    for tables in settled:
        checker.check_message_deleted(URL, "m", (PATH, 2), tables)
    unsettled: tuple[FileTables, ...] = (file_tables([finished(file)]), file_tables(queue=[waiting(file)]))
    for tables in unsettled:
        with breaks("G4", "no epoch notes that a is deleted"):
            checker.check_message_deleted(URL, "m", (PATH, 2), tables)
