"""The number of fetch actors grows and shrinks with the workload, without oscillation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.coordination.autoscaler import Autoscaler, ScalingDecision, Workload

STEP_S = 1.0


class Work:
    """Fetch actors that read at a fixed rate each, in files a second, from the files that arrive."""

    def __init__(self, autoscaler: Autoscaler, num_fetchers: int, *, each_reads: float) -> None:
        self.autoscaler, self.num_fetchers, self.each_reads = autoscaler, num_fetchers, each_reads
        self.waiting = self.finished = 0.0
        self.now_s = 100.0
        self.decisions: list[ScalingDecision] = []
        self.is_held_back = False

    def arrive(self, seconds: float, per_second: Callable[[float], float]) -> None:
        for _ in range(int(seconds / STEP_S)):
            self.now_s += STEP_S
            self.waiting += per_second(self.now_s) * STEP_S
            read = 0.0 if self.is_held_back else min(self.waiting, self.num_fetchers * self.each_reads * STEP_S)
            self.waiting -= read
            self.finished += read
            workload = Workload(self.num_fetchers, int(self.waiting), int(self.finished), self.is_held_back)
            decision = self.autoscaler.on_workload(self.now_s, workload)
            if decision is not None:
                self.decisions.append(decision)
                self.num_fetchers = decision.num_fetchers

    @property
    def numbers(self) -> list[int]:
        return [decision.num_fetchers for decision in self.decisions]


def work(fewest: int = 1, most: int = 8, *, at_first: int = 1, each_reads: float = 20.0) -> Work:
    return Work(Autoscaler(fewest, most), at_first, each_reads=each_reads)


def test_a_steady_load_makes_at_most_one_decision() -> None:
    for load in (0.0, 5.0, 19.0, 25.0, 35.0):
        made = work()
        made.arrive(6 * 3600, lambda _: load)  # noqa: B023
        assert made.numbers == ([2] if load > 20 else []), load


def test_a_heavy_load_is_met_by_doubling_up_to_the_limit_and_then_nothing_changes() -> None:
    made = work(most=6)
    made.arrive(4 * 3600, lambda _: 110.0)
    assert made.numbers == [2, 4, 6]
    assert "files wait" in made.decisions[0].reason


@pytest.mark.more
def test_a_load_that_comes_and_goes_is_not_followed_to_and_fro() -> None:
    for period_s in (10, 60, 240, 500):
        made = work()
        made.arrive(6 * 3600, lambda now_s: 70.0 if now_s % period_s < period_s / 2 else 0.0)  # noqa: B023
        assert made.numbers == sorted(made.numbers) and len(made.numbers) <= 2, (period_s, made.numbers)


def test_after_a_quiet_time_half_as_many_are_left_until_the_fewest() -> None:
    made = work(fewest=2, at_first=8)
    made.arrive(3600, lambda _: 1.0)
    assert made.numbers == [4, 2]
    made.arrive(24 * 3600, lambda _: 1.0)
    assert made.numbers == [4, 2], "and there it stays"


def test_a_fetch_actor_stays_if_the_others_could_not_do_its_work() -> None:
    made = work()
    made.arrive(600, lambda _: 70.0)
    assert made.num_fetchers == 4
    made.arrive(6 * 3600, lambda _: 30.0)
    assert made.num_fetchers == 4, "two can read 40 a second, with nothing to spare"
    made.arrive(3600, lambda _: 15.0)
    assert made.num_fetchers == 2


def test_what_holds_the_readers_back_is_no_reason_for_more_of_them() -> None:
    made = work()
    made.is_held_back = True
    made.arrive(3600, lambda _: 100.0)
    assert made.numbers == []
    made.is_held_back = False
    made.arrive(60, lambda _: 0.0)
    assert made.numbers[0] == 2


def test_one_number_leaves_nothing_to_decide() -> None:
    made = work(fewest=1, most=1)
    made.arrive(3600, lambda _: 1_000.0)
    assert made.numbers == [] and not made.autoscaler.is_on and made.autoscaler.wake_s(0.0) is None
