"""Pieces of work on an epoch become spans."""

from __future__ import annotations

from spark_bridge.work_times import WorkTimes
from state.clock import ManualClock
from state.tables.epoch_trace import Span
from state.tables.stored_rows import next_name, stored_rows_name


def test_work_has_a_span_named_after_its_dataset() -> None:
    clock = ManualClock()
    times = WorkTimes(clock)
    names = ["totals", next_name("hourly"), stored_rows_name("orders")]
    work = times.timing(", again", {name: lambda: clock.advance(2.0) for name in names})
    with times.timed("ingest into Spark"):
        clock.advance(1.0)
    for call in work.values():
        call()
    assert times.seconds == 7.0
    assert times.spans == (
        Span("spark", "ingest into Spark", 0.0, 1.0),
        Span("spark", "totals, again", 1.0, 2.0),
        Span("spark", "hourly, backfill, again", 3.0, 2.0),
        Span("spark", "stored rows of orders, again", 5.0, 2.0),
    )


def test_work_below_a_millisecond_has_no_span() -> None:
    times = WorkTimes(ManualClock())
    with times.timed("analysis of views"):
        pass
    assert times.spans == ()
