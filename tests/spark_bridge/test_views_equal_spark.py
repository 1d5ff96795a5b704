"""After every epoch a view equals Spark's answer over all rows so far, for every cut into epochs."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_queries import DEFINITIONS

SHORT = ("having", "one_row", "distinct_filtered", "append_union")


@pytest.mark.more_after(1)
@pytest.mark.parametrize("definition", few(DEFINITIONS, *SHORT), ids=lambda definition: definition.name)
def test_view_is_sparks_answer_after_every_epoch(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(f"rows of {definition.name}")
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    for rows in (chance.choice([0, 1, 7]), 40, 0, 1, chance.randrange(5, 60)):
        view.run({"t": random_rows(chance, rows)}, pieces=chance.randrange(1, 4))
        view.check()


@pytest.mark.more
def test_nulls_before_and_after_values_leave_no_trace(local_spark: SparkSession, tmp_path: Path) -> None:
    """An aggregate over nulls only, merged with one over values, in both orders."""
    query = """SELECT k, count(p) AS n, sum(p) AS sp, avg(p) AS ap, sum(i) AS si, avg(i) AS ai, min(i) AS lo,
        max(p) AS hi, stddev(i) AS d, var_pop(i) AS v, sum(p) FILTER (WHERE b) AS f FROM t GROUP BY k"""
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    nulls = [{"k": "a"}, {"k": "b"}]
    values = [
        {"k": "a", "p": Decimal("1.25"), "i": 3, "b": True},
        {"k": "a", "p": Decimal("-2.00"), "i": 5, "b": False},
    ]
    for rows in (nulls, values, nulls, values, nulls[1:]):
        view.run({"t": pa.Table.from_pylist(rows, schema=SCHEMA)})
        view.check()


@pytest.mark.more
def test_view_over_two_sources_follows_each(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(5)
    query = "SELECT k, count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("both", query), {"t": SCHEMA, "u": SCHEMA})
    for rows in (
        {"t": random_rows(chance, 9)},
        {"u": random_rows(chance, 4)},
        {},
        {s: random_rows(chance, 3) for s in "tu"},
    ):
        view.run(rows)
        view.check()
    assert view.plan.sources == ("t", "u")


@pytest.mark.more
@pytest.mark.parametrize("rows", [0, 30])
def test_one_row_view_has_its_row_from_creation_on(local_spark: SparkSession, tmp_path: Path, rows: int) -> None:
    view = FollowedView(local_spark, tmp_path, ViewDefinition("one", "SELECT count(*) AS n FROM t"), {"t": SCHEMA})
    view.run({"t": random_rows(random.Random(1), rows)})
    assert view.stored().to_pylist() == [{"n": rows}]


@pytest.mark.more
def test_many_groups_and_many_epochs_keep_the_view_right(local_spark: SparkSession, tmp_path: Path) -> None:
    """Enough groups for an index, and enough commits for its merging."""
    chance = random.Random(3)
    query = "SELECT concat(k, i) AS ki, count(*) AS n, sum(i) AS s FROM t GROUP BY 1"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("many", query), {"t": SCHEMA})
    pool = random_rows(chance, 400)
    wide = pool.set_column(SCHEMA.get_field_index("k"), SCHEMA.field("k"), [[f"k{n}" for n in range(pool.num_rows)]])
    for _ in range(3):
        view.run({"t": wide})
    for _ in range(70):
        view.run({"t": wide.slice(chance.randrange(390), 5)})
    view.check()
    assert len(view.dataset().get_fragments()) < 70


@pytest.mark.more
def test_merge_too_large_for_the_driver_is_a_job_with_the_same_answer(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    """Above the limit of a LocalRelation the expressions over stored objects are compiled and run as tasks."""
    query = """SELECT k, array_sort(collect_list(i)) AS l, percentile(i, 0.5) AS p, stddev(i) AS d,
        hll_sketch_estimate(hll_sketch_agg(i)) < 99 AS few FROM t GROUP BY k"""
    view = FollowedView(local_spark, tmp_path, ViewDefinition("large", query), {"t": SCHEMA})
    pool = random_rows(random.Random(6), 3_000)
    names = pa.array([f"{n % 1_500} {'-' * 1_000}" for n in range(pool.num_rows)], pa.string())
    wide = pool.set_column(SCHEMA.get_field_index("k"), SCHEMA.field("k"), names)
    for _ in range(2):
        view.run({"t": wide})
    view.check()


@pytest.mark.more
def test_seen_values_are_stored_once_and_separately(local_spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT k, count(DISTINCT g) AS n, count(DISTINCT b) AS m FROM t GROUP BY k"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("once", query), {"t": SCHEMA})
    rows = random_rows(random.Random(7), 50)
    view.run({"t": rows})
    seen = view.version
    assert seen.distinct_path == "view_state/once-1-distinct.lance"
    stored = open_dataset(view.root.child(seen.distinct_path), seen.distinct_version)
    assert stored.count_rows() == len(stored.to_table().column("__sw_key").unique())
    view.run({"t": rows})
    assert view.version.distinct_version == seen.distinct_version, "it has no new values"
    view.check()


@pytest.mark.more
def test_lists_hold_epoch_after_epoch(local_spark: SparkSession, tmp_path: Path) -> None:
    view = FollowedView(
        local_spark, tmp_path, ViewDefinition("lists", "SELECT collect_list(i) AS l FROM t"), {"t": SCHEMA}
    )
    for values in ([3], [1], [], [2]):
        view.run({"t": pa.Table.from_pylist([{"i": value} for value in values], schema=SCHEMA)})
    assert view.stored().to_pylist() == [{"l": [3, 1, 2]}]


@pytest.mark.more
def test_view_in_an_object_store_is_followed_and_reopened(
    local_spark: SparkSession, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    chance = random.Random(4)
    query = "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    view.root = Location(f"s3://{bucket}/root", s3.storage_options)
    view.materializer = view.new_materializer()
    for _ in range(2):
        view.run({"t": random_rows(chance, 30)})
        view.check()
    recorded = view.views
    view.materializer = view.new_materializer()
    view.materializer.open(recorded)
    view.run({"t": random_rows(chance, 30)})
    view.check()
