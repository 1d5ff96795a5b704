"""Stored rows of a piece of history are read by Spark's tasks: each row once, in order, without blocks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from slackwater.backfill.stored_history import StoredHistory
from spark_bridge.engine.catalyst.arrow_frames import table_of_frame
from spark_bridge.ingest import dataset_frame, row_ingest
from spark_bridge.ingest.dataset_frame import rows_of_span
from spark_bridge.ingest.history import FragmentRows, StoredSpan
from spark_bridge.maintenance import backfill
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.fingerprint import path_fingerprint
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, LINEAGE
from tests.cases import few
from tests.spark_bridge.followed_view import blocks
from tests.spark_bridge.ways_of_rows import as_if_many

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
COUNT = 40
DELETED = (0, 7, 11, 12, 39)
# The function comes as on a worker that has pyarrow and pylance, and no more of what this process has.
READ_ELSEWHERE = """
import pickle, sys
class Without:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("actors", "slackwater", "spark_bridge", "state", "tests"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
import pyarrow as pa
read, tasks = pickle.load(open(sys.argv[1], "rb"))
print(sum(batch.num_rows for batch in read([pa.record_batch({"task": tasks})])))
"""


def stored(root: Path) -> ViewVersion:
    """Rows in fragments of ten; some are deleted, and a later version has others."""
    uri = str(root / "views" / "t.rows-1.lance")
    numbers = range(COUNT)
    lineage = [pa.array([f"f{each // 4}" for each in numbers]), pa.array([1] * COUNT), pa.array(numbers)]
    columns = [pa.array([f"k{each % 3}" for each in numbers]), pa.array(numbers)]
    rows = pa.Table.from_arrays([*lineage, *columns], schema=pa.schema([*LINEAGE, *SCHEMA]))
    lance.write_dataset(rows, uri, max_rows_per_file=10)
    dataset = lance.dataset(uri)
    dataset.delete(f"n IN {DELETED}")
    version = dataset.version
    lance.write_dataset(rows, uri, mode="append")
    return ViewVersion("t.rows", "views/t.rows-1.lance", version)


def span(root: Path, *parts: FragmentRows, nbytes: int = 0) -> StoredSpan:
    version = stored(root)
    location = Location(str(root)).child(version.path)
    dataset = lance.dataset(location.lance_uri, version=version.version)
    return StoredSpan("t", location, dataset, ("n", FILE_FIELD.name), parts, nbytes)


def expected(*numbers: int) -> list[dict[str, object]]:
    return [{"n": each, FILE_FIELD.name: path_fingerprint("t", f"f{each // 4}")} for each in numbers]


@pytest.mark.parametrize("many", [False, True])
def test_a_span_begins_and_ends_within_fragments_and_has_no_deleted_row(
    local_spark: SparkSession, tmp_path: Path, many: bool
) -> None:
    parts = FragmentRows(0, 6, 2), FragmentRows(1, 0, 8), FragmentRows(2, 0, 3)
    one = span(tmp_path, *parts, nbytes=100)
    schema = pa.schema([("n", pa.int64()), FILE_FIELD])
    if many:
        with as_if_many():
            found = table_of_frame(rows_of_span(local_spark, one, 3).frame, schema)
    else:
        few = rows_of_span(local_spark, one, 1).few
        assert few is not None
        found = few
    # The rows 0 and 7 are gone from the first fragment, so six rows are before the row 8.
    assert found.to_pylist() == expected(8, 9, 10, *range(13, 23))


def test_tasks_share_the_rows_of_a_span_in_their_order() -> None:
    parts = [FragmentRows(4, 5, 3), FragmentRows(5, 0, 10), FragmentRows(9, 0, 1)]
    assert dataset_frame._shares(parts, 3) == [
        [FragmentRows(4, 5, 3), FragmentRows(5, 0, 2)],
        [FragmentRows(5, 2, 5)],
        [FragmentRows(5, 7, 3), FragmentRows(9, 0, 1)],
    ]


def test_rows_that_were_taken_for_few_and_are_many_are_read_by_tasks(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = span(tmp_path, FragmentRows(1, 0, 8))
    monkeypatch.setattr(dataset_frame, "FEW_BYTES", 10)
    rows = rows_of_span(local_spark, one, 1)
    assert rows.few is None
    assert rows.frame.count() == 8


def test_a_worker_without_this_project_reads_a_span(tmp_path: Path) -> None:
    one = span(tmp_path, FragmentRows(0, 0, 8), FragmentRows(1, 0, 8))

    shares = [dataset_frame._Scan([0], 0, 8), dataset_frame._Scan([1], 2, 3)]
    schema = pa.schema([("n", pa.int64()), FILE_FIELD])
    version, wanted = one.dataset.version, dataset_frame.WantedRows("t")
    tasks = [dataset_frame._task(one.location, version, each, schema, wanted) for each in shares]
    (tmp_path / "read").write_bytes(cloudpickle.dumps((dataset_frame._read_shares, tasks)))
    done = subprocess.run(
        [sys.executable, "-c", READ_ELSEWHERE, str(tmp_path / "read")], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("11", 0), done.stderr


def takes_piece(materializer: Materializer) -> bool:
    """Adds the next piece, when it is computed; False at the end of the history."""
    while not materializer.backfill():
        if materializer.has_news():
            return False
        time.sleep(0.001)
    return True


NEW = pa.table({"k": ["new"], "n": [101], FILE_FIELD.name: pa.array([path_fingerprint("t", "new")], FILE_FIELD.type)})
GROUPED = "SELECT k, count(*) AS rows, sum(n) AS s FROM t GROUP BY k"


@pytest.mark.more
@pytest.mark.parametrize("query", few([GROUPED, "SELECT n FROM t WHERE n % 2 = 1"], GROUPED))
def test_history_of_stored_rows_makes_no_block_and_repeats_no_row_after_a_crash(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    version, root = stored(tmp_path), Location(str(tmp_path))
    monkeypatch.setattr(row_ingest, "rows_of_span", lambda spark, one, _: rows_of_span(spark, one, 3))
    monkeypatch.setattr(backfill, "_LEAST_BESIDE_BYTES", 1)
    monkeypatch.setattr(backfill, "_MOST_BYTES", 60)

    def open_history(plan: ViewPlan, since: int, epoch: int, progress: str | None) -> StoredHistory:
        return StoredHistory(root, {"t": version}, {"t": SCHEMA}, plan.columns, progress)

    def no_block(source: str, table: pa.Table) -> Block:
        raise AssertionError("rows of the history came through this process")

    def opened(views: dict[str, ViewVersion], epoch: int) -> Materializer:
        made = Materializer(
            local_spark, root, materialized={"t"}, open_history=open_history, put_block=no_block, backfill_weight=1
        )
        made.open(views, epoch, {"t"})
        made.declare([ViewDefinition("v", query)], {"t": SCHEMA}, {})
        return made

    with as_if_many():
        materializer = opened({}, 1)
        recorded = dict(materializer.run_epoch(2, {}).views)
        assert not materializer.backfill(), "a piece is computed beside the next epoch"
        recorded = dict(materializer.run_epoch(3, {"t": blocks(NEW)}).views)
        assert takes_piece(materializer)
        recorded = dict(materializer.run_epoch(4, {"t": blocks(NEW)}).views)
        assert takes_piece(materializer)
        assert not materializer.backfill(), "the attempt ends while a piece is computed"
        materializer.close()
        recorded = restored_views(recorded, lambda view: restore(root, view, 1))
        materializer = opened(recorded, 4)
        pieces = 1
        while takes_piece(materializer):
            pieces += 1
        recorded = dict(materializer.run_epoch(5, {}).views)
        materializer.close()
    assert pieces > 4
    rows = lance.dataset(root.child(recorded["v"].path).lance_uri, version=recorded["v"].version).to_table()
    numbers = [each for each in range(COUNT) if each not in DELETED]
    if "GROUP" in query:
        groups = {f"k{key}": [each for each in numbers if each % 3 == key] for key in range(3)}
        found = {row["k"]: (row["rows"], row["s"]) for row in rows.to_pylist()}
        assert found == {key: (len(of), sum(of)) for key, of in groups.items()} | {"new": (2, 202)}
    else:
        odd = [each for each in numbers if each % 2]
        assert sorted(rows["n"].to_pylist()) == [*odd, 101, 101]
        rows = rows.filter(pc.less(rows["n"], 101))
        assert rows["n"].to_pylist() == odd, "in the order of the stored rows"
        assert rows[FILE_FIELD.name].to_pylist() == [path_fingerprint("t", f"f{each // 4}") for each in odd]
