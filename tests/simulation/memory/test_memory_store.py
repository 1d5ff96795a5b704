"""The store in memory: it holds the same rows as the store on Lance."""

from __future__ import annotations

import pickle
import tempfile
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.head_swap import HeadSwapStore
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore

CLOCK = ManualClock()
KEYS = st.sampled_from([b"a", b"\x00"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "path": st.none() | st.sampled_from(["x", "y"]),
        "rows_read": st.none() | st.integers(0, 5),
        "last_modified": st.none() | st.just(CLOCK.now()),
        "version": st.none() | st.just(b"12345678"),
    },
)
CHANGE = st.tuples(st.sampled_from(["put", "patch", "delete", "put_many"]), KEYS, FIELDS)
# Epochs of several actors each; every second actor is in another process, so that its delta comes as Arrow.
EPOCHS = st.lists(st.lists(st.lists(CHANGE, max_size=5), max_size=3), min_size=1, max_size=4)


def built(changes: list[tuple[str, bytes, dict[str, Any]]], table: str = "ledger") -> Delta:
    builder = DeltaBuilder()
    for change, key, fields in changes:
        if change == "put":
            builder.put(table, key, 7, **fields)
        elif change == "patch":
            builder.patch(table, key, 7, **fields)
        elif change == "delete":
            builder.delete(table, key, 7)
        else:
            columns = {name: [value, value] for name, value in fields.items()}
            builder.put_many(table, [key, b"many"], [7, 7], columns)
    return builder.build()


def by_key(store: HeadSwapStore, version: int) -> dict[bytes, dict[str, Any]]:
    rows = store.scan("ledger", state_version=version).to_pylist()
    assert sorted(rows, key=str) == sorted(store.rows("ledger", version), key=str)
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row for row in rows}


@settings(deadline=None, max_examples=20)
@given(EPOCHS)
@example([[[("put", b"a", {"path": "x", "rows_read": 1})]], [[("patch", b"a", {"path": None, "rows_read": 2})]]])
@example([[[("put", b"a", {"path": "x"}), ("patch", b"a", {"path": "y"})], [("patch", b"a", {"path": None})]]])
def test_memory_and_lance_agree_on_any_changes(epochs: list[list[list[tuple[str, bytes, dict[str, Any]]]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        stores = [
            MemoryStateStore.create(MemoryDisk(), CLOCK),
            LanceStateStore.create(Location(directory), CLOCK),
        ]
        for epoch, actors in enumerate(epochs, 1):
            deltas = [built(changes) for changes in actors]
            deltas[1::2] = [pickle.loads(pickle.dumps(delta)) for delta in deltas[1::2]]
            for store in stores:
                merged = Delta.merge(deltas)
                store.commit(epoch=epoch, delta=merged, views={}, counts=EpochCounts(), seconds=EpochSeconds())
        for version in range(1, len(epochs) + 2):
            memory, lance = (by_key(store, version) for store in stores)
            assert memory == lance


@pytest.mark.more
@settings(deadline=None)
@given(st.lists(CHANGE.filter(lambda change: change[0] != "put_many"), min_size=1))
def test_a_delta_is_the_same_before_and_after_it_travels(changes: list[tuple[str, bytes, dict[str, Any]]]) -> None:
    delta = built(changes)
    copy = pickle.loads(pickle.dumps(delta))
    assert copy.tables["ledger"].equals(delta.tables["ledger"])
    assert Delta.merge([copy, delta]).tables["ledger"].num_rows == len(delta.changes["ledger"])
    given = {
        key: (op, vnode, {name: value for name, value in fields.items() if value is not None})
        for key, (op, vnode, fields) in delta.changes["ledger"].items()
    }
    assert copy.changes["ledger"] == given


def test_what_a_caller_does_with_rows_changes_nothing_in_the_store() -> None:
    store = MemoryStateStore.create(MemoryDisk(), CLOCK)
    delta = built([("put", b"a", {"path": "x"})])
    store.commit(epoch=1, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    for row in (store.rows("ledger")[0], store.get("ledger", b"a")):
        assert row is not None
        row["path"] = "changed"
    assert [row["path"] for row in store.rows("ledger")] == ["x"]


def test_no_arrow_is_made_between_put_and_rows() -> None:
    store = MemoryStateStore.create(MemoryDisk(), CLOCK)
    merged = Delta.merge([built([("put", b"a", {"path": "x"})]), built([("patch", b"a", {"rows_read": 1})])])
    store.commit(epoch=1, delta=merged, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    assert "tables" not in vars(merged)
    assert store.rows("ledger")[0]["rows_read"] == 1
