from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.objects.ranges import Range, range_plan

_ranges = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 60)).map(lambda each: (each[0], sum(each))), max_size=12
)


def bytes_of(ranges: list[Range]) -> list[int]:
    return [at for start, end in ranges for at in range(start, end)]


def naive(wanted: list[Range], max_span_bytes: int) -> int:
    """One request for each run of wanted bytes, or several if it is longer than a request may be."""
    needed = sorted(set(bytes_of(wanted)))
    starts = [at for at in needed if at - 1 not in set(needed)]
    runs = [sum(1 for at in needed if start <= at and set(range(start, at)) <= set(needed)) for start in starts]
    return sum(-(-run // max_span_bytes) for run in runs)


@pytest.mark.more
@given(_ranges, st.integers(0, 40), st.integers(1, 80))
def test_every_wanted_byte_is_covered_none_twice_and_never_with_more_requests_than_one_a_range(
    wanted: list[Range], max_gap_bytes: int, max_span_bytes: int
) -> None:
    plan = range_plan(wanted, max_gap_bytes=max_gap_bytes, max_span_bytes=max_span_bytes)
    covered, needed = bytes_of(plan), set(bytes_of(wanted))
    assert needed <= set(covered)
    assert len(covered) == len(set(covered))
    assert plan == sorted(plan)
    assert all(0 < end - start <= max_span_bytes for start, end in plan)
    assert all(start in needed and end - 1 in needed for start, end in plan)
    assert len(plan) <= naive(wanted, max_span_bytes)
    unwanted = [at not in needed for at in covered]
    assert "".join("x" if each else "." for each in unwanted).find("x" * (max_gap_bytes + 1)) < 0


@pytest.mark.parametrize(
    ("wanted", "plan"),
    [
        ([], []),
        ([(5, 5)], []),
        ([(0, 4), (6, 8)], [(0, 8)]),
        ([(0, 4), (7, 9)], [(0, 4), (7, 9)]),
        ([(6, 8), (0, 4), (2, 5)], [(0, 8)]),
        ([(0, 25)], [(0, 10), (10, 20), (20, 25)]),
        ([(0, 8), (9, 19)], [(0, 10), (10, 19)]),
        ([(0, 9), (11, 12)], [(0, 9), (11, 12)]),
    ],
)
def test_plans_with_gaps_of_two_and_spans_of_ten(wanted: list[Range], plan: list[Range]) -> None:
    assert range_plan(wanted, max_gap_bytes=2, max_span_bytes=10) == plan
