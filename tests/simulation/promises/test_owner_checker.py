from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from state.clock import ManualClock
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.owner_checker import OwnerChecker
from tests.simulation.world.schedule import Life

RUNNING, RELEASED = (json.dumps({"released": released}).encode() for released in (False, True))


class Root:
    """A checker, and the lives of its runs."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.checker = OwnerChecker(self.clock)
        self.lives: dict[str, Life] = {}

    def start(self, run: str, *, machine: str = "here", takeover: bool = False, reads: bool = True) -> None:
        self.lives[run] = Life(run)
        self.checker.on_start(run, self.lives[run], machine, takeover=takeover)
        if reads:
            self.checker.on_read(run)

    def own(self, run: str, *, takeover: bool = False) -> None:
        self.start(run, takeover=takeover)
        self.checker.on_write(run, RUNNING)


def test_the_root_of_an_owner_that_has_just_written_is_not_taken() -> None:
    root = Root()
    root.own("one")
    root.clock.advance(10)
    with pytest.raises(PromiseBroken, match="two takes the root from one, which wrote 10 s ago"):
        root.own("two")


@pytest.mark.parametrize(
    ("machine", "silent_s", "ended", "may"),
    [("here", 9, False, True), ("elsewhere", 9, False, False), ("here", 12, False, False), ("here", 1, True, False)],
)
def test_a_run_is_refused_at_once_if_its_machine_sees_the_owner_live_and_write(
    machine: str, silent_s: int, ended: bool, may: bool
) -> None:
    root = Root()
    root.own("one")
    root.clock.advance(silent_s)
    if ended:
        root.lives["one"].end()
    root.start("two", machine=machine)
    with nullcontext() if may else pytest.raises(PromiseBroken, match="refused, and no run has written since it began"):
        root.checker.on_refused("two")


def test_a_silent_owner_that_could_have_written_has_a_fault() -> None:
    root = Root()
    root.own("one")
    root.clock.advance(50)
    with pytest.raises(PromiseBroken, match="one lives, and has not written for 50 s"):
        root.own("two")
    frozen = Root()
    frozen.own("one")
    frozen.lives["one"].frozen = True
    frozen.clock.advance(20)
    frozen.own("two")


def test_a_root_that_was_lost_is_not_owned_again() -> None:
    root = Root()
    root.own("one")
    root.own("two", takeover=True)
    root.checker.on_read("one")
    with pytest.raises(PromiseBroken, match="G5: one lost the root"):
        root.checker.on_write("one", RUNNING)


def test_a_run_that_did_not_write_is_not_the_owner_and_one_that_wrote_is_not_refused() -> None:
    root = Root()
    root.own("one")
    root.start("two", takeover=True)
    with pytest.raises(PromiseBroken, match="two believes that it owns the root, which one owns"):
        root.checker.on_owner("two")
    with pytest.raises(PromiseBroken, match="one owns the root, and was refused"):
        root.checker.on_refused("one")
    root.checker.on_write("one", RUNNING)
    with pytest.raises(PromiseBroken, match="two was to take the root from one, and was refused"):
        root.checker.on_refused("two")


def test_a_lost_run_hears_of_it_within_a_renewal() -> None:
    root = Root()
    root.own("one")
    root.own("two", takeover=True)
    with pytest.raises(PromiseBroken, match=r"one renewed owner\.json after two had become the owner"):
        root.checker.on_renewed("one", "two", lost=False)
    root.clock.advance(60)
    with pytest.raises(PromiseBroken, match="one hears 55 s late"):
        root.checker.on_lost("one")


def test_a_run_that_has_ended_has_released_the_root() -> None:
    root = Root()
    root.own("one")
    with pytest.raises(PromiseBroken, match=r"one has ended, and owner\.json does not show it"):
        root.checker.on_released("one")
    root.checker.on_write("one", RELEASED)
    root.checker.on_released("one")
