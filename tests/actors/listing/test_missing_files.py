"""Missing files: the names that the store is asked for, and the files that it finds."""

from __future__ import annotations

import pytest

from actors.files import DeletedFile
from actors.listing.instructions import FindDeleted, ListInstruction
from actors.listing.missing_files import DeletedFound, MissingNames, find_deleted
from state.clock import ManualClock
from state.store.store import StateStore
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.vnode import vnode_of
from tests.actors.flow import of
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

V1, V2 = b"version1", b"version2"
A, B = b"a" * 16, b"b" * 16
GONE = (DeletedFile("s", "a", V1),)


def asked(instructions: list[ListInstruction]) -> list[set[bytes]]:
    return [set(each.missing) for each in of(FindDeleted, instructions)]


def suspected(names: MissingNames, *keys: bytes) -> MissingNames:
    for each in keys:
        names.suspect(each, V1, 1)
    return names


def test_a_name_is_asked_for_when_a_second_listing_lacks_it() -> None:
    names = suspected(MissingNames("s"), A)
    assert asked(names.ask_for_paths()) == asked(names.ask(1, 1)) == []
    assert (names.count, names.is_suspecting, names.is_confirmed) == (1, True, False)
    names.confirm()
    suspected(names, B)
    assert asked(names.ask_for_paths()) == []
    assert asked(names.ask(1, 2)) == [{A}]


def test_a_suspected_name_that_is_back_is_forgotten() -> None:
    names = suspected(MissingNames("s"), A)
    assert names.discard([A]) == []
    names.confirm()
    assert (names.count, asked(names.ask(1, 2))) == (0, [])


def test_a_look_confirms_what_one_listing_lacks() -> None:
    names = suspected(MissingNames("s"), A)
    names.add(A, V1, 1, "a")
    assert (names.count, asked(names.ask_for_paths())) == (1, [{A}])


def test_only_names_that_a_message_names_survive_a_restart_without_a_listing() -> None:
    names = MissingNames("s")
    names.add(A, V1, 1, "a")
    assert not names.needs_listing
    assert names.take_paths() == ["a"] and names.needs_listing


def test_names_that_were_not_counted_do_not_survive_a_restart_without_a_listing() -> None:
    names = MissingNames("s")
    names.uncounted = 1
    assert names.needs_listing


def test_with_a_path_a_name_is_asked_for_at_once_and_then_when_more_is_committed() -> None:
    names = suspected(MissingNames("s"), B)
    names.confirm()
    names.add(A, V1, 1, "a")
    assert asked(names.ask_for_paths()) == [{A, B}], "the others with it"
    assert asked(names.ask_for_paths()) == asked(names.ask(1, 1)) == [], "not while the answer is out"
    assert names.on_found(DeletedFound(1)) == ((), [], [])
    assert asked(names.ask_for_paths()) == [], "in vain until something is committed"
    names.on_committed()
    assert asked(names.ask_for_paths()) == [{A, B}]
    assert names.on_found(DeletedFound(2, {A: GONE})) == (GONE, [A], ["a"])
    names.on_committed()
    assert asked(names.ask_for_paths()) == [], "no message waits for the other one"
    assert names.is_confirmed


def test_a_commit_while_the_answer_is_out_makes_it_ask_once_more() -> None:
    names = MissingNames("s")
    names.add(A, V1, 1, "a")
    names.ask_for_paths()
    names.on_committed()
    names.on_found(DeletedFound(1))
    assert asked(names.ask_for_paths()) == [{A}]


def test_a_store_older_than_what_was_handed_on_last_is_not_believed() -> None:
    names = MissingNames("s")
    names.add(A, V1, 5, "a")
    names.ask_for_paths()
    assert names.on_found(DeletedFound(4, {A: GONE})) == ((), [], [])
    names.on_committed()
    names.ask_for_paths()
    assert names.on_found(DeletedFound(5, {A: GONE})) == (GONE, [A], ["a"])
    assert not names.count


def test_what_is_back_is_not_told_and_its_path_is_given_back_once() -> None:
    names = suspected(MissingNames("s"), B)
    names.confirm()
    names.add(A, V1, 1, "a")
    names.ask_for_paths()
    assert names.discard([A, B]) == ["a"]
    assert names.discard([A]) == []
    assert names.on_found(DeletedFound(9, {A: GONE})) == ((), [], [])


@pytest.fixture(name="delta")
def _delta() -> DeltaBuilder:
    return DeltaBuilder()


def put(delta: DeltaBuilder, table: str, path: str, version: bytes, source: str = "s", **fields: object) -> None:
    delta.put(
        table, encode_key(source, path, version), vnode_of(path), source=source, path=path, version=version, **fields
    )
    delta.put("seen", path_fingerprint(source, path), vnode_of(path), source=source, path=path, version=version)


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
    found = find_deleted(committed(delta), "s", {key("a"): V1, key("never listed"): V1})
    assert found.files == {key("a"): (DeletedFile("s", "a", V1),)}


def test_files_are_found_in_the_order_of_the_store_and_not_of_hashes(delta: DeltaBuilder) -> None:
    for path in "abcdefghij":
        put(delta, "ledger", path, V1)
    store = committed(delta)
    missing = {key(path): V1 for path in "abcdefghij"}
    assert list(find_deleted(store, "s", missing).files) == store.scan("seen", keys=missing)["key"].to_pylist()


def test_every_version_of_a_path_is_deleted_with_it(delta: DeltaBuilder) -> None:
    put(delta, "ledger", "a", V1, changed_epoch=1)
    put(delta, "ledger", "a", V2)
    put(delta, "ledger", "noted", V1, changed_epoch=1)
    found = find_deleted(committed(delta), "s", {key("a"): V2, key("noted"): V2})
    assert set(found.files[key("a")]) == {DeletedFile("s", "a", V1), DeletedFile("s", "a", V2)}
    assert found.files[key("noted")] == (DeletedFile("s", "noted", V1),)


def test_what_says_it_already_is_found_and_not_told(delta: DeltaBuilder) -> None:
    put(delta, "ledger", "a", V1, deleted_epoch=1)
    assert find_deleted(committed(delta), "s", {key("a"): V1}).files == {key("a"): ()}


def test_what_is_not_finished_is_not_found_yet(delta: DeltaBuilder) -> None:
    put(delta, "queue", "waits", V1)
    put(delta, "queue", "waits again", V2)
    put(delta, "ledger", "waits again", V1, changed_epoch=1)
    put(delta, "ledger", "not in the store", V1)
    missing = {key("waits"): V1, key("waits again"): V2, key("not in the store"): V2}
    assert find_deleted(committed(delta), "s", missing).files == {}
