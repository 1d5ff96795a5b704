"""The layout of rows for Lance: slices, merged rows and rows of another process are all written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from state.clock import ManualClock
from state.lance.fragment_stager import FragmentStager, staged_fragments
from state.lance.lance_access import create_dataset, create_of_fragments
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.lance_layout import with_schema
from state.tables.records import EpochCounts, EpochSeconds

ACTORS = "ab"
NUM_FILES, EPOCHS = 1_000, 20
REPLACES = (None, True, False)


def told_by(actor: str, epoch: int) -> Delta:
    """Rows of an actor's files, pickled by its process; every other row is null in part."""
    delta = DeltaBuilder()
    for number in range(NUM_FILES):
        key = f"{actor}{epoch}-{number}"
        delta.put("ledger", key.encode(), 1, source="s", path=key, status="done", replaces=REPLACES[number % 3])
    delta.put("queue", f"{actor}{epoch}".encode(), 1, source="s", path=actor, replaces=True)
    told: Delta = pickle.loads(pickle.dumps(delta.build()))
    return told


def test_what_several_actors_tell_is_committed_and_folded_as_it_was(tmp_path: Path) -> None:
    store = LanceStateStore.create(Location(str(tmp_path)), ManualClock())
    store.take_over()
    for epoch in range(1, EPOCHS + 1):
        delta = Delta.merge([told_by(actor, epoch) for actor in ACTORS])
        store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    folds = 0
    while (fold := store.stage_fold()) is not None:
        store.commit_fold(fold)
        folds += 1
    assert folds
    told = {row["path"]: row["replaces"] for row in store.scan("ledger").to_pylist()}
    files = [(f"{actor}{epoch}", n) for actor in ACTORS for epoch in range(1, EPOCHS + 1) for n in range(NUM_FILES)]
    assert told == {f"{name}-{n}": REPLACES[n % 3] for name, n in files}
    assert {row["replaces"] for row in store.scan("queue").to_pylist()} == {True}


def test_a_part_of_a_file_with_nested_columns_is_staged_as_it_is(tmp_path: Path) -> None:
    nested: list[dict[str, Any] | None] = [
        None if number % 5 == 0 else {"ok": number % 2 == 0, "deep": {"yes": None if number % 3 else True}}
        for number in range(10_000)
    ]
    schema = pa.schema([("n", pa.struct([("ok", pa.bool_()), ("deep", pa.struct([("yes", pa.bool_())]))]))])
    rows = pa.table({"n": nested}, schema=schema)
    location = Location(str(tmp_path / "rows.lance"))
    stager = FragmentStager(location)
    staged = [name for start in range(0, 10_000, 999) for name in stager.stage(rows.slice(start, 999))]
    create_of_fragments(location, schema, staged_fragments(tuple(staged)))
    assert lance.dataset(location.lance_uri).to_table()["n"].to_pylist() == nested


def test_a_null_struct_may_have_a_field_that_is_never_null(tmp_path: Path) -> None:
    """Arrow's cast refuses it, also to the same type."""
    struct = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    rows = pa.table({"x": pa.array([{"a": 1}, None], struct), "y": pa.array(["p", "q"], pa.large_string())})
    schema = pa.schema([("s", struct), ("t", pa.string())])
    laid_out = with_schema(rows, schema)
    assert laid_out.schema == schema
    location = Location(str(tmp_path / "rows.lance"))
    create_dataset(location, laid_out)
    assert lance.dataset(location.lance_uri).to_table().to_pylist() == [
        {"s": {"a": 1}, "t": "p"},
        {"s": None, "t": "q"},
    ]
