"""Watermarks: they move when everything is finished that was in the bucket at a mark."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta

import pytest

from actors.coordination.watermarks import Watermarks
from actors.protocol.barrier import Barrier
from actors.protocol.reports import CollectReport
from actors.sources.event_time import EventTime
from state.epoch import EpochPair
from state.tables.records import SourceWatermark

HOUR_S = 3600.0
HOUR = 3_600_000_000


class Source:
    """The epochs of one source with a lateness of 10; the clocks begin at 0."""

    def __init__(self, committed: SourceWatermark = SourceWatermark("s"), idle_us: int | None = None) -> None:
        self._marks, self.now_s = itertools.count(2), 0.0
        event_time = EventTime(
            "at",
            lateness=timedelta(microseconds=10),
            idle=None if idle_us is None else timedelta(microseconds=idle_us),
        )
        self.made = Watermarks(
            {"s": event_time},
            {"list-s": "s"},
            {"s": committed},
            lambda: next(self._marks),
            lambda: round(self.now_s * 1_000_000),
            0.0,
        )
        self.recorded: dict[str, int | None] | None = None

    def over(self, epoch: int, mark: int, since: int | None = None, **times: int) -> int | None:
        """The watermark after an epoch; `e1=30` says that a row of a file that epoch 1 has listed came at 30."""
        barrier = Barrier(EpochPair(prev=epoch, curr=epoch + 1), watermarks=self.made.latest)
        came = {int(name[1:]): high for name, high in times.items()}
        reports = {
            "list-s": CollectReport("list-s", epoch, complete_mark=mark),
            "fetch-0": CollectReport("fetch-0", epoch, unfinished_since={} if since is None else {"s": since}),
            "fetch-1": CollectReport("fetch-1", epoch, event_times={"s": came} if came else {}),
        }
        delta = self.made.on_epoch(barrier, reports, self.now_s)
        rows = [change.fields["definition"] for change in delta.changes.get("catalog", {}).values()]
        self.recorded = json.loads(rows[0]) if rows else None
        return self.made.latest.get("s")

    def mark(self) -> int | None:
        return self.made.mark(self.now_s)


def test_a_backlog_moves_the_watermark_when_all_of_it_is_read() -> None:
    source = Source()
    assert source.over(1, 0, since=1, e1=900) is None, "the listing goes on"
    assert source.over(2, 1, since=1, e1=100) is None, "a file of the listing is not finished"
    assert source.over(3, 1, since=3, e2=50) == 890, "a file that is listed later does not hold it back"


def test_rows_of_later_files_count_with_the_next_mark() -> None:
    source = Source()
    source.over(1, 1, since=1, e1=100)
    assert source.over(2, 1, e2=700) == 90, "other files of the listing after the mark may be older than 700"
    assert source.mark() == 2
    assert source.over(3, 1) == 90, "the mark is not listed"
    assert source.over(4, 2) == 690


def test_no_mark_is_made_while_no_row_would_move_the_watermark() -> None:
    source = Source()
    assert source.mark() is None, "the run begins with a mark"
    source.over(1, 1, e1=100)
    assert source.mark() is None
    source.over(2, 1, e2=100)
    assert source.mark() is None
    source.over(3, 1, e3=101)
    assert (source.mark(), source.mark()) == (2, None)


def test_a_watermark_never_goes_back_and_a_crash_keeps_what_rows_have_shown() -> None:
    source = Source(SourceWatermark("s", at=500, high=800))
    assert source.made.latest == {"s": 500}
    assert source.over(1, 0) == 500
    assert source.over(2, 1, e1=90) == 790, "the rows before the crash count"
    later = Source(SourceWatermark("s", at=500, high=505))
    assert later.over(1, 1) == 500, "a greater lateness does not take it back"
    assert later.mark() is None


def test_the_epoch_records_the_watermark_in_force_and_what_its_rows_have_shown() -> None:
    source = Source()
    source.over(1, 1, e1=100)
    assert source.recorded == {"at": None, "high": 100}
    source.over(2, 1)
    assert source.recorded == {"at": 90, "high": 100}, "its barrier has carried the watermark"
    source.over(3, 1)
    assert source.recorded is None


@pytest.mark.parametrize("high", [-(10**18), -62_135_596_800_000_000])
def test_a_watermark_is_a_time_that_can_be_shown(high: int) -> None:
    source = Source()
    assert source.over(1, 1, e1=high) == -62_135_596_800_000_000


def test_the_watermark_of_an_idle_source_follows_the_clock() -> None:
    source = Source(idle_us=HOUR)
    assert source.over(1, 1, e1=100) == 90
    source.now_s = HOUR_S
    assert source.made.idle_in_s(source.now_s) > 0 and source.mark() is None, "a quarter of an hour of it is one step"
    source.now_s = 2 * HOUR_S
    assert source.made.idle_in_s(source.now_s) <= 0 and source.mark() == 2
    assert source.made.idle_in_s(source.now_s) == float("inf"), "the mark is waited for"
    source.now_s += 100
    assert source.over(2, 1) == 90, "the mark is not listed"
    assert source.over(3, 2) == HOUR, "the time of the mark, less the idle time"
    assert source.made.idle_in_s(source.now_s) == pytest.approx(HOUR_S / 4 - 100)
    assert source.recorded is None and source.over(4, 2) == HOUR
    assert source.recorded == {"at": HOUR, "high": 100}


def test_a_source_to_which_rows_come_is_not_idle() -> None:
    source = Source(idle_us=HOUR)
    source.over(1, 1)
    source.now_s = 2 * HOUR_S
    assert source.mark() == 2
    assert source.over(2, 1, since=1, e1=100) is None, "a row comes before the mark is reached"
    assert source.over(3, 2, e3=100) == 90
    source.now_s = 3 * HOUR_S - 1
    assert source.mark() is None, "the last row is not an hour ago"
    source.now_s = 3 * HOUR_S
    assert source.mark() == 3


def test_a_file_that_is_not_finished_holds_an_idle_source_back() -> None:
    source = Source(idle_us=HOUR)
    source.over(1, 1)
    source.now_s = 2 * HOUR_S
    assert source.mark() == 2
    assert source.over(2, 2, since=1) is None
    assert source.over(3, 2, since=3) == HOUR


def test_an_idle_source_does_not_take_back_a_watermark_ahead_of_the_clock() -> None:
    source = Source(SourceWatermark("s", at=9 * HOUR, high=9 * HOUR), idle_us=HOUR)
    source.over(1, 1)
    source.now_s = 2 * HOUR_S
    assert source.mark() is None
    assert source.made.idle_in_s(source.now_s) == pytest.approx(8.25 * HOUR_S)
    source.now_s = 10.25 * HOUR_S
    assert source.mark() == 2
    assert source.over(2, 2) == 9.25 * HOUR
