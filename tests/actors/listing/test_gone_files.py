from __future__ import annotations

import pytest

from actors.files import GoneFile
from actors.listing.missing_files import find_gone
from state.clock import ManualClock
from state.memory.memory_disk import MemoryDisk
from state.memory.memory_root import MemoryRoot
from state.store.store import StateStore
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.vnode import vnode_of

V1, V2 = b"version1", b"version2"


@pytest.fixture(name="delta")
def _delta() -> DeltaBuilder:
    return DeltaBuilder()


def put(delta: DeltaBuilder, table: str, path: str, version: bytes, source: str = "s", **fields: object) -> None:
    delta.put(
        table, encode_key(source, path, version), vnode_of(path), source=source, path=path, version=version, **fields
    )


def committed(delta: DeltaBuilder) -> StateStore:
    store = MemoryRoot(MemoryDisk(), ManualClock()).create_or_open()
    store.take_over("test")
    store.commit(epoch=1 << 50, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return store


def key(path: str) -> bytes:
    return path_fingerprint("s", path)


def test_a_finished_file_is_found_by_its_fingerprints(delta: DeltaBuilder) -> None:
    put(delta, "ledger", "a", V1)
    put(delta, "ledger", "b", V1)
    put(delta, "ledger", "a", V1, source="s2")
    found = find_gone(committed(delta), "s", {key("a"): V1, key("never listed"): V1})
    assert found.files == {key("a"): (GoneFile("s", "a", V1),)}


def test_every_version_of_a_path_is_gone_with_it(delta: DeltaBuilder) -> None:
    put(delta, "ledger", "a", V1, changed_epoch=1)
    put(delta, "ledger", "a", V2)
    put(delta, "ledger", "noted", V1, changed_epoch=1)
    found = find_gone(committed(delta), "s", {key("a"): V2, key("noted"): V2})
    assert set(found.files[key("a")]) == {GoneFile("s", "a", V1), GoneFile("s", "a", V2)}
    assert found.files[key("noted")] == (GoneFile("s", "noted", V1),)


def test_what_says_it_already_is_found_and_not_told(delta: DeltaBuilder) -> None:
    put(delta, "ledger", "a", V1, gone_epoch=1)
    assert find_gone(committed(delta), "s", {key("a"): V1}).files == {key("a"): ()}


def test_what_is_not_finished_is_not_found_yet(delta: DeltaBuilder) -> None:
    put(delta, "queue", "waits", V1)
    put(delta, "queue", "waits again", V2)
    put(delta, "ledger", "waits again", V1, changed_epoch=1)
    put(delta, "ledger", "not in the store", V1)
    absent = {key("waits"): V1, key("waits again"): V2, key("not in the store"): V2}
    assert find_gone(committed(delta), "s", absent).files == {}
