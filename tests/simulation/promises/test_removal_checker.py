"""A file that counts as deleted without having been away breaks its promise."""

from __future__ import annotations

from tests.simulation.promises.removal_checker import RemovalChecker
from tests.simulation.promises.store_versions import SOURCE, breaks, file_tables, finished, put
from tests.simulation.world.bucket import Bucket


def test_a_file_that_was_in_the_bucket_throughout_counts_as_deleted() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    checker = RemovalChecker(bucket)
    checker.check(file_tables([finished(file)]))
    with breaks("G4", "a counts as deleted, and was in the bucket throughout"):
        checker.check(file_tables([finished(file, deleted_epoch=2)]))


def test_a_file_goes_once_for_each_time_it_was_away() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    checker = RemovalChecker(bucket)
    bucket.vanish(SOURCE, "a")
    bucket.bring_back(SOURCE, "a")
    checker.check(file_tables([finished(file)]))
    checker.check(file_tables([finished(file, status="forgotten", deleted_epoch=2)]))
    checker.check(file_tables([finished(file)]))
    with breaks("G4", "a counts as deleted"):
        checker.check(file_tables([finished(file, status="forgotten", deleted_epoch=3)]))


def test_a_version_that_came_after_the_file_was_away_does_not_go() -> None:
    bucket = Bucket(page_size=10)
    put(bucket, "a")
    bucket.vanish(SOURCE, "a")
    file = put(bucket, "a")
    checker = RemovalChecker(bucket)
    checker.check(file_tables([finished(file)]))
    with breaks("G4", "a counts as deleted"):
        checker.check(file_tables([finished(file, deleted_epoch=2)]))


def test_a_file_that_leaves_while_removals_pause_breaks_nothing_forgotten() -> None:
    bucket = Bucket(page_size=10)
    file = put(bucket, "a")
    bucket.vanish(SOURCE, "a")
    checker = RemovalChecker(bucket, needs_approval=True)
    checker.check(file_tables([finished(file)]))
    deleted = file_tables([finished(file, status="forgotten", deleted_epoch=2)])
    with breaks("G4", "a has left the views, and removals were paused"):
        checker.check(deleted)
    checker.check(file_tables([finished(file)]))
    checker.is_allowed = True
    checker.check(deleted)
