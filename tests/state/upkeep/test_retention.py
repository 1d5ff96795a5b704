from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.errors import SettingsError
from state.upkeep.retention import RetentionSettings, Thinning, expired

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MINUTES_THEN_HOURS = (Thinning(one_per_s=60, for_s=86_400), Thinning(one_per_s=3_600, for_s=30 * 86_400))


def ages(*seconds: float) -> list[tuple[int, datetime]]:
    """Epochs numbered by their order, with their ages in seconds."""
    times = sorted(NOW - timedelta(seconds=each) for each in seconds)
    return list(enumerate(times, 1))


def test_by_default_the_last_hour_and_at_least_a_hundred_stay() -> None:
    every = ages(*range(0, 10_000, 10))
    gone = expired(every, now=NOW, retention=RetentionSettings())
    assert gone == [epoch for epoch, at in every if NOW - at > timedelta(hours=1)]
    sparse = ages(*range(0, 150 * 86_400, 86_400))
    assert expired(sparse, now=NOW, retention=RetentionSettings()) == list(range(1, 51))


def test_thinning_keeps_the_last_of_each_minute_of_a_day_and_of_each_hour_of_a_month() -> None:
    every = ages(*range(0, 40 * 86_400, 600), *range(0, 2 * 86_400, 20))
    retention = RetentionSettings(keep_s=3_600, keep_epochs=1, thin=MINUTES_THEN_HOURS)
    gone = set(expired(every, now=NOW, retention=retention))
    kept = [at for epoch, at in every if epoch not in gone]
    minutes = [at for at in kept if timedelta(hours=1) < NOW - at <= timedelta(days=1)]
    hours = [at for at in kept if timedelta(days=1) < NOW - at]
    assert len(minutes) == 23 * 60
    assert {at.second for at in minutes} == {40}, "the last of its minute"
    assert len(hours) == 29 * 24
    assert {at.replace(second=0).minute for at in hours if NOW - at > timedelta(days=2)} == {50}
    assert min(kept) >= NOW - timedelta(days=30)


def test_tagged_and_pinned_epochs_stay_whatever_their_age() -> None:
    every = ages(*range(0, 100_000, 100))
    retention = RetentionSettings(keep_s=0, keep_epochs=1)
    assert expired(every, now=NOW, retention=retention, pinned={3, 77}) == [
        epoch for epoch, _ in every[:-1] if epoch not in (3, 77)
    ]


@given(
    seconds=st.lists(st.integers(0, 90_000), max_size=60),
    later=st.lists(st.integers(0, 90_000), max_size=4),
    keep_s=st.integers(0, 5_000),
    keep_epochs=st.integers(1, 5),
    thin=st.lists(st.tuples(st.integers(1, 4_000), st.integers(0, 60_000)), max_size=2),
)
def test_what_a_rule_keeps_it_keeps_when_asked_in_between(
    seconds: list[int], later: list[int], keep_s: int, keep_epochs: int, thin: list[tuple[int, int]]
) -> None:
    rules = tuple(Thinning(one_per_s=each, for_s=for_s) for each, for_s in thin)
    retention = RetentionSettings(keep_s=keep_s, keep_epochs=keep_epochs, thin=rules)
    every = ages(*seconds)
    now = NOW + timedelta(seconds=sum(later))
    at_once = set(expired(every, now=now, retention=retention))
    left, clock = every, NOW
    for step in [0, *later]:
        clock += timedelta(seconds=step)
        gone = set(expired(left, now=clock, retention=retention))
        left = [each for each in left if each[0] not in gone]
        if every:
            assert every[-1] in left
    assert {epoch for epoch, _ in every} - {epoch for epoch, _ in left} == at_once


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("keep_s", -1),
        ("keep_s", float("nan")),
        ("keep_s", "1h"),
        ("keep_epochs", 0),
        ("keep_epochs", 2.5),
        ("keep_epochs", True),
        ("thin", [Thinning(one_per_s=60, for_s=60)]),
        ("thin", ((60, 86_400),)),
    ],
)
def test_an_impossible_retention_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=option):
        RetentionSettings(**{option: value})


@pytest.mark.parametrize(("option", "value"), [("one_per_s", 0), ("one_per_s", -1), ("for_s", float("inf"))])
def test_an_impossible_rule_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=option):
        Thinning(**{"one_per_s": 1, "for_s": 1, option: value})
