"""Stored rows have one version per epoch, without Spark."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, StoredBlock
from spark_bridge.datasets.stored_rows import StoredRows
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import CommitRefusedError
from state.lance import view_dataset
from state.lance.fragment_stager import FragmentStager
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import LINEAGE

PATH = "views/s.rows-7.lance"
SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64())])
WIDER = pa.schema([*SCHEMA, ("n", pa.float64())])


class Source:
    """A source `s`; it stages rows like a fetch actor."""

    def __init__(self, root: Path) -> None:
        self.root = Location(str(root))
        self._stager = FragmentStager(self.root.child(PATH))
        self._row = 0

    def block(self, count: int = 2, schema: pa.Schema = SCHEMA) -> Block:
        """The next rows of one file; row `i` has i, and i / 2 in the added column."""
        positions = list(range(self._row, self._row + count))
        self._row += count
        columns = {"k": [f"k{i % 2}" for i in positions], "i": positions, "n": [i / 2 for i in positions]}
        rows = pa.table({name: columns[name] for name in schema.names}, schema=schema)
        lineage = {"__sw_path": ["a"] * count, "__sw_version": [1] * count, "__sw_row": positions}
        staged = pa.schema([*LINEAGE, *schema])
        fragments = self._stager.stage(pa.table({**lineage, **rows.to_pydict()}, schema=staged))
        # Spark gets only what a view uses.
        seen = rows.select(["k"])
        return Block("test", "s", seen, count, seen.nbytes, ("k",), StoredBlock(PATH, staged, fragments))

    def stored(self, count: int = 2, schema: pa.Schema = SCHEMA) -> StoredBlock:
        stored = self.block(count, schema).stored
        assert stored is not None
        return stored

    def numbers(self, version: ViewVersion) -> list[int]:
        dataset = open_dataset(self.root.child(version.path), version.version)
        return sorted(dataset.to_table()["i"].to_pylist())


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def test_each_epoch_is_one_version(source: Source) -> None:
    rows = StoredRows(source.root, "s")
    first = rows.apply([source.stored(), source.stored()])
    assert first == ViewVersion("s.rows", PATH, 1)
    second = rows.apply([source.stored(3)])
    assert (second.version, source.numbers(second)) == (2, list(range(7)))
    assert source.numbers(first) == list(range(4)), "an earlier epoch is unchanged"


@pytest.mark.parametrize("last", [SCHEMA, WIDER], ids=["without the column", "with the column"])
def test_an_added_column_is_null_in_earlier_rows(source: Source, last: pa.Schema) -> None:
    rows = StoredRows(source.root, "s")
    before = rows.apply([source.stored()])
    blocks = [source.stored(2), source.stored(2, WIDER)]
    both = rows.apply(blocks)
    after = rows.apply([source.stored(2, last)])
    table = open_dataset(source.root.child(PATH), after.version).to_table().sort_by("i")
    assert table.schema == pa.schema([*LINEAGE, *WIDER])
    assert table["n"].to_pylist() == [None] * 4 + [2.0, 2.5] + ([3.0, 3.5] if last is WIDER else [None] * 2)
    assert open_dataset(source.root.child(PATH), before.version).schema.names[-1] == "i"
    assert source.numbers(both) == list(range(6))


def test_after_a_take_over_only_the_new_writer_continues(source: Source) -> None:
    old = StoredRows(source.root, "s")
    recorded = old.apply([source.stored()])
    old.apply([source.stored()])  # its epoch was not committed
    taken_over = view_dataset.restore(source.root, recorded, term=2)
    new = StoredRows(source.root, "s")
    new.open(taken_over)
    for blocks in ([source.stored()], [source.stored(2, WIDER)]):
        with pytest.raises(CommitRefusedError, match="another process"):
            old.apply(blocks)
    version = new.apply([source.stored()])
    assert source.numbers(version) == [0, 1, 8, 9]


@pytest.mark.parametrize("schema", [SCHEMA, WIDER], ids=["", "with a new column"])
def test_rows_of_another_writer_are_noticed(source: Source, schema: pa.Schema) -> None:
    rows = StoredRows(source.root, "s")
    rows.apply([source.stored()])
    other = {name: [None] for name in (*LINEAGE.names, *SCHEMA.names)}
    uri = source.root.child(PATH).lance_uri
    lance.write_dataset(pa.table(other, schema=pa.schema([*LINEAGE, *SCHEMA])), uri, mode="append")
    with pytest.raises(CommitRefusedError, match="another process"):
        rows.apply([source.stored(2, schema)])


def test_rows_are_created_once(source: Source) -> None:
    StoredRows(source.root, "s").apply([source.stored()])
    with pytest.raises(CommitRefusedError):
        StoredRows(source.root, "s").apply([source.stored()])


@pytest.mark.more
def test_many_small_epochs_leave_few_fragments(source: Source) -> None:
    rows = StoredRows(source.root, "s")
    versions = [rows.apply([source.stored(1), source.stored(1)])]
    for _ in range(99):
        versions.append(rows.apply([source.stored(1), source.stored(1)]))
        rows.tidy()
    assert len(lance.dataset(str(source.root.child(PATH).path)).get_fragments()) < 60
    assert [source.numbers(each) for each in versions[::33]] == [list(range(2 * n)) for n in range(1, 101, 33)]


def test_the_materializer_writes_them_beside_the_views(local_spark: SparkSession, source: Source) -> None:
    definition = ViewDefinition("v", "SELECT k, count(*) AS n FROM s GROUP BY k")
    materializer = Materializer(local_spark, source.root)
    materializer.declare([definition], {"s": SCHEMA, "t": SCHEMA}, {})
    assert materializer.columns() == {"s": ("k",)}
    empty = materializer.run_epoch(1, {})
    assert set(empty.views) == {"v"}
    first = materializer.run_epoch(2, {"s": [source.block(), source.block()]})
    assert set(first.views) == {"v", "s.rows"}
    assert [each.name for each in (*empty.created, *first.created)] == ["v"], (
        "stored rows are not a view of the catalog"
    )
    none = materializer.run_epoch(3, {})
    assert none.views == first.views
    materializer.declare([definition], {"s": SCHEMA, "t": SCHEMA}, {each.name: each for each in empty.created})
    materializer.open(first.views)
    second = materializer.run_epoch(4, {"s": [source.block()]})
    assert source.numbers(second.views["s.rows"]) == list(range(6))
    counts = open_dataset(source.root.child(second.views["v"].path), second.views["v"].version).to_table()
    assert dict(zip(counts["k"].to_pylist(), counts["n"].to_pylist(), strict=True)) == {"k0": 3, "k1": 3}
    for _ in range(16):
        last = materializer.run_epoch(5, {"s": [source.block(1)]})
        materializer.tidy()
        materializer.tidy()
    assert source.numbers(last.views["s.rows"]) == list(range(22))
    assert len(lance.dataset(str(source.root.child(PATH).path)).get_fragments()) < 19, "it is tidied with the views"
    materializer.close()
