"""Commit times of expired epochs: files are kept for their time or a little longer, never for less."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from slackwater.plugins.after_commit.actions import Delete
from slackwater.plugins.after_commit.commit_times import CommitTimes, committed_until
from state.lance.handled_files import ClockChange, CommitTime, HandledFiles
from state.location import Location
from state.tables.record_rows import expiry_delta
from tests.slackwater.plugins.after_commit.real_files import RealFiles

_START = datetime(2026, 11, 30, tzinfo=UTC)
_KEEP_S = 600.0


def at(seconds: float) -> datetime:
    return _START + timedelta(seconds=seconds)


def retained(*commits: CommitTime) -> pa.Table:
    rows = [{"epoch": each.epoch, "committed_at": each.at} for each in commits]
    return pa.Table.from_pylist(rows, pa.schema([("epoch", pa.int64()), ("committed_at", pa.timestamp("us", "UTC"))]))


@pytest.fixture(name="record")
def _record(tmp_path: Path) -> HandledFiles:
    return HandledFiles(Location(str(tmp_path)))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("keep_epochs", [1, 2, 7])
@pytest.mark.parametrize("restarts", [False, True])
def test_an_epoch_is_reached_after_its_time_and_a_little_later_at_most(
    record: HandledFiles, keep_epochs: int, *, restarts: bool
) -> None:
    random, commits, reached = Random(keep_epochs), list[CommitTime](), dict[int, float]()
    times, now_s = CommitTimes(record, [_KEEP_S]), 0.0
    while now_s < 5 * _KEEP_S:
        now_s += random.choice((1.0, 5.0, 30.0))
        commits.append(CommitTime(len(commits) + 1, at(now_s)))
        now_s += random.choice((0.0, 3.0))
        if restarts and random.random() < 0.1:
            times = CommitTimes(record, [_KEEP_S])
        known = times.look(retained(*commits[-keep_epochs:]), at(now_s))
        until = committed_until(known, at(now_s - _KEEP_S), at(now_s))
        for commit in commits[:until]:
            reached.setdefault(commit.epoch, (at(now_s) - commit.at).total_seconds())
    assert min(reached.values()) >= _KEEP_S
    # Two times that are noted differ by a minute or a part of `keep_s`, and then by the time to the next commit.
    latest = _KEEP_S + (60.0 if restarts else _KEEP_S / 32) + 70.0
    assert len(reached) > len(commits) / 2 and max(reached.values()) <= latest


@pytest.mark.more
def test_the_record_gets_a_time_only_if_epochs_expire_early(record: HandledFiles) -> None:
    commits = [CommitTime(number, at(10.0 * number)) for number in range(1, 300)]
    times = CommitTimes(record, [_KEEP_S])
    for count in range(100, 300):
        times.look(retained(*commits[:count]), commits[count - 1].at)
    assert record.commit_times() == [], "the root has the times itself"
    for count in range(100, 300):
        times.look(retained(commits[count - 1]), commits[count - 1].at)
    apart = [later.at - each.at for each, later in zip(record.commit_times(), record.commit_times()[1:], strict=False)]
    assert len(apart) > 20 and min(apart) >= timedelta(minutes=1)


def test_a_tag_on_an_old_epoch_keeps_no_time_from_the_record(record: HandledFiles) -> None:
    tagged, last = CommitTime(1, at(0.0)), CommitTime(9, at(50_000.0))
    CommitTimes(record, [_KEEP_S]).look(retained(tagged, last), at(50_001.0))
    assert record.commit_times() == [last]


def test_files_that_wait_for_no_time_need_no_times(record: HandledFiles) -> None:
    commit = CommitTime(1, at(0.0))
    assert CommitTimes(record, [0.0]).look(retained(commit), at(1.0)) == (commit,)
    assert record.commit_times() == []


def test_what_was_committed_before_a_change_of_the_clock_is_as_old_as_the_change() -> None:
    commits = [CommitTime(1, at(5_000.0)), CommitTime(2, at(10.0)), CommitTime(3, at(20.0))]
    assert committed_until(commits, at(15.0), at(30.0)) == 0
    assert committed_until(commits, at(15.0), at(30.0), ClockChange(1, at(7.0))) == 2
    assert committed_until(commits, at(25.0), at(30.0), ClockChange(1, at(7.0))) == 3


def test_a_commit_time_before_a_change_of_the_clock_counts_unless_it_is_in_the_future() -> None:
    """The clock was set back, and corrected while no run was active: the recorded change seems older than it is."""
    commits = [CommitTime(1, at(5_000.0)), CommitTime(2, at(1_500.0))]
    change = ClockChange(1, at(1_400.0))
    assert committed_until(commits, at(4_900.0), at(5_100.0), change) == 0
    assert committed_until(commits, at(5_000.0), at(5_200.0), change) == 2


def test_a_file_of_an_expired_epoch_is_kept_from_its_commit_on(tmp_path: Path) -> None:
    """An epoch may begin long before its commit, and expire long before its files may be deleted."""
    files = RealFiles(tmp_path)
    files.writer.clock.advance(300)
    first = files.finish(files.write("a.csv", days_ago=1))
    work = files.work(Delete(keep_s=_KEEP_S))
    files.look(work)
    for _ in range(11):
        files.clock.advance(49)
        last = files.commit()
        files.writer.store.amend(expiry_delta([each.epoch for each in files.writer.records if each.epoch < last]))
        files.writer.records[:-1] = []
        files.look(work)
        assert files.present() == {"a.csv"}, "its commit was less than ten minutes ago"
    assert files.look(files.work(Delete(keep_s=_KEEP_S)), after_s=60).handled == 1, "also in the next run"
    assert files.present() == set() and first < last
