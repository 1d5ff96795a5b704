"""Tests of the thread of a loop: it takes turns until the end, and keeps the error that ends it."""

from __future__ import annotations

import threading

from slackwater.running.loop_thread import LoopThread, Turn

NEVER_S = 3_600.0


def test_turns_follow_until_the_loop_is_over() -> None:
    turns = [Turn.BUSY, Turn.IDLE, Turn.WAITS, Turn.OVER, Turn.BUSY]
    thread = LoopThread("loop", lambda: turns.pop(0), poll_s=0.0)
    thread.join()
    assert (turns, thread.failure) == ([Turn.BUSY], None)


def test_an_error_ends_the_loop_and_is_kept() -> None:
    def fails() -> Turn:
        raise KeyError("a bug")

    thread = LoopThread("loop", fails, poll_s=0.0)
    thread.join()
    assert isinstance(thread.failure, KeyError)


def test_an_exit_within_a_turn_is_an_error_and_no_silence() -> None:
    def leaves() -> Turn:
        raise SystemExit(3)

    thread = LoopThread("loop", leaves, poll_s=0.0)
    thread.join()
    assert "SystemExit ended the loop" in str(thread.failure)


def test_the_end_does_not_wait_for_the_next_poll() -> None:
    taken = threading.Event()

    def waits() -> Turn:
        taken.set()
        return Turn.WAITS

    thread = LoopThread("loop", waits, NEVER_S)
    taken.wait()
    thread.begin_end()
    thread.join()
    assert thread.failure is None
