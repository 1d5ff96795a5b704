"""Tests of the listing state: the counts of a source, and the row from which a restart continues."""

from __future__ import annotations

from datetime import UTC, datetime

from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import NEVER_LISTED, ListingTally
from actors.listing.request_budget import RequestBudget

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_listing_counts_for_a_restart_when_all_that_it_found_is_handed_on() -> None:
    tally, pace = ListingTally(NEVER_LISTED, must_list=True), ListingPace(10.0, RequestBudget(None))
    tally.on_page(requests=1, objects=3)
    tally.on_found()
    tally.end_listing(AT)
    row = tally.row(pace, None, 0.0, needs_listing=False)
    assert (row["pages"], row["found"], row["listed_at"]) == (1, 1, None)
    assert tally.must_list
    tally.on_all_sent()
    assert tally.row(pace, None, 0.0, needs_listing=False)["listed_at"] == AT
    assert not tally.must_list
