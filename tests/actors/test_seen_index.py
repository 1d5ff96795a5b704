from __future__ import annotations

import random

import pyarrow as pa
import pytest

from actors import seen_index
from actors.seen_index import SeenIndex


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


def test_arrays_that_came_through_an_object_store_are_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_index, "_MERGE_AT", 1)
    index = SeenIndex([b"a" * 16], [b"version1"])
    for array in (index._high, index._low, index._versions):
        array.setflags(write=False)
    index.put(b"a" * 16, b"version2")
    assert index.lookup([b"a" * 16]) == [b"version2"]


def test_columns_of_the_store_make_the_same_index() -> None:
    rng = random.Random(5)
    rows = {rng.randbytes(16): rng.randbytes(8) for _ in range(100)}
    keys = pa.chunked_array(
        [pa.array([b"x" * 16, *rows], pa.binary()).slice(1, 40), pa.array([*rows][40:], pa.binary())]
    )
    versions = pa.chunked_array([pa.array([*rows.values()], pa.binary(8))])
    index = SeenIndex.of_columns(keys, versions)
    assert index.lookup([*rows]) == [*rows.values()] and len(index) == 100
    none = pa.chunked_array([], pa.binary())
    assert len(SeenIndex.of_columns(none, none)) == 0
