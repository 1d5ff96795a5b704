"""Watermarks: they move when everything is finished that was in the bucket at a mark."""

from __future__ import annotations

import itertools
import json

import pytest

from actors.coordination.watermarks import Watermarks
from actors.protocol.barrier import Barrier
from actors.protocol.reports import CollectReport
from actors.sources.event_time import EventTime
from state.epoch import EpochPair
from state.tables.records import SourceWatermark


class Source:
    """The epochs of one source with a lateness of 10."""

    def __init__(self, committed: SourceWatermark = SourceWatermark("s")) -> None:
        self._marks = itertools.count(2)
        self.made = Watermarks({"s": EventTime("at", 10)}, {"list-s": "s"}, {"s": committed}, lambda: next(self._marks))
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
        delta = self.made.on_epoch(barrier, reports)
        rows = [change.fields["definition"] for change in delta.changes.get("catalog", {}).values()]
        self.recorded = json.loads(rows[0]) if rows else None
        return self.made.latest.get("s")


def test_a_backlog_moves_the_watermark_when_all_of_it_is_read() -> None:
    source = Source()
    assert source.over(1, 0, since=1, e1=900) is None, "the listing goes on"
    assert source.over(2, 1, since=1, e1=100) is None, "a file of the listing is not finished"
    assert source.over(3, 1, since=3, e2=50) == 890, "a file that is listed later does not hold it back"


def test_rows_of_later_files_count_with_the_next_mark() -> None:
    source = Source()
    source.over(1, 1, since=1, e1=100)
    assert source.over(2, 1, e2=700) == 90, "other files of the listing after the mark may be older than 700"
    assert source.made.mark() == 2
    assert source.over(3, 1) == 90, "the mark is not listed"
    assert source.over(4, 2) == 690


def test_no_mark_is_made_while_no_row_would_move_the_watermark() -> None:
    source = Source()
    assert source.made.mark() is None, "the run begins with a mark"
    source.over(1, 1, e1=100)
    assert source.made.mark() is None
    source.over(2, 1, e2=100)
    assert source.made.mark() is None
    source.over(3, 1, e3=101)
    assert (source.made.mark(), source.made.mark()) == (2, None)


def test_a_watermark_never_goes_back_and_a_crash_keeps_what_rows_have_shown() -> None:
    source = Source(SourceWatermark("s", at=500, high=800))
    assert source.made.latest == {"s": 500}
    assert source.over(1, 0) == 500
    assert source.over(2, 1, e1=90) == 790, "the rows before the crash count"
    later = Source(SourceWatermark("s", at=500, high=505))
    assert later.over(1, 1) == 500, "a greater lateness does not take it back"
    assert later.made.mark() is None


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
