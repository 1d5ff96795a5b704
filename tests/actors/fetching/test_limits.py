from __future__ import annotations

import pytest

from actors.fetching.limits import TokenBucket


def test_without_a_limit_nothing_waits() -> None:
    bucket = TokenBucket(None, 0.0)
    bucket.take(1e12)
    assert bucket.wait_s(0.0) == 0.0


def test_the_first_passes_and_the_next_waits_for_what_it_took() -> None:
    bucket = TokenBucket(2.0, 10.0)
    assert bucket.wait_s(10.0) == 0.0
    bucket.take(1)
    assert bucket.wait_s(10.0) == 0.5
    assert bucket.wait_s(10.4) == pytest.approx(0.1)
    assert bucket.wait_s(10.5) == 0.0


def test_what_is_larger_than_a_second_allows_passes_and_is_waited_for() -> None:
    bucket = TokenBucket(100.0, 0.0)
    bucket.take(1_000)
    assert bucket.wait_s(0.0) == 10.0
    bucket.take(-500)
    assert bucket.wait_s(0.0) == 5.0


def test_a_second_is_saved_up_and_no_more() -> None:
    bucket = TokenBucket(10.0, 0.0)
    assert bucket.wait_s(1_000.0) == 0.0
    bucket.take(11)
    assert bucket.wait_s(1_000.0) == pytest.approx(0.1)


def test_the_time_that_is_waited_for_is_enough() -> None:
    for rate in (0.1, 0.3, 3.0, 7.7, 1e9):
        bucket, now_s = TokenBucket(rate, 0.0), 12_345.678
        bucket.wait_s(now_s)
        bucket.take(17 * rate + 1)
        now_s += bucket.wait_s(now_s)
        assert bucket.wait_s(now_s) == 0.0, rate


def test_a_long_time_at_a_rate_brings_what_the_rate_says() -> None:
    bucket, now_s, taken = TokenBucket(3.0, 0.0), 0.0, 0
    while now_s < 100.0:
        bucket.take(1)
        taken += 1
        now_s += bucket.wait_s(now_s)
    assert 300 <= taken <= 301
