"""Which neighbours are folded into one: tiers, so that each row is written again only a few times in its life.

The policy is that of Lucene's `LogMergePolicy`, on pieces that have an order and keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

FOLD_FACTOR = 16


def next_run(sizes: Sequence[int], *, floor: int, full: int, factor: int = FOLD_FACTOR) -> range | None:
    """The next neighbours to fold into one, or None while there is nothing to gain.

    A piece of size s is in tier log(s / floor) to the base `factor`; all smaller than `floor` are in the lowest.  When
    `factor` pieces of a tier are there, with nothing larger between them, they become one piece of the next.  So n
    pieces of equal size cost O(n log n) in all, and leave fewer than `factor` in each tier.

    Args:
        sizes: of all pieces, in their order; new ones come at the end.
        floor: pieces below this cost more to keep apart than to write again.
        full: a run is never larger than this, and a piece of half of it is left alone.
        factor: how many make one.

    Returns:
        Positions in `sizes`, at least two of them.
    """
    begin = next((at + 1 for at in reversed(range(len(sizes))) if sizes[at] * 2 > full), 0)
    tiers = [_tier(size, floor, factor) for size in sizes]
    for tier in sorted(set(tiers[begin:])):
        after_larger = next((at + 1 for at in reversed(range(begin, len(sizes))) if tiers[at] > tier), begin)
        members = [at for at in range(after_larger, len(sizes)) if tiers[at] == tier]
        if len(members) >= factor:
            run = _within(range(members[0], members[-1] + 1), sizes, full)
            if len(run) > 1:
                return run
    return None


def _tier(size: int, floor: int, factor: int) -> int:
    tier = 0
    while size >= floor:
        size //= factor
        tier += 1
    return tier


def _within(run: range, sizes: Sequence[int], full: int) -> range:
    """As much of the run, from its beginning, as is not larger than `full`."""
    total = 0
    for at in run:
        total += sizes[at]
        if total > full:
            return range(run.start, at)
    return run
