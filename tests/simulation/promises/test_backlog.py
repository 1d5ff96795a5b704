"""The backlog has each difference between the bucket and the store."""

from __future__ import annotations

import pytest

from state.tables.records import Head
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.promises.backlog import Backlog
from tests.simulation.promises.store_versions import SOURCE, file_tables, finished, put, store_version, waiting
from tests.simulation.world.bucket import Bucket

OPEN: frozenset[str] = frozenset()
CLOSED = frozenset({SOURCE})
A = SOURCE, "a"


def backlog(bucket: Bucket, tables: FileTables, *, removes: bool = True) -> Backlog:
    disk = MemoryDisk()
    disk.add(store_version(Head(1, 1), tables=tables))
    return Backlog(disk, bucket, removes=removes)


def test_an_object_is_undiscovered_until_its_version_is_in_seen() -> None:
    bucket = Bucket(page_size=10)
    old, new = put(bucket, "a"), put(bucket, "a")
    for tables in (file_tables(), file_tables(queue=[waiting(old)])):
        assert backlog(bucket, tables).undiscovered(OPEN) == {A}
        assert backlog(bucket, tables).undiscovered(CLOSED) == set()
    assert backlog(bucket, file_tables(queue=[waiting(new)])).undiscovered(OPEN) == set()


def test_a_present_object_is_removed_while_its_version_is_forgotten() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    by_a_user = backlog(bucket, file_tables([finished(file, status="forgotten")]))
    assert by_a_user.removed(OPEN) == set()
    tables = file_tables([finished(file, status="forgotten", deleted_epoch=2)])
    by_a_user_and_gone = backlog(bucket, tables, removes=False)
    assert by_a_user_and_gone.removed(OPEN) == set()
    forgotten = backlog(bucket, tables)
    assert (forgotten.removed(OPEN), forgotten.removed(CLOSED)) == ({A}, set())
    put(bucket, "a")
    assert forgotten.removed(OPEN) == set()


def test_a_path_that_is_deleted_counts_until_a_row_notes_it() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    done = backlog(bucket, file_tables([finished(file)]))
    assert done.not_noted_deleted(OPEN) == set()
    bucket.vanish(*A)
    assert (done.not_noted_deleted(OPEN), done.not_noted_deleted(CLOSED)) == ({A}, set())
    left = backlog(bucket, file_tables([finished(file, status="forgotten", deleted_epoch=2)]))
    assert left.not_noted_deleted(OPEN) == set()


@pytest.mark.parametrize("removes", [False, True])
def test_rows_in_the_views_count_as_not_noted_where_they_must_leave(*, removes: bool) -> None:
    bucket = Bucket(page_size=10)
    first, second = put(bucket, "a"), put(bucket, "a")
    bucket.vanish(*A)
    vanished = finished(second, 0, status="vanished")
    in_views = backlog(bucket, file_tables([finished(first, deleted_epoch=2), vanished]), removes=removes)
    assert in_views.not_noted_deleted(OPEN) == ({A} if removes else set())
    left = backlog(bucket, file_tables([finished(first, status="forgotten"), vanished]), removes=removes)
    assert left.not_noted_deleted(OPEN) == set()


def test_a_file_has_vanished_if_no_row_of_it_was_read() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    vanished = [backlog(bucket, file_tables([finished(file, rows, status="vanished")])) for rows in (0, 2)]
    assert [each.has_vanished for each in vanished] == [True, False]
