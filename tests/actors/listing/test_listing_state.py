"""Tests of the listing state: the counts of a source, and the row from which a restart continues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from actors.formats.options import Csv
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import NEVER_LISTED, ListedState, ListingTally, wait_for_listing_s
from actors.listing.request_budget import RequestBudget
from actors.sources.discovery import Notifications
from actors.sources.source import SourceDefinition
from state.location import Location

AT = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE = "https://sqs/raw"
RELIST_S = 3_600.0


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


@pytest.mark.parametrize(
    ("age_s", "wait_s"), [(0.0, RELIST_S), (600.0, 3_000.0), (90_000.0, 0.0), (-86_400.0, RELIST_S)]
)
def test_the_next_listing_comes_in_its_time_also_after_the_clock_was_set_back(age_s: float, wait_s: float) -> None:
    discovery = Notifications(queue_url=QUEUE, relist_interval_s=RELIST_S)
    source = SourceDefinition(name="s", location=Location("s3://raw/s"), format=Csv(), discovery=discovery)
    listed = ListedState(AT, QUEUE)
    assert wait_for_listing_s(listed, source, QUEUE, AT + timedelta(seconds=age_s)) == wait_s
    assert wait_for_listing_s(listed, source, "https://sqs/other", AT) is None
    assert wait_for_listing_s(NEVER_LISTED, source, QUEUE, AT) is None
