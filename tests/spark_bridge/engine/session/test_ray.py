"""The ingest through Ray's object store, on the real RayDP."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.ingest import blocks as ingest_blocks
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.location import Location
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.ray_blocks import blocks

pytestmark = [pytest.mark.ray, pytest.mark.more]

VIEWS = {
    "grouped": "SELECT k, count(*) AS n, sum(i) AS s, avg(p) AS a FROM t GROUP BY k",
    "appended": "SELECT * FROM t",
}


def lines(table: pa.Table) -> list[str]:
    """The rows in an order of their own."""
    return sorted(repr(row) for row in table.to_pylist())


def test_every_type_arrives_unchanged_in_spark_and_in_the_view(session: SparkSession, tmp_path: Path) -> None:
    chance, root = random.Random(21), Location(str(tmp_path))
    materializer = Materializer(session, root)
    materializer.declare([ViewDefinition(*view) for view in VIEWS.items()], {"t": SCHEMA}, {})
    rows = SCHEMA.empty_table()
    for epoch in range(1, 5):
        new = random_rows(chance, 60)
        rows = pa.concat_tables([rows, new])
        views = dict(materializer.run_epoch(epoch, {"t": blocks(new, pieces=3)}).views)
    materializer.close()
    grouped, appended = (
        lance.dataset(root.child(views[name].path).lance_uri, version=views[name].version).to_table() for name in VIEWS
    )
    assert appended.schema == SCHEMA
    assert lines(appended) == lines(rows)
    # DuckDB's average of decimals has another type.
    expected = duckdb.sql("SELECT k, count(*) AS n, sum(i)::BIGINT AS s FROM rows GROUP BY k").to_arrow_table()
    assert lines(grouped.select(["k", "n", "s"])) == lines(expected)


def test_null_elements_arrive_in_blocks_that_tasks_fetch(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreted functions of Spark 3.5 fail on a null element of an array over Arrow's columns."""
    monkeypatch.setattr(ingest_blocks, "FEW_BYTES", -1)
    elements = [[1, None], [None], [], None, [2]]
    table = pa.table({"a": pa.array(elements, pa.list_(pa.int64()))})
    root, query = Location(str(tmp_path)), "SELECT transform(a, x -> x + 1) AS a, exists(a, x -> x IS NULL) AS e FROM t"
    materializer = Materializer(session, root)
    materializer.declare([ViewDefinition("v", query)], {"t": table.schema}, {})
    view = materializer.run_epoch(1, {"t": blocks(table, pieces=2)}).views["v"]
    materializer.close()
    found = lance.dataset(root.child(view.path).lance_uri, version=view.version).to_table().to_pylist()
    assert [row["a"] for row in found] == [[2, None], [None], [], None, [3]]
    assert [row["e"] for row in found] == [True, True, False, None, False]
