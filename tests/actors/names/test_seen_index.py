from __future__ import annotations

import random

import pytest

from actors.names import seen_index
from actors.names.seen_index import SeenIndex, Sight


def test_says_what_a_dictionary_says_through_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_index, "_MERGE_AT", 50)
    rng = random.Random(3)
    # Few distinct first halves, so that the second half has to decide.
    keys = [rng.randrange(8).to_bytes(8, "big") + rng.randbytes(8) for _ in range(400)]
    before = {key: rng.randbytes(8) for key in keys[:200]}
    index, expected = SeenIndex(list(before), list(before.values())), dict(before)
    for _ in range(1_000):
        key, version = rng.choice(keys), rng.randbytes(8)
        index.put(key, version)
        expected[key] = version
    unknown = [rng.randbytes(16) for _ in range(50)]
    assert index.lookup([*keys, *unknown]) == [expected.get(key) for key in [*keys, *unknown]]
    assert len(index) == len(expected)


def test_an_empty_index_knows_nothing() -> None:
    assert SeenIndex().lookup([b"0" * 16]) == [None]
    assert SeenIndex().lookup([]) == []


def test_a_key_is_forgotten_in_its_version_only() -> None:
    stored, recent = b"a" * 16, b"b" * 16
    index = SeenIndex([stored], [b"version1"])
    index.put(recent, b"version2")
    for key, version in ((stored, b"version2"), (recent, b"version1")):
        index.forget(key, version)
    assert index.lookup([stored, recent]) == [b"version1", b"version2"]
    for key, version in ((stored, b"version1"), (recent, b"version2")):
        index.forget(key, version)
    assert index.lookup([stored, recent]) == [None, None]
    assert len(index) == 0


def test_a_listing_shows_what_is_new_the_same_and_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_index, "_MERGE_AT", 3)
    keys = [bytes([number]) * 16 for number in range(6)]
    index = SeenIndex(keys[:2], [b"version1"] * 2)
    index.begin_listing()
    index.put(keys[2], b"version1")
    assert index.show(keys[:4], [b"version1", b"version2", b"version1", b"version1"]).tolist() == [
        Sight.SAME,
        Sight.CHANGED,
        Sight.SAME,
        Sight.NEW,
    ]


@pytest.mark.parametrize("merge_at", [1, 100])
def test_two_names_with_one_fingerprint_are_noticed(monkeypatch: pytest.MonkeyPatch, merge_at: int) -> None:
    monkeypatch.setattr(seen_index, "_MERGE_AT", merge_at)
    key = b"k" * 16
    index = SeenIndex([key], [b"version1"])
    for _ in range(2):
        index.begin_listing()
        assert index.show([key], [b"version1"]).tolist() == [Sight.SAME]
        assert index.show([key], [b"version2"]).tolist() == [Sight.TWICE]
    index = SeenIndex()
    index.begin_listing()
    index.put(key, b"version1")
    assert index.show([key], [b"version2"]).tolist() == [Sight.TWICE]


@pytest.mark.parametrize("merge_at", [1, 5, 1_000])
def test_says_what_the_listing_did_not_show(monkeypatch: pytest.MonkeyPatch, merge_at: int) -> None:
    monkeypatch.setattr(seen_index, "_MERGE_AT", merge_at)
    rng = random.Random(merge_at)
    keys = [rng.randbytes(16) for _ in range(60)]
    index = SeenIndex(keys[:20], [b"version1"] * 20)
    there: set[bytes] = set(keys[:20])
    missing: set[bytes] = set()
    for _ in range(40):
        index.begin_listing()
        shown = rng.sample(keys, rng.randint(0, 60)) if rng.random() < 0.8 else list(there)
        for key, version in zip(shown, index.lookup(shown), strict=True):
            index.show([key], [b"version1"])
            if version is None:
                index.put(key, b"version1")
        if rng.random() < 0.3 and there:
            forgotten = rng.choice(sorted(there | missing))
            assert index.forget(forgotten, b"version1")
            there.discard(forgotten)
            missing.discard(forgotten)
            shown = [key for key in shown if key != forgotten]
        there -= missing
        there |= set(shown)
        deleted = there - set(shown)
        missing = (missing | deleted) - set(shown)
        assert index.count_unshown(0) == len(deleted)
        assert index.take_missing(1_000).keys() == deleted
        assert index.take_missing(1_000) == {}
        there -= deleted
        assert len(index) == len(there | missing)


def test_skipped_names_count_as_shown_and_missing_names_are_taken_in_portions() -> None:
    keys = [bytes([number]) * 16 for number in range(10)]
    index = SeenIndex(keys, [b"version1"] * 10)
    index.begin_listing()
    index.show(keys[:4], [b"version1"] * 4)
    assert [index.count_unshown(skipped) for skipped in (5, 6)] == [1, 0]
    assert [len(index.take_missing(4)) for _ in range(3)] == [4, 2, 0]
    index.begin_listing()
    index.show(keys[:5], [b"version1"] * 5)
    assert index.count_unshown(0) == 0, "one is back, and the others are known to be missing"


def test_names_are_present_until_the_ledger_has_them_as_gone() -> None:
    keys = [bytes([number]) * 16 for number in range(6)]
    index = SeenIndex(keys[:4], [b"version1"] * 4)
    index.begin_listing()
    index.take_missing(1)
    assert index.count_present() == 4, "a missing name counts"
    index.set_deleted(keys[:2])
    index.forget(keys[2], b"version1")
    assert index.count_present() == 1
    index.put(keys[0], b"version2")
    index.put(keys[5], b"version1")
    assert index.count_present() == 3, "the one is back, the other is new"


def test_names_that_the_ledger_has_as_deleted_are_not_taken() -> None:
    keys = [bytes([number]) * 16 for number in range(3)]
    index = SeenIndex(keys, [b"version1"] * 3)
    index.set_deleted([keys[0], b"x" * 16])
    index.begin_listing()
    assert set(index.take_missing(10)) == set(keys[1:])


def test_arrays_grow_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_index, "_MOVED_AT_ONCE", 7)
    monkeypatch.setattr(seen_index, "_MERGE_AT", 40)
    rng = random.Random(9)
    expected = {rng.randbytes(16): rng.randbytes(8) for _ in range(1_000)}
    index = SeenIndex()
    for key, version in expected.items():
        index.put(key, version)
    assert index.lookup([*expected]) == [*expected.values()]
    high = index._high[:]
    assert (high[:-1] <= high[1:]).all()
