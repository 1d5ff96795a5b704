"""A name whose object the run has deleted: the same bytes, delivered again, are another version."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from actors.files import ChangedFile, DeletedFile, FileVersion
from actors.listing.list_executor import ListExecutor
from actors.listing.missing_files import DeletedFound
from actors.listing.run_deletions import RunDeletion
from actors.names.seen_index import SeenIndex
from actors.objects.listing_page import ListingPage
from actors.protocol.messages import ChangedFiles
from state.tables.fingerprint import delivery_fingerprint, is_delivery, path_fingerprint
from tests.actors.flow import AT, INITIAL, LARGE, barrier, delta_rows, file, lister, sent

KEY = path_fingerprint("s", "a")
V = file("a").version
DAY = timedelta(days=1)


def page(time: datetime, etag: str = "1") -> ListingPage:
    return ListingPage.of(["a"], [etag], [LARGE], [time], 1)


def begun(**options: object) -> ListExecutor:
    executor = lister(seen=SeenIndex([KEY], [V]), **options)
    executor.on_barrier(INITIAL, 0.0)
    return executor


def listing(executor: ListExecutor, *pages: ListingPage) -> list[FileVersion]:
    """The changed files that a complete listing hands on."""
    handed: list[object] = []
    for each in pages:
        handed += sent(executor.on_page(each, 0.0))
    executor.on_listing_end(0.0, AT)
    executor.on_time(1_000.0)
    return [each.now for one in handed for each in _changed(one)]


def _changed(message: object) -> tuple[ChangedFile, ...]:
    assert isinstance(message, ChangedFiles), message
    return message.files


def deleted(version: bytes = V, time: datetime = AT) -> list[RunDeletion]:
    return [RunDeletion("a", version, time)]


def test_the_same_bytes_are_handed_on_once_for_each_delivery() -> None:
    executor = begun()
    assert listing(executor, page(AT)) == []
    executor.on_run_deletions(deleted())
    assert listing(executor, page(AT)) == [], "the deleted object, in a listing that lags"
    [second] = listing(executor, page(AT + DAY))
    assert (second.version, second.last_modified) == (delivery_fingerprint(V, AT + DAY), AT + DAY)
    for _ in range(3):
        assert listing(executor, page(AT + DAY)) == [], "it is handed on once"
    assert listing(executor, page(AT + 2 * DAY)) == [], "the same content, written again before its deletion"
    executor.on_run_deletions(deleted(second.version, AT + DAY))
    [third] = listing(executor, page(AT + 3 * DAY))
    assert third.version == delivery_fingerprint(V, AT + 3 * DAY)
    assert listing(executor, page(AT + 3 * DAY)) == []


def test_the_earlier_version_is_the_one_in_the_ledger() -> None:
    executor = begun()
    executor.on_run_deletions(deleted())
    [message] = sent(executor.on_page(page(AT + DAY), 0.0))
    assert [each.version for each in _changed(message)] == [V]
    sealed = executor.on_barrier(barrier(INITIAL.epoch.curr), 0.0)
    assert [row["version"] for row in delta_rows(sealed, "seen")] == [delivery_fingerprint(V, AT + DAY)]


def test_a_name_that_returns_before_a_listing_lacks_it_is_handed_on() -> None:
    executor = begun()
    # The object was deleted and delivered again; its record comes only now.
    assert listing(executor, page(AT + DAY)) == []
    executor.on_run_deletions(deleted())
    assert len(listing(executor, page(AT + DAY))) == 1, "a digest of the listing before must not skip it"


@pytest.mark.parametrize("time", [AT, AT + DAY])
def test_a_file_that_vanished_by_itself_is_not_read_twice(time: datetime) -> None:
    executor = begun()
    for _ in range(2):
        listing(executor)
    executor.on_deleted(DeletedFound(1 << 60, {KEY: (DeletedFile("s", "a", V),)}))
    assert listing(executor, page(time)) == []
    assert len(listing(executor, page(time, "2"))) == 1, "other bytes are another version, as ever"


def test_other_bytes_after_a_deletion_never_take_the_version_of_an_earlier_file() -> None:
    executor = begun()
    executor.on_run_deletions(deleted())
    [second] = listing(executor, page(AT + DAY, "2"))
    assert is_delivery(second.version)
    executor.on_run_deletions(deleted(second.version, AT + DAY))
    [third] = listing(executor, page(AT + 2 * DAY))
    assert third.version not in (V, second.version)


def test_a_deletion_of_a_version_that_is_not_the_last_one_has_no_effect() -> None:
    executor = begun()
    executor.on_run_deletions(deleted(file("a", "7").version))
    assert listing(executor, page(AT + DAY)) == []


def test_a_deleted_name_is_still_found_to_be_missing() -> None:
    executor = begun()
    executor.on_run_deletions(deleted())
    listing(executor, page(AT))
    listing(executor)
    listing(executor)
    assert executor._names.missing.is_confirmed
