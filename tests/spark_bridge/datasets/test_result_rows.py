"""Rows that Spark's tasks write equal the rows that this process writes."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.datasets import result_rows
from spark_bridge.datasets.result_rows import Result, append_result, create_of_result, replace_by_result
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import CommitRefusedError
from state.lance.lance_access import open_dataset
from state.location import Location
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_queries import QUERIES

APPEND = [name for name in QUERIES if name.startswith("append_")]
ROWS = pa.schema([pa.field("n", pa.int64(), nullable=False)])


@pytest.fixture(autouse=True)
def every_result_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_rows, "_STAGED_FROM_BYTES", 0)


@pytest.mark.parametrize("name", few(APPEND, "append_all"))
def test_a_view_is_sparks_answer_after_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    view = FollowedView(local_spark, tmp_path, ViewDefinition(name, QUERIES[name]), {"t": SCHEMA})
    for rows in (0, 60, 1):
        view.run({"t": random_rows(chance, rows)}, pieces=3)
        view.check()


@pytest.mark.more
def test_the_order_of_a_result_is_that_of_its_rows(local_spark: SparkSession, tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    ordered = local_spark.range(0, 1_000, 1, numPartitions=7).selectExpr("999 - id AS n")
    table = create_of_result(location, Result(ROWS, 1, lambda: ordered))
    replace_by_result(table, Result(ROWS, 1, lambda: local_spark.range(0, 1_000, 1, numPartitions=5).toDF("n")))
    append_result(table, Result(ROWS, 1, lambda: local_spark.range(1_000, 1_100, 1, numPartitions=3).toDF("n")))
    for version, numbers in ((2, range(999, -1, -1)), (3, range(1_000)), (4, range(1_100))):
        stored = open_dataset(location, version)
        assert stored.to_table()["n"].to_pylist() == list(numbers)
        assert stored.schema == ROWS
    assert len(open_dataset(location, 3).get_fragments()) == 5, "each task writes its own fragment"


@pytest.mark.more
def test_an_empty_replacement_empties_and_an_empty_append_makes_no_version(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = create_of_result(location, Result(ROWS, 1, lambda: local_spark.range(10).toDF("n")))
    nothing = frame_of_table(local_spark, ROWS.empty_table())
    append_result(table, Result(ROWS, 1, lambda: nothing))
    assert table.version == 2
    replace_by_result(table, Result(ROWS, 1, lambda: nothing))
    assert open_dataset(location, table.version).count_rows() == 0


@pytest.mark.more
def test_a_task_that_fails_leaves_the_dataset_as_it_was(local_spark: SparkSession, tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = create_of_result(location, Result(ROWS, 1, lambda: local_spark.range(10).toDF("n")))
    failing = local_spark.range(0, 100, 1, numPartitions=4).selectExpr("IF(id = 99, raise_error('no'), id) AS n")
    with pytest.raises(Exception, match="no"):
        append_result(table, Result(ROWS, 1, lambda: failing))
    assert open_dataset(location).version == 2
    append_result(table, Result(ROWS, 1, lambda: local_spark.range(5).toDF("n")))
    assert open_dataset(location).count_rows() == 15


@pytest.mark.more
def test_a_commit_after_another_writer_is_refused(local_spark: SparkSession, tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = create_of_result(location, Result(ROWS, 1, lambda: local_spark.range(10).toDF("n")))
    open_dataset(location).restore()
    with pytest.raises(CommitRefusedError):
        append_result(table, Result(ROWS, 1, lambda: local_spark.range(5).toDF("n")))
