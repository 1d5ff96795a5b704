"""The plan of folds: tiers of neighbouring pieces, so that each row is rewritten only a few times in its life.

The policy is that of Lucene's `LogMergePolicy`, on pieces that have an order and keep it.  Runs of the store have the
bound on dead rows of RocksDB's universal compaction beside it
(https://github.com/facebook/rocksdb/wiki/Universal-Compaction).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

FOLD_FACTOR = 16
_RUN_FACTOR = 8


def runs_to_merge(runs: Sequence[tuple[int, int]], *, small: int) -> range | None:
    """The next runs of a table to merge into one; None if no merge is due.

    All runs are merged when a third of all rows may be dead: then the table never has more than 1.5 rows for each live
    one, and `small` more.  Every row of a newer run may replace a row of the oldest one; a deletion besides is dead
    itself, and takes a live row away.  The oldest run grows or shrinks by a share from one such merge to the next,
    so its rows too are written O(log n) times.  Before that, the newer runs are merged in tiers.

    Args:
        runs: for each run, oldest first: its rows, and the deletions among them; the oldest has none.
        small: the size of the smallest tier, in rows.

    Returns:
        Positions in `runs`, at least two of them.
    """
    if len(runs) < 2:
        return None
    newer = runs[1:]
    burden = sum(rows for rows, _ in newer) + 1.5 * sum(deletes for _, deletes in newer)
    if burden > 0.5 * runs[0][0] + small:
        return range(len(runs))
    tier = next_run([rows for rows, _ in newer], floor=small, full=sys.maxsize, factor=_RUN_FACTOR)
    return None if tier is None else range(tier.start + 1, tier.stop + 1)


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
