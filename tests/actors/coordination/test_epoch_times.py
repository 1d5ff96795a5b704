"""The times of an epoch as the spans of its trace."""

from __future__ import annotations

from actors.coordination.epoch_times import WAITING, EpochTimes
from state.tables.epoch_trace import Span

TIMES = EpochTimes(
    opened_s=-2.0,
    aligned_s=1.0,
    materialized_s=5.0,
    collected_s={"fetch-0": 0.5, "list-s": 6.0},
    complete_s=8.0,
    work_s=3.0,
    work=[Span("spark", "totals", 0.5, 2.0)],
)


def test_phases_follow_each_other_and_hold_what_they_consist_of() -> None:
    assert TIMES.spans() == [
        Span("fetch", "", -2.0, 2.0),
        Span("align", "", 0.0, 1.0),
        Span("align", "fetch-0", 0.0, 0.5),
        Span("align", "list-s", 0.0, 6.0),
        Span("spark", "", 1.0, 4.0),
        Span("spark", WAITING, 1.0, 1.0),
        Span("spark", "totals", 2.5, 2.0),
        Span("collect", "", 5.0, 3.0),
        Span("collect", WAITING, 6.0, 2.0),
    ]


def test_reports_that_overtake_each_other_make_no_negative_time() -> None:
    # The materializer's report came before the merger's, and its clock runs a little faster.
    times = EpochTimes(0.0, aligned_s=3.0, materialized_s=2.0, collected_s={}, complete_s=2.5, work_s=9.0)
    assert all(span.seconds >= 0.0 for span in times.spans())


def test_an_epoch_that_waits_for_nothing_shows_no_waiting() -> None:
    times = EpochTimes(0.0, 1.0, 4.0, {"fetch-0": 1.0}, complete_s=4.0, work_s=3.0)
    assert WAITING not in [span.name for span in times.spans()]
