"""The time of each barrier, and its load."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace

import pytest

from actors.coordination.barrier_scheduler import BarrierScheduler
from actors.files import Vanished
from actors.protocol.barrier import BarrierKind, Pause, Stop
from actors.protocol.counters import SourceProgress
from actors.protocol.reports import CollectReport, FetchProgress, ListProgress, Progress
from actors.settings import BarrierSettings
from state.epoch import EpochPair
from state.errors import ProtocolError
from tests.repository import REPOSITORY

LIST = ListProgress("list-s", "s")
FETCH = FetchProgress("fetch-0")


_numbers = itertools.count(1)


def tell(made: BarrierScheduler, progress: Progress, now_s: float = 0.0) -> None:
    made.on_progress(progress, next(_numbers), now_s)


def scheduler(max_files_waiting: int = 100, max_in_flight: int = 4) -> BarrierScheduler:
    made = BarrierScheduler(
        settings=BarrierSettings(
            interval_s=1.0, idle_interval_s=0.1, max_in_flight=max_in_flight, max_epoch_bytes=1_000
        ),
        max_files_waiting=max_files_waiting,
        committed=5,
        lists={"list-s": "s"},
        fetchers=["fetch-0"],
    )
    barrier = made.next_barrier(0.0, 10)
    assert barrier is not None and barrier.kind is BarrierKind.INITIAL and barrier.epoch == EpochPair(5, 10)
    made.on_epoch_over(5)
    return made


def reading(activity: int, waiting: int = 1, received: int = 1, unsealed_bytes: int = 0) -> FetchProgress:
    return FetchProgress("fetch-0", activity, received, unsealed_bytes, sources={"s": SourceProgress(waiting=waiting)})


def test_nothing_to_commit_makes_no_barrier() -> None:
    made = scheduler()
    assert made.wait_s(1_000.0) == float("inf")
    assert made.next_barrier(1_000.0, 11) is None


def test_while_files_are_being_read_an_epoch_lasts_the_interval() -> None:
    made = scheduler()
    tell(made, replace(LIST, activity=1, sent=1))
    tell(made, reading(1))
    assert made.wait_s(0.4) == 0.6
    assert made.next_barrier(0.9, 11) is None
    barrier = made.next_barrier(1.0, 11)
    assert barrier is not None and barrier.epoch == EpochPair(10, 11)


def test_when_everything_is_read_the_epoch_ends_soon() -> None:
    made = scheduler()
    tell(made, replace(LIST, activity=1, sent=1))
    tell(made, reading(3, waiting=0))
    assert made.next_barrier(0.1, 11) is not None


def test_a_file_on_its_way_to_the_fetch_actor_is_not_read() -> None:
    made = scheduler()
    tell(made, replace(LIST, activity=2, sent=2))
    tell(made, reading(3, waiting=0, received=1))
    assert not made.is_quiet
    assert made.next_barrier(0.1, 11) is None


def test_what_a_barrier_covers_is_not_committed_again() -> None:
    made = scheduler()
    tell(made, reading(3, waiting=0, received=0))
    assert made.next_barrier(1.0, 11) is not None
    made.on_collect(CollectReport("fetch-0", 10, activity=5))
    tell(made, reading(5, waiting=0, received=0))
    made.on_epoch_over(10)
    assert made.wait_s(100.0) == float("inf")
    tell(made, reading(6, waiting=0, received=0))
    assert made.wait_s(100.0) == 0.0


def test_an_old_report_does_not_undo_a_newer_one() -> None:
    made = scheduler()
    made.on_progress(reading(3, waiting=0), 2, 0.0)
    made.on_progress(reading(3, waiting=1), 1, 0.0)
    assert not any(each.backlog for each in made.fetchers)


def test_many_bytes_end_an_epoch_at_once() -> None:
    made = scheduler()
    tell(made, replace(LIST, activity=1, sent=1))
    tell(made, reading(2, unsealed_bytes=1_000))
    assert made.next_barrier(0.01, 11) is not None


def test_as_many_files_as_an_epoch_may_have_end_it_at_once() -> None:
    made = scheduler()
    tell(made, replace(LIST, activity=1, sent=1))
    tell(made, replace(reading(2), is_full=True))
    assert made.next_barrier(0.01, 11) is not None
    assert made.wait_s(0.02) == float("inf"), "the same report does not end the next one, too"


def test_only_so_many_epochs_are_in_flight() -> None:
    made = scheduler(max_in_flight=2)
    for epoch in (11, 12):
        tell(made, reading(epoch))
        assert made.next_barrier(float(epoch), epoch) is not None
    tell(made, reading(13))
    assert made.next_barrier(100.0, 13) is None
    made.on_epoch_over(10)
    assert made.next_barrier(100.0, 13) is not None


def test_a_list_actor_that_is_held_back_gets_a_barrier_as_soon_as_there_is_room() -> None:
    made = scheduler(max_files_waiting=10)
    tell(made, replace(LIST, activity=10, sent=10, held=5))
    tell(made, reading(10, waiting=10, received=10))
    barrier = made.next_barrier(1.0, 11)
    assert barrier is not None and barrier.list_budget == {"s": 0}
    made.on_collect(CollectReport("fetch-0", 10, activity=10))
    made.on_collect(CollectReport("list-s", 10, activity=10))
    made.on_epoch_over(10)
    assert made.wait_s(50.0) == float("inf"), "nothing moves while the fetch actors have no room"
    tell(made, reading(11, waiting=4, received=10))
    barrier = made.next_barrier(50.0, 12)
    assert barrier is not None and barrier.list_budget == {"s": 6}


def test_a_held_list_actor_is_enough_for_a_barrier_when_there_is_room() -> None:
    made = scheduler(max_files_waiting=10)
    tell(made, replace(LIST, held=5))
    assert made.next_barrier(0.1, 11) is not None


def test_a_mutation_goes_at_once_and_nothing_follows_a_stop() -> None:
    made = scheduler()
    made.request(Pause())
    made.request(Stop())
    first = made.next_barrier(0.0, 11)
    assert first is not None and first.mutation == Pause()
    second = made.next_barrier(0.0, 12)
    assert second is not None and second.is_stop
    tell(made, reading(9))
    assert made.next_barrier(100.0, 13) is None


def test_a_mutation_asked_for_before_the_start_waits_for_the_initial_barrier() -> None:
    made = BarrierScheduler(
        settings=BarrierSettings(), max_files_waiting=1, committed=0, lists={"list-s": "s"}, fetchers=["fetch-0"]
    )
    made.request(Stop())
    first, second = made.next_barrier(0.0, 1), made.next_barrier(0.0, 2)
    assert first is not None and first.mutation is None and first.kind is BarrierKind.INITIAL
    assert second is not None and second.is_stop


def test_a_closed_source_gets_no_budget_and_makes_no_barrier() -> None:
    made = scheduler()
    made.closed = frozenset({"s"})
    tell(made, replace(LIST, held=5))
    assert made.wait_s(100.0) == float("inf")
    made.closed = frozenset()
    barrier = made.next_barrier(100.0, 11)
    assert barrier is not None and barrier.list_budget == {"s": 100}


def test_what_has_vanished_is_told_to_the_list_actors_once() -> None:
    made = scheduler()
    gone = Vanished("s", "a", b"version1")
    made.on_collect(CollectReport("fetch-0", 5, vanished=(gone,)))
    tell(made, reading(1))
    first = made.next_barrier(1.0, 11)
    tell(made, reading(2))
    second = made.next_barrier(2.0, 12)
    assert first is not None and first.vanished == (gone,)
    assert second is not None and second.vanished == ()


def test_word_of_what_has_vanished_is_reason_enough_for_a_barrier() -> None:
    made = scheduler()
    made.on_collect(CollectReport("fetch-0", 5, vanished=(Vanished("s", "a", b"version1"),)))
    assert made.next_barrier(1.0, 11) is not None
    made.on_epoch_over(10)
    assert made.wait_s(100.0) == float("inf")


def test_new_views_are_something_to_commit_after_the_initial_barrier_too() -> None:
    made = BarrierScheduler(
        settings=BarrierSettings(), max_files_waiting=1, committed=0, lists={"list-s": "s"}, fetchers=["fetch-0"]
    )
    made.on_declared()
    assert made.next_barrier(0.0, 1) is not None
    assert made.next_barrier(5.0, 2) is not None
    assert made.next_barrier(9.0, 3) is None


def test_an_epoch_that_is_over_out_of_order_is_an_error() -> None:
    made = scheduler()
    tell(made, reading(1))
    made.next_barrier(1.0, 11)
    with pytest.raises(ProtocolError, match="epoch 11 is over before epoch 10"):
        made.on_epoch_over(11)


class Sources:
    """Several sources with one fetch actor, and Spark, which works two seconds on an epoch."""

    def __init__(self, *names: str, work_s: float = 2.0) -> None:
        self.made = BarrierScheduler(
            settings=BarrierSettings(interval_s=1.0, idle_interval_s=0.1),
            max_files_waiting=100,
            committed=5,
            lists={f"list-{name}": name for name in names},
            fetchers=["fetch-0"],
        )
        self._work_s, self._epoch = work_s, 5
        self._lists = {name: ListProgress(f"list-{name}", name, period_s=0.5) for name in names}
        self._fetcher = FetchProgress("fetch-0")
        self.barrier(0.0)
        self.over()

    def lists(self, name: str, now_s: float, *, files: int = 0, unsettled: int = 0) -> None:
        """A listing ends, and hands files on."""
        before = self._lists[name]
        progress = replace(
            before,
            activity=before.activity + files,
            sent=before.sent + files,
            listings=before.listings + 1,
            unsettled=unsettled,
        )
        self._lists[name] = progress
        tell(self.made, progress, now_s)

    def reads(self, now_s: float, waiting: int = 0) -> None:
        """The fetch actor has read all files but these."""
        received = sum(each.sent for each in self._lists.values())
        sources = {"a": SourceProgress(waiting=waiting)}
        activity = self._fetcher.activity + 1
        self._fetcher = FetchProgress("fetch-0", activity, received, sources=sources)
        tell(self.made, self._fetcher, now_s)

    def arrives(self, name: str, now_s: float) -> None:
        """A listing shows a file, which is read at once."""
        self.lists(name, now_s, files=1)
        self.reads(now_s)

    def waits(self, now_s: float) -> float:
        return round(self.made.wait_s(now_s), 3)

    def barrier(self, now_s: float) -> None:
        """A barrier is due."""
        self._epoch += 5
        assert self.made.next_barrier(now_s, self._epoch) is not None, f"no barrier at {now_s}"

    def done(self) -> None:
        """Spark has written the views of the epoch in flight."""
        report = CollectReport("materializer", self.made.last_in_flight, work_s=self._work_s)
        self.made.on_collect(report)

    def over(self) -> None:
        """The epoch in flight is committed."""
        self.done()
        self.made.on_epoch_over(self.made.last_in_flight)


def test_after_a_rest_a_barrier_waits_until_the_listed_files_are_read() -> None:
    made = Sources("a")
    made.lists("a", 50.0, files=6)
    made.reads(50.1, waiting=6)
    assert made.waits(50.1) == 0.9
    made.reads(50.4)
    assert made.waits(50.4) == 0.0


def test_a_barrier_waits_no_longer_than_half_of_the_work_on_an_epoch() -> None:
    made = Sources("a", work_s=0.6)
    made.lists("a", 50.0, files=6)
    made.reads(50.0, waiting=6)
    assert made.waits(50.0) == 0.3
    made.reads(50.3, waiting=5)
    made.barrier(50.3)


def test_files_that_never_stop_coming_are_committed_every_interval() -> None:
    made, barriers = Sources("a", "b"), [0.0]
    for hundredth in range(1, 1_001):
        now_s = hundredth / 100
        made.lists("ab"[hundredth % 2], now_s, files=1, unsettled=1)
        made.reads(now_s, waiting=1)
        if made.waits(now_s) == 0.0:
            made.barrier(now_s)
            made.over()
            barriers.append(now_s)
    assert {round(after - before, 2) for before, after in itertools.pairwise(barriers)} == {1.01}


def test_after_quick_epochs_nothing_is_waited_for() -> None:
    made = Sources("a", "b", work_s=0.01)
    made.lists("b", 49.9, unsettled=3)
    made.arrives("a", 50.0)
    assert made.waits(50.0) == 0.1


def test_while_spark_works_a_barrier_waits_for_company() -> None:
    made = Sources("a", work_s=0.8)
    made.arrives("a", 50.0)
    made.barrier(50.0)
    made.arrives("a", 50.2)
    assert made.waits(50.2) == 0.4, "three quarters of the work of Spark on the epoch before"
    made.done()
    assert made.waits(50.3) == 0.0, "Spark is free, and the commit needs none"


def test_a_barrier_waits_for_local_files_that_the_next_listing_hands_on() -> None:
    made = Sources("a", "b")
    made.lists("b", 49.8, unsettled=2)
    made.arrives("a", 50.0)
    assert made.waits(50.0) == 1.0
    made.lists("b", 50.7, files=2)
    made.reads(50.7)
    assert made.waits(50.7) == 0.0


def test_a_file_that_grows_in_every_listing_is_waited_for_once() -> None:
    made = Sources("a", "b")
    made.lists("b", 49.8, unsettled=1)
    made.arrives("a", 50.0)
    made.barrier(51.0)
    made.over()
    made.lists("b", 59.8, unsettled=1)
    made.arrives("a", 60.0)
    assert made.waits(60.0) == 0.0


def test_a_source_whose_files_came_right_behind_a_barrier_is_waited_for_the_next_time() -> None:
    made = Sources("a", "b")
    made.arrives("a", 50.0)
    made.barrier(50.0)
    made.over()
    made.arrives("b", 50.3)
    made.barrier(50.3)
    made.over()
    made.lists("b", 69.8)
    made.arrives("a", 70.0)
    assert made.waits(70.0) == 1.0
    made.arrives("b", 70.3)
    assert made.waits(70.3) == 0.0


def test_sources_whose_files_came_in_one_epoch_are_waited_for_in_any_order() -> None:
    made = Sources("a", "b")
    made.lists("a", 50.0, files=1)
    made.arrives("b", 50.0)
    made.barrier(50.0)
    made.over()
    made.lists("a", 69.8)
    made.arrives("b", 70.0)
    assert made.waits(70.0) == 1.0
    made.arrives("a", 70.3)
    assert made.waits(70.3) == 0.0


def test_a_listing_without_files_ends_the_expectation() -> None:
    made = Sources("a", "b")
    made.arrives("a", 50.0)
    made.barrier(50.0)
    made.over()
    made.arrives("b", 50.3)
    made.barrier(50.3)
    made.over()
    made.lists("b", 69.8)
    made.arrives("a", 70.0)
    made.lists("b", 70.3)
    made.barrier(70.3)
    made.over()
    made.lists("b", 79.8)
    made.arrives("a", 80.0)
    assert made.waits(80.0) == 0.0


def test_a_source_whose_listing_is_far_off_is_not_waited_for() -> None:
    made = Sources("a", "b")
    made._lists["b"] = replace(made._lists["b"], period_s=10.0)
    made.arrives("a", 50.0)
    made.barrier(50.0)
    made.over()
    made.arrives("b", 53.0)
    made.barrier(53.0)
    made.over()
    made.lists("b", 63.0)
    made.arrives("a", 65.0)
    assert made.waits(65.0) == 0.0


def test_a_closed_source_is_not_waited_for() -> None:
    made = Sources("a", "b")
    made.made.closed = frozenset({"b"})
    made.lists("b", 49.8, unsettled=2)
    made.arrives("a", 50.0)
    assert made.waits(50.0) == 0.0


def test_the_files_of_a_closed_source_that_wait_keep_no_epoch_open() -> None:
    made = Sources("a")
    made.lists("a", 50.0, files=1)
    made.reads(50.0, waiting=1)
    assert made.waits(50.0) == 1.0
    made.made.closed = frozenset({"a"})
    assert made.waits(50.0) == 0.0


_ENDLESS = """
from actors.coordination.barrier_scheduler import BarrierScheduler
from actors.settings import BarrierSettings

made = BarrierScheduler(
    settings=BarrierSettings(), max_files_waiting=1, committed=1, lists={"list-s": "s"}, fetchers=["fetch-0"]
)
for epoch in range(2, 22):
    made.on_declared()
    barrier = made.next_barrier(epoch * 10.0, epoch)
    if barrier is None:
        raise SystemExit(f"no barrier after epoch {epoch - 1}")
    made.on_epoch_over(barrier.epoch.prev)
print("optimised" if not __debug__ else "plain")
"""


def test_barriers_go_on_when_python_leaves_asserts_out() -> None:
    command = [sys.executable, "-O", "-c", _ENDLESS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60.0, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "optimised\n", "")
