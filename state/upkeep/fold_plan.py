"""The plan of folds: tiers of neighbouring pieces, so that each row is rewritten only a few times in its life.

The policy follows Lucene's `LogMergePolicy`, on pieces that have an order and keep it.  For runs of the store, dead
rows are also limited, as in RocksDB's universal compaction
(https://github.com/facebook/rocksdb/wiki/Universal-Compaction).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

FOLD_FACTOR = 16
_RUN_FACTOR = 8
_UNFOLDED = sys.maxsize
"""The tier of pieces that are not folded."""


def runs_to_merge(runs: Sequence[tuple[int, int]], *, small: int) -> range | None:
    """The next runs of a table to merge into one; None if no merge is due.

    All runs are merged when a third of all rows may be dead: then the table never has more than 1.5 rows for each live
    one, and `small` more.  Every row of a newer run may replace a row of the oldest run.  A deletion is dead itself,
    and also removes a live row.  The oldest run grows or shrinks by a share from one such merge to the next,
    so its rows too are written O(log n) times.  Before that, the newer runs are merged in tiers.

    Args:
        runs: for each run, oldest first: its rows, and the deletions among them; the oldest run has no deletions.
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
    equal size cost O(n log n) in total, and leave fewer than `factor` pieces in each tier.  Pieces may shrink with
    time, so that small ones lie before larger ones.

    Args:
        sizes: the sizes of all pieces, in their order; new pieces come at the end.
        floor: the size below which a separate piece costs more than to write it again.
        full: the largest size of a run; a piece of more than half of it is not folded.
        factor: the number of pieces that become one.

    Returns:
        Positions in `sizes`, at least two of them.
    """
    tiers = [_UNFOLDED if size * 2 > full else _tier(size, floor, factor) for size in sizes]
    for tier in sorted({*tiers} - {_UNFOLDED}):
        for neighbours in reversed([*_up_to(tier, tiers)]):
            members = [at for at in neighbours if tiers[at] == tier]
            if len(members) >= factor:
                run = _within(range(members[0], members[-1] + 1), sizes, full)
                if len(run) > 1:
                    return run
    return None


def due_runs(sizes: Sequence[int], *, floor: int, full: int, factor: int) -> list[range]:
    """The runs that are due at once, of at most twice `full` together, see `next_run`.

    One at a time would not do: the newest pieces are due so often that older ones would wait for ever.
    """
    left, total, runs = [*sizes], 0, list[range]()
    while total <= full and (run := next_run(left, floor=floor, full=full, factor=factor)) is not None:
        total += sum(sizes[at] for at in run)
        runs.append(run)
        left[run.start : run.stop] = [full] * len(run)
    return runs


def newest_to_merge(sizes: Sequence[int], *, full: int, factor: int, most: int) -> int:
    """The number of the newest pieces to merge into one, if only the newest ones can be merged; 0 if none is due.

    Each piece has at least as many rows as the newer ones together, so that pieces are few, and each row is written
    O(log n) times (the logarithmic method of Bentley and Saxe).

    Args:
        sizes: the sizes of all pieces, oldest first.
        full: the largest size of a merged piece.
        factor: the fewest pieces that are merged, so that not every new one costs a merge.
        most: above this number of pieces all are merged, without regard to their size.
    """
    if len(sizes) > most:
        return len(sizes)
    newer, due = 0, 0
    for count, size in enumerate(reversed(sizes), start=1):
        if newer + size > full:
            break
        if count >= factor and size <= newer:
            due = count
        newer += size
    return due


def _up_to(tier: int, tiers: Sequence[int]) -> Iterator[range]:
    """Yields the longest runs of neighbours of at most this tier."""
    start = 0
    for at, each in enumerate([*tiers, _UNFOLDED]):
        if each > tier:
            if at > start:
                yield range(start, at)
            start = at + 1


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
