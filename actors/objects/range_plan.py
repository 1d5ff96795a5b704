"""Which ranges to request for the bytes that are wanted."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]
"""Bytes of an object, from the first (inclusive) to the second (exclusive)."""


def range_plan(wanted: Iterable[Range], *, max_gap_bytes: int, max_span_bytes: int) -> list[Range]:
    """Ranges that contain all wanted bytes, each byte at most once, in order.

    No plan with the same limits has fewer of them: each begins at the first byte that the ones before lack, and goes as
    far as it may.

    Args:
        wanted: in any order; they may overlap.
        max_gap_bytes: unwanted bytes between two wanted ones that are rather read than skipped.
        max_span_bytes: no range is longer.
    """
    plan: list[Range] = []
    for start, end in sorted(each for each in wanted if each[0] < each[1]):
        if plan:
            first, last = plan[-1]
            start = max(start, last)
            if start < end and start - last <= max_gap_bytes and first + max_span_bytes > start:
                last = min(end, first + max_span_bytes)
                plan[-1] = (first, last)
                start = last
        while start < end:
            last = min(end, start + max_span_bytes)
            plan.append((start, last))
            start = last
    return plan
