"""What a memory table shows is what a dictionary would hold, whatever is open, sealed or committed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from state.clock import ManualClock
from state.errors import ProtocolError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.memory.memory_disk import MemoryDisk
from state.memory.memory_store import MemoryStateStore
from state.memory_table import MemoryTable
from state.store.head_swap import HeadSwapStore
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import TABLES

CLOCK = ManualClock()
NULLS = dict.fromkeys(TABLES["ledger"].names)
KEYS = [b"", b"\x00", b"a", b"a\x00", b"b", b"\xff"]
FIELDS = st.fixed_dictionaries(
    {}, optional={"path": st.none() | st.sampled_from(["x", "y"]), "rows_read": st.none() | st.integers(0, 5)}
)
BOUND = st.none() | st.sampled_from(KEYS)
STEP = st.one_of(
    st.tuples(st.sampled_from(["put", "patch"]), st.sampled_from(KEYS), FIELDS),
    st.tuples(st.just("delete"), st.sampled_from(KEYS)),
    st.tuples(st.sampled_from(["seal", "commit", "follow", "follow afresh"])),
    st.tuples(st.just("scan"), BOUND, BOUND, st.none() | st.sets(st.integers(0, 2))),
)
STEPS = st.lists(STEP, min_size=1, max_size=40)


def vnode(key: bytes) -> int:
    """Any, but always the same of a key."""
    return sum(key) % 3


def commit(store: HeadSwapStore, epoch: int, delta: Delta) -> None:
    store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())


@dataclass
class Writer:
    """A table with the store that its epochs go to, and a dictionary that does the same.

    The table begins with three committed rows, and with a handle that does not move with the commits.
    """

    store: HeadSwapStore
    epoch: int = 0
    in_flight: list[tuple[int, Delta]] = field(default_factory=list)
    model: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = MemoryTable(self.store.reopen(), "ledger")
        for key in KEYS[1:4]:
            self.put(key, {"path": "committed", "rows_read": 0})
        for step in ("seal", "commit", "follow afresh"):
            self.step(step)

    def step(self, name: str, *arguments: Any) -> None:
        getattr(self, name.replace(" ", "_"))(*arguments)

    def put(self, key: bytes, fields: dict[str, Any]) -> None:
        self.table.put(key, vnode(key), **fields)
        self.model[key] = {"key": key, "vnode": vnode(key), "epoch": None, **NULLS, **fields}

    def patch(self, key: bytes, fields: dict[str, Any]) -> None:
        self.table.patch(key, vnode(key), **fields)
        if key in self.model:
            given = {name: value for name, value in fields.items() if value is not None}
            self.model[key] |= {"epoch": None, **given}

    def delete(self, key: bytes) -> None:
        self.table.delete(key, vnode(key))
        self.model.pop(key, None)

    def seal(self) -> None:
        self.epoch += 1
        self.in_flight.append((self.epoch, self.table.seal(self.epoch)))
        for row in self.model.values():
            row["epoch"] = row["epoch"] or self.epoch

    def commit(self) -> None:
        if self.in_flight:
            commit(self.store, *self.in_flight.pop(0))

    def follow(self) -> None:
        self.table.follow(self.store)

    def follow_afresh(self) -> None:
        self.table.follow(self.store.reopen())

    def scan(self, start: bytes | None = None, end: bytes | None = None, vnodes: set[int] | None = None) -> None:
        assert list(self.table.scan(start=start, end=end, vnodes=vnodes)) == [
            self.model[key]
            for key in sorted(self.model)
            if (start is None or start <= key)
            and (end is None or key < end)
            and (vnodes is None or vnode(key) in vnodes)
        ]

    def check(self) -> None:
        self.scan()
        for key in KEYS:
            assert self.table.get(key) == self.model.get(key)

    def end(self) -> None:
        """Commits what is left, and finds the same in the store."""
        self.seal()
        while self.in_flight:
            self.commit()
            self.check()
        committed = sorted(self.store.reopen().rows("ledger"), key=lambda row: bytes(row["key"]))
        assert committed == list(self.table.scan())
        self.follow()
        self.check()
        for key in KEYS:
            self.scan(start=key)
            self.scan(end=key)
            self.scan(vnodes={vnode(key)})


@pytest.fixture(params=["memory", "lance"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HeadSwapStore:
    if request.param == "memory":
        return MemoryStateStore.create(MemoryDisk(), CLOCK)
    return LanceStateStore.create(Location(str(tmp_path)), CLOCK)


@settings(deadline=None)
@given(STEPS)
@example([("patch", b"a", {"rows_read": 1}), ("seal",), ("patch", b"a", {"path": "x"}), ("seal",), ("commit",)])
@example([("put", b"b", {}), ("seal",), ("delete", b"b"), ("seal",), ("commit",), ("follow afresh",)])
def test_over_memory_a_table_is_a_dictionary(steps: list[tuple[Any, ...]]) -> None:
    writer = Writer(MemoryStateStore.create(MemoryDisk(), CLOCK))
    for step in steps:
        writer.step(*step)
        writer.check()
    writer.end()


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_over_lance_a_table_is_a_dictionary(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        writer = Writer(LanceStateStore.create(Location(directory), CLOCK))
        for step in steps:
            writer.step(*step)
        writer.check()
        writer.end()


def test_three_epochs_in_flight_are_read_over_the_committed_one(store: HeadSwapStore) -> None:
    writer = Writer(store)
    writer.patch(b"a", {"rows_read": 1})
    writer.seal()
    writer.delete(b"a\x00")
    writer.seal()
    writer.put(b"a\x00", {"path": "again"})
    writer.delete(b"\x00")
    writer.seal()
    writer.put(b"b", {"path": "open"})
    assert len(writer.in_flight) == 3
    assert [(row["key"], row["path"], row["rows_read"], row["epoch"]) for row in writer.table.scan()] == [
        (b"a", "committed", 1, 2),
        (b"a\x00", "again", None, 4),
        (b"b", "open", None, None),
    ]
    assert (writer.table.get(b"a") or {})["rows_read"] == 1
    assert writer.table.get(b"\x00") is None
    writer.end()


def test_a_delta_has_one_change_for_each_key_and_nothing_of_other_epochs(store: HeadSwapStore) -> None:
    table = MemoryTable(store, "ledger")
    table.put(b"a", 1, path="first")
    table.put(b"a", 1, path="last")
    table.patch(b"a", 1, rows_read=3)
    first = table.seal(7)
    assert {key: change.fields for key, change in first.changes["ledger"].items()} == {
        b"a": {"path": "last", "rows_read": 3}
    }
    table.delete(b"b", 1)
    assert list(table.seal(8).changes["ledger"]) == [b"b"]
    assert table.seal(9).is_empty


def test_a_scan_shows_the_moment_at_which_it_was_asked_for(store: HeadSwapStore) -> None:
    writer = Writer(store)
    writer.put(b"b", {"path": "open"})
    rows: Iterator[dict[str, Any]] = writer.table.scan()
    writer.delete(b"a")
    assert next(rows)["key"] == b"\x00"
    writer.put(b"b", {"path": "changed"})
    writer.put(b"c", {})
    writer.seal()
    writer.commit()
    writer.follow()
    assert [(row["key"], row["path"]) for row in rows] == [(b"a", "committed"), (b"a\x00", "committed"), (b"b", "open")]
    assert [row["key"] for row in writer.table.scan()] == [b"\x00", b"a\x00", b"b", b"c"]


def test_what_memory_decides_is_not_asked_of_the_store_until_it_is_committed(
    store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    get = type(store).get

    def noted(self: Any, table: str, key: bytes) -> Any:
        asked.append(key)
        return get(self, table, key)

    monkeypatch.setattr(type(store), "get", noted)
    writer = Writer(store)
    writer.put(b"b", {"path": "x"})
    writer.seal()
    writer.patch(b"b", {"rows_read": 2})
    writer.delete(b"a")
    writer.check()
    assert not {b"a", b"b"} & set(asked)
    writer.seal()
    writer.commit()
    writer.commit()
    writer.follow()
    writer.check()
    assert {b"a", b"b"} <= set(asked), "what is committed is no longer kept"


def test_epochs_are_sealed_in_order_and_a_handle_is_never_older(store: HeadSwapStore) -> None:
    other = DeltaBuilder()
    other.put("ledger", b"a", 0)
    older = store.reopen()
    commit(store, 5, other.build())
    table = MemoryTable(store, "ledger")
    with pytest.raises(ProtocolError, match="'ledger' is sealed for epoch 5, which is not after 5"):
        table.seal(5)
    table.seal(6)
    with pytest.raises(ProtocolError, match="for epoch 6, which is not after 6"):
        table.seal(6)
    with pytest.raises(ProtocolError, match="read at epoch 5, and is to follow a handle that shows 0"):
        table.follow(older)


def test_a_field_that_the_table_does_not_have_is_refused(store: HeadSwapStore) -> None:
    table = MemoryTable(store, "ledger")
    with pytest.raises(ProtocolError, match="'ledger' has no field rows_red"):
        table.put(b"a", 1, rows_red=1)
