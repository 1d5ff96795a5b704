"""Versions without rows: a set in little memory, by vnode."""

from __future__ import annotations

import pickle
import random
import tracemalloc

import pyarrow as pa
import pytest

from actors.fetching.version_set import VersionSet
from actors.files import FileKey
from actors.protocol.vnode_mapping import vnode_of_file
from state.tables.keys import encode_key
from state.vnode import VNODES, vnode_of


def key(number: int, source: str = "s") -> FileKey:
    return source, f"day={number % 7}/{number}", number.to_bytes(8, "big")


def ledger(keys: list[FileKey]) -> pa.Table:
    columns = {
        "key": pa.array([encode_key(*each) for each in keys], pa.binary()),
        "source": pa.array([source for source, _, _ in keys], pa.string()),
        "path": pa.array([path for _, path, _ in keys], pa.string()),
    }
    return pa.table(columns)


def test_it_says_what_a_set_says() -> None:
    rng = random.Random(3)
    # Of one vnode, so that its changes are merged.
    keys = [key(number, "ordered") for number in range(2_000)]
    kept = VersionSet.of_ledger(["ordered"], ledger(keys[:1_000]))
    expected = set(keys[:1_000])
    for _ in range(5_000):
        each = rng.choice(keys)
        if rng.random() < 0.5:
            kept.add(each)
            expected.add(each)
        else:
            kept.discard(each)
            expected.discard(each)
    assert {each for each in keys if each in kept} == expected
    assert len(kept) == len(expected)


def test_the_ledger_gives_the_versions_that_were_added() -> None:
    keys = [key(number, source) for number in range(500) for source in ("s", "ordered")]
    for kept in (VersionSet(["ordered"], keys), VersionSet.of_ledger(["ordered"], ledger(keys))):
        assert all(each in kept for each in keys) and len(kept) == len(keys)
        assert key(1, "t") not in kept and ("s", key(1)[1], key(2)[2]) not in kept
    assert len(VersionSet.of_ledger([], ledger([]))) == 0


def test_versions_move_with_their_vnodes() -> None:
    keys = [key(number, source) for number in range(500) for source in ("s", "ordered")]
    giver, taker = VersionSet(["ordered"], keys), VersionSet(["ordered"])
    vnodes = [vnode for vnode in range(VNODES) if vnode % 3 or vnode == vnode_of("ordered")]
    taker.take(pickle.loads(pickle.dumps(giver.give(vnodes))))
    for each in keys:
        is_moved = vnode_of_file(*each[:2], ["ordered"]) in vnodes
        assert (each in taker, each in giver) == (is_moved, not is_moved)


@pytest.mark.more
def test_a_version_takes_some_ten_bytes() -> None:
    rows = ledger([key(number) for number in range(200_000)])
    tracemalloc.start()
    kept = VersionSet.of_ledger([], rows)
    for number in range(200_000, 210_000):
        kept.add(key(number))
    lasting, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lasting < 16 * 210_000
    assert len(kept) == 210_000
