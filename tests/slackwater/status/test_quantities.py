"""Tests of numbers for people."""

from __future__ import annotations

import pytest

from slackwater.status.quantities import human_bytes, human_count, human_duration, human_rate, human_seconds


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2.5e12, "2.5 TB"), (9e15, "9000.0 TB")]
)
def test_bytes_for_people(count: float, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999_999, "999,999"), (1_234_567, "1.2 M"), (99_960_000, "100 M"), (10**12, "1.0 T")]
)
def test_counts_fit_their_column(count: int, text: str) -> None:
    assert human_count(count) == text and human_count(1_234_567, 11) == "1,234,567"


@pytest.mark.parametrize(
    ("per_s", "text"), [(0, "0"), (0.04, "0"), (0.06, "0.1"), (12.3, "12"), (999.6, "1.0 k"), (45_234, "45.2 k")]
)
def test_rates_are_short(per_s: float, text: str) -> None:
    assert human_rate(per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.004, "0.00 s"), (9.996, "10.0 s"), (99.96, "100 s"), (599.4, "599 s"), (600, "10 min"),
        (6_000, "1.7 h"), (86_400 * 300, "300 d"),
    ],
)  # fmt: skip
def test_seconds_are_never_wider_than_seven_characters(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text and len(text) <= 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.9, "4 s"), (187, "3 min 07 s"), (19_200, "5 h 20 min"), (86_400 * 3 + 4 * 3_600, "3 d 4 h")],
)
def test_durations_have_two_parts(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
