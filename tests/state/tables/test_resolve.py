"""Resolution of rows, compared with a simple model that works row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.tables.delta import Delta, DeltaBuilder
from state.tables.resolve import resolve
from state.tables.tables import DELETE, PATCH, PUT
from state.vnode import VNODES

# One change: epoch, operation, key, two fields of the ledger.
Change = tuple[int, int, bytes, int | None, str | None]
CHANGES = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from([DELETE, PUT, PATCH]),
        st.sampled_from([b"a", b"b", b"c"]),
        st.none() | st.integers(0, 5),
        st.none() | st.sampled_from(["x", "y"]),
    ),
    max_size=30,
)


def model(changes: list[Change]) -> dict[bytes, dict[str, Any]]:
    rows: dict[bytes, dict[str, Any]] = {}
    for epoch, op, key, rows_read, error in changes:
        if op == DELETE:
            rows.pop(key, None)
        elif op == PUT:
            rows[key] = {"epoch": epoch, "rows_read": rows_read, "error": error}
        elif key in rows:
            rows[key]["epoch"] = epoch
            rows[key].update({n: v for n, v in (("rows_read", rows_read), ("error", error)) if v is not None})
    return rows


def apply(builder: DeltaBuilder, change: Change) -> None:
    _, op, key, rows_read, error = change
    if op == DELETE:
        builder.delete("ledger", key, 7)
    elif op == PUT:
        builder.put("ledger", key, 7, rows_read=rows_read, error=error)
    else:
        builder.patch("ledger", key, 7, rows_read=rows_read, error=error)


def as_stored(delta: Delta, epoch: int) -> pa.Table:
    rows = delta.tables["ledger"]
    return rows.append_column("epoch", pa.array([epoch] * rows.num_rows, pa.int64()))


def by_key(rows: pa.Table) -> dict[bytes, dict[str, Any]]:
    found = rows.select(["key", "epoch", "rows_read", "error"]).to_pylist()
    assert len({row["key"] for row in found}) == len(found)
    return {row.pop("key"): row for row in found}


@pytest.mark.more
@settings(deadline=None)
@given(CHANGES)
def test_current_rows_are_those_of_a_plain_replay(changes: list[Change]) -> None:
    changes = sorted(changes, key=lambda change: change[0])
    stored = []
    for epoch in sorted({change[0] for change in changes}, reverse=True):  # the order of storage must not matter
        builder = DeltaBuilder()
        for change in changes:
            if change[0] == epoch:
                apply(builder, change)
        stored.append(as_stored(builder.build(), epoch))
    if stored:
        assert by_key(resolve("ledger", pa.concat_tables(stored))) == model(changes)


@pytest.mark.more
@settings(deadline=None)
@given(CHANGES, st.integers(1, 4))
def test_deltas_of_several_actors_merge_to_what_one_would_have_built(changes: list[Change], actors: int) -> None:
    before = [(0, PUT, key, 9, "before") for key in (b"a", b"b")]
    one_epoch = [(1, *change[1:]) for change in changes]
    size = -(-len(one_epoch) // actors) or 1
    deltas = []
    for start in range(0, len(one_epoch), size):
        builder = DeltaBuilder()
        for change in one_epoch[start : start + size]:
            apply(builder, change)
        deltas.append(builder.build())
    first = DeltaBuilder()
    for change in before:
        apply(first, change)
    stored = [as_stored(first.build(), 0)]
    merged = Delta.merge(deltas)
    if not merged.is_empty:
        stored.append(as_stored(merged, 1))
    assert by_key(resolve("ledger", pa.concat_tables(stored))) == model([*before, *one_epoch])


def test_a_table_without_rows_has_its_columns() -> None:
    builder = DeltaBuilder()
    builder.delete("queue", b"a", 1)
    rows = builder.build().tables["queue"]
    current = resolve("queue", rows.append_column("epoch", pa.array([1], pa.int64())))
    assert current.num_rows == 0
    assert current.schema.field("size").type == pa.int64()
    assert current.column_names[:3] == ["key", "vnode", "epoch"]


@pytest.mark.more
def test_keys_of_more_than_two_gibibytes_are_resolved() -> None:
    keys = [f"{number:0>9000}".encode() for number in range(10_000)]
    once = pa.table(
        {
            "vnode": pa.array([number % VNODES for number in range(len(keys))], pa.uint8()),
            "op": pa.array([PUT] * len(keys), pa.uint8()),
            "key": pa.array(keys, pa.binary()),
            "row": pa.StructArray.from_arrays([pa.array(range(len(keys)))], ["rows_read"]),
        }
    )
    # The same memory many times: Arrow's offsets of 32 bits end at 2 GiB.
    written = pa.concat_tables(
        once.append_column("epoch", pa.repeat(pa.scalar(epoch, pa.int64()), len(keys))) for epoch in range(25)
    )
    assert written["key"].nbytes > 1 << 31
    current = resolve("ledger", written)
    assert current.num_rows == len(keys)
    assert current["epoch"].unique().to_pylist() == [24]
