"""A full view equals Spark's answer over all stored rows, after any change of their dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.maintenance.full_view import FullView
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import CommitRefusedError
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
RANKED = "SELECT k, n, row_number() OVER (ORDER BY n) AS r FROM t"


def stored(root: Path, rows: pa.Table, name: str = "t") -> ViewVersion:
    """Appends rows to the stored rows of a source."""
    uri = root / "views" / f"{name}.rows-1.lance"
    lineage = rows.add_column(0, "__sw_row", pa.array(range(rows.num_rows), pa.int64()))
    dataset = lance.write_dataset(lineage, str(uri), mode="append" if uri.exists() else "create")
    return ViewVersion(f"{name}.rows", f"views/{name}.rows-1.lance", dataset.version)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"k": [f"k{n % 3}" for n in numbers], "n": numbers, "at": [n * 1000 for n in numbers]}).cast(SCHEMA)


def full_view(spark: SparkSession, root: Path, definition: ViewDefinition) -> FullView:
    schemas = {"t": SCHEMA, "u": SCHEMA}
    definition = replace(definition, on_full="allow", refresh_interval_s=60)
    plan = analyse(spark, definition, schemas, schemas)
    assert plan.view_class == "full"
    view = FullView(spark, Location(str(root)), PlannedView(definition, plan, schemas))
    view.create(1)
    return view


def content(root: Path, version: ViewVersion) -> list[tuple[object, ...]]:
    table = open_dataset(Location(str(root)).child(version.path), version.version).to_table()
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_it_is_computed_over_the_rows_of_one_version(local_spark: SparkSession, tmp_path: Path) -> None:
    view = full_view(local_spark, tmp_path, ViewDefinition("v", RANKED))
    first = stored(tmp_path, rows(1, 2, 4))
    second = stored(tmp_path, rows(7, 8))
    version = view.refresh(5, {"t": first})
    assert content(tmp_path, version) == [("k1", 1, 1), ("k1", 4, 3), ("k2", 2, 2)]
    assert version.reflects_epoch == 5
    assert not view.is_stale({"t": first}) and view.is_stale({"t": second})
    later = view.refresh(6, {"t": second})
    assert (later.version, later.path) == (version.version + 1, version.path)
    assert [row[1:] for row in content(tmp_path, later)] == [(1, 1), (4, 3), (7, 4), (2, 2), (8, 5)]
    assert len(content(tmp_path, version)) == 3, "an earlier epoch keeps its rows"


def test_a_replacement_of_equal_size_makes_it_stale_and_a_take_over_does_not(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    view = full_view(local_spark, tmp_path, ViewDefinition("v", RANKED))
    first = stored(tmp_path, rows(1, 2, 4))
    view.refresh(5, {"t": first})
    dataset = open_dataset(Location(str(tmp_path)).child(first.path), first.version)
    dataset.restore()
    assert not view.is_stale({"t": replace(first, version=dataset.version)})
    assert view.is_stale({"t": replace(first, version=dataset.version, progress="6")})


@pytest.mark.more
def test_a_source_without_rows_is_empty_and_an_added_column_is_null(local_spark: SparkSession, tmp_path: Path) -> None:
    query = (
        "SELECT t.k, count(u.n) AS n, max(t.at) AS at FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k ORDER BY k "
        "LIMIT 99999"
    )
    view = full_view(local_spark, tmp_path, ViewDefinition("v", query))
    assert content(tmp_path, view.refresh(1, {})) == []
    early = stored(tmp_path, rows(1, 2).drop_columns(["at"]))
    assert content(tmp_path, view.refresh(2, {"t": early})) == [("k1", 0, None), ("k2", 0, None)]


@pytest.mark.more
def test_many_rows_are_read_by_sparks_workers(local_spark: SparkSession, tmp_path: Path) -> None:
    double = F.udf(lambda n: 2 * n, "long")

    def v(t: DataFrame) -> DataFrame:
        best = t.groupBy("k").agg(F.max("n").alias("n"))
        return best.agg(F.sum(double("n")).alias("s"), F.count("*").alias("c")).orderBy("s").limit(99_999)

    view = full_view(local_spark, tmp_path, ViewDefinition("v", function=v))
    for start in (0, 15_000):
        version = stored(tmp_path, rows(*range(start, start + 15_000)))
    assert content(tmp_path, view.refresh(1, {"t": version})) == [(2 * (29_999 + 29_998 + 29_997), 3)]
    assert local_spark.conf.get("spark.sql.shuffle.partitions") == "1", "the epochs' session is unchanged"


def test_a_commit_after_another_writer_is_refused(local_spark: SparkSession, tmp_path: Path) -> None:
    view = full_view(local_spark, tmp_path, ViewDefinition("v", RANKED))
    assert view.version is not None
    taken = open_dataset(Location(str(tmp_path)).child(view.version.path))
    taken.restore()
    with pytest.raises(CommitRefusedError):
        view.refresh(1, {"t": stored(tmp_path, rows(1))})
