"""Tests of the wait for the next epoch."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from actors.hosting.awaited_epoch import AwaitedEpoch
from actors.protocol.barrier import Barrier, BarrierKind
from actors.protocol.reports import EpochBlocks
from state.epoch import EpochPair

EPOCH = EpochBlocks(Barrier(EpochPair(1, 2), BarrierKind.CHECKPOINT), {})
LONG_S = 20.0


class Merger:
    def __init__(self) -> None:
        self.calls: list[Future[EpochBlocks]] = []

    def take(self) -> Future[EpochBlocks]:
        self.calls.append(Future())
        return self.calls[-1]


def test_an_epoch_ends_the_wait_and_the_next_wait_makes_a_new_call() -> None:
    merger = Merger()
    awaited = AwaitedEpoch(merger.take)
    assert awaited.within(0) is None
    threading.Timer(0.05, lambda: merger.calls[0].set_result(EPOCH)).start()
    assert awaited.within(LONG_S) is EPOCH
    assert awaited.within(0) is None
    assert len(merger.calls) == 2


def test_a_wake_ends_the_present_wait_and_one_before_the_wait_is_not_lost() -> None:
    merger = Merger()
    awaited = AwaitedEpoch(merger.take)
    began_s = time.monotonic()
    threading.Timer(0.05, awaited.wake).start()
    assert awaited.within(LONG_S) is None
    awaited.wake()
    assert awaited.within(LONG_S) is None
    assert time.monotonic() - began_s < LONG_S / 2
    assert len(merger.calls) == 1


def test_a_wait_without_news_lasts_its_time() -> None:
    awaited = AwaitedEpoch(Merger().take)
    awaited.wake()
    assert awaited.within(LONG_S) is None
    began_s = time.monotonic()
    assert awaited.within(0.1) is None
    assert time.monotonic() - began_s >= 0.1


def test_the_error_of_the_call_is_raised() -> None:
    merger = Merger()
    awaited = AwaitedEpoch(merger.take)
    assert awaited.within(0) is None
    merger.calls[0].set_exception(ValueError("dead"))
    with pytest.raises(ValueError, match="dead"):
        awaited.within(LONG_S)
