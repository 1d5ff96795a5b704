from __future__ import annotations

from actors.listing.listing_marks import ListingMarks
from actors.listing.settling_files import SettlingFiles


class Directory:
    """Listings of one file, whose version each one finds."""

    def __init__(self) -> None:
        self.settling, self.marks = SettlingFiles(), ListingMarks()

    def list(self, version: bytes, *, is_new: bool = False) -> int:
        """Returns the mark that is complete."""
        self.marks.begin_listing()
        self.settling.is_settling("a", version, is_new=is_new)
        self.marks.end_listing(*self.settling.end_listing())
        return self.marks.complete


def test_a_change_that_was_there_at_the_mark_is_waited_for_whatever_was_there_before() -> None:
    made = Directory()
    assert made.list(b"1") == 0
    assert made.list(b"1") == 1
    assert made.list(b"2") == 1
    made.marks.on_mark(2)
    assert made.list(b"3") == 1, "the first listing after the mark shows it for the first time"
    assert made.list(b"3") == 2


def test_what_changes_in_every_listing_is_waited_for_once() -> None:
    made = Directory()
    assert [made.list(version) for version in (b"1", b"2", b"3")] == [0, 1, 1]


def test_a_new_file_is_waited_for_as_long_as_it_is_settling() -> None:
    made = Directory()
    assert [made.list(version, is_new=True) for version in (b"1", b"2", b"2")] == [0, 0, 1]


def test_a_mark_waits_for_one_listing_that_confirms_missing_names() -> None:
    marks = ListingMarks()
    marks.begin_listing()
    marks.end_listing(set(), set(), must_confirm=True)
    assert marks.complete == 0
    marks.begin_listing()
    marks.end_listing(set(), set(), must_confirm=True)
    assert marks.complete == 1, "files that went later do not count"
