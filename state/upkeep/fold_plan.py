"""The plan of folds: tiers of neighbouring pieces, so that each row is rewritten only a few times in its life.

The policy is that of Lucene's `LogMergePolicy`, on pieces that have an order and keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

FOLD_FACTOR = 16


def next_run(sizes: Sequence[int], *, floor: int, full: int, factor: int = FOLD_FACTOR) -> range | None:
    """The next neighbours to fold into one; None if no fold is due.

    A piece of size s is in tier log(s / floor) to the base `factor`; pieces below `floor` are in the lowest tier.
    `factor` pieces of a tier, without a larger piece between them, become one piece of the next tier.  So n pieces of
    equal size cost O(n log n) in total, and leave fewer than `factor` pieces in each tier.

    Args:
        sizes: the sizes of all pieces, in their order; new pieces come at the end.
        floor: the size below which a separate piece costs more than to write it again.
        full: the largest size of a run; a piece of more than half of it is not folded.
        factor: the number of pieces that become one.

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
    """The longest beginning of the run with a total size of at most `full`."""
    total = 0
    for at in run:
        total += sizes[at]
        if total > full:
            return range(run.start, at)
    return run
