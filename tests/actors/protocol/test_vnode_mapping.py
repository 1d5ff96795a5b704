"""The moves of vnodes between two numbers of owners: as few as possible, and an even split."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from state.vnode import VNODES

SETS = st.sets(st.integers(0, 299), min_size=1, max_size=VNODES).map(lambda numbers: sorted(f"f{n}" for n in numbers))
NUMBERS = st.integers(1, VNODES)


def fewest_moves(before: VnodeMapping, owners: list[str]) -> int:
    """The least number of moves: each owner keeps the floor of an even split, and as many as possible one more."""
    floor, larger = divmod(VNODES, len(owners))
    sizes = sorted((len(before.vnodes_of(name)) for name in owners), reverse=True)
    return VNODES - sum(min(size, floor + (place < larger)) for place, size in enumerate(sizes))


@settings(deadline=None)
@given(SETS, st.lists(SETS, min_size=1, max_size=4))
def test_the_split_stays_even_and_no_more_moves_than_must(first: list[str], later: list[list[str]]) -> None:
    before = VnodeMapping.even(first)
    for owners in later:
        after = before.rescaled(owners)
        sizes = Counter(after.owner)
        assert sizes.keys() == set(owners)
        assert max(sizes.values()) - min(sizes.values()) <= 1
        moved = [vnode for vnode in range(VNODES) if before.owner[vnode] != after.owner[vnode]]
        assert len(moved) == fewest_moves(before, owners)
        for vnode in moved:
            giver = before.owner[vnode]
            assert giver not in owners or len(before.vnodes_of(giver)) > sizes[giver], "only from those with too many"
        before = after


@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_more_owners_take_only_what_they_own_and_fewer_leave_only_what_they_had(few: int, many: int) -> None:
    few, many = sorted((few, many))
    before = VnodeMapping.even(fetcher_names(0, few))
    grown = before.rescaled(fetcher_names(0, many))
    assert all(now == then or now not in before.owners for then, now in zip(before.owner, grown.owner, strict=True))
    shrunk = grown.rescaled(fetcher_names(0, few))
    leaving = set(fetcher_names(few, many - few))
    assert all(now == then or then in leaving for then, now in zip(grown.owner, shrunk.owner, strict=True))


@settings(deadline=None)
@given(SETS, SETS)
def test_both_sides_know_who_gives_to_whom(first: list[str], second: list[str]) -> None:
    before = VnodeMapping.even(first)
    after = before.rescaled(second)
    given = {(name, taker) for name in first for taker in before.moves_from(name, after).values()}
    assert given == {(giver, name) for name in second for giver in before.givers_to(name, after)}
