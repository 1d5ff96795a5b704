"""After every epoch a view equals Spark's answer over all rows so far, for every cut into epochs."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.analysis.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows

QUERIES = {
    "counts": "SELECT k, count(*) AS n, count(x) AS nx, count(x, i) AS both FROM t GROUP BY k",
    "sums": "SELECT k, sum(i) AS si, sum(x) AS sx, sum(f) AS sf, sum(g) AS sg FROM t WHERE NOT isnan(x) GROUP BY k",
    "nan_sums": "SELECT g, sum(x) AS sx, avg(x) AS ax FROM t GROUP BY g",
    "decimals": "SELECT k, sum(p) AS sp, avg(p) AS ap, min(p) AS lo, max(p) AS hi FROM t GROUP BY k",
    "decimal_overflow": "SELECT g, sum(wide * 100000000) AS s, avg(wide) AS a FROM t GROUP BY g",
    "averages": "SELECT k, avg(x) AS ax, avg(i) AS ai, avg(f) AS af FROM t WHERE x < 1e8 GROUP BY k",
    "extremes": "SELECT g, min(x) AS a, max(x) AS b, min(k) AS c, max(day) AS d, "
    "min(at) AS e, max(wall) AS w, max(b) AS y, min(raw) AS z FROM t GROUP BY g",
    "variances": "SELECT k, var_pop(i) AS vp, var_samp(i) AS vs, stddev_pop(i) AS sp, stddev(i) AS s FROM t GROUP BY k",
    "with_filter": "SELECT k, count(*) FILTER (WHERE b) AS n, sum(i) FILTER (WHERE i > 0) AS s, "
    "avg(p) FILTER (WHERE g = 1) AS a, stddev(i) FILTER (WHERE b) AS d FROM t GROUP BY k",
    "having": "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0 AND count(*) < 40",
    "having_without_key": "SELECT sum(i) AS s FROM t GROUP BY k, g HAVING avg(i) > 0",
    "having_hidden": "SELECT k FROM t GROUP BY k HAVING max(i) > 900",
    "computed": "SELECT upper(k) AS k, g + 1 AS g1, avg(i) + count(*) * 2 AS v, max(i) - min(i) AS spread, "
    "sum(i) / count(*) AS mean, 'x' AS c FROM t GROUP BY upper(k), g",
    "by_expression": "SELECT date_trunc('day', at) AS d, i % 3 AS m, count(*) AS n FROM t GROUP BY 1, i % 3",
    "double_keys": "SELECT x, f, count(*) AS n FROM t GROUP BY x, f",
    "typed_keys": "SELECT p, b, day, at, wall, raw, count(*) AS n FROM t WHERE g = 1 GROUP BY p, b, day, at, wall, raw",
    "keys_not_shown": "SELECT count(*) AS n, sum(i) AS s FROM t GROUP BY k, g",
    "keys_only": "SELECT k, g FROM t GROUP BY k, g",
    "key_twice": "SELECT k, k AS again, count(*) AS n, count(*) AS m FROM t GROUP BY k",
    "one_row": "SELECT count(*) AS n, sum(i) AS s, avg(x) AS a, max(k) AS m, min(p) AS p FROM t",
    "one_row_having": "SELECT count(*) AS n FROM t HAVING count(*) BETWEEN 10 AND 60",
    "above": "SELECT k, n * 2 AS n2, a FROM (SELECT k, count(*) AS n, avg(i) AS a FROM t GROUP BY k) WHERE n > 3",
    "above_unfiltered": "SELECT n, key, hi FROM (SELECT k AS key, count(*) AS n, max(i) AS hi FROM t GROUP BY k) q",
    "common_table": "WITH u AS (SELECT k, i FROM t WHERE b) SELECT k, count(*) AS n FROM u GROUP BY k",
    "over_explode": "SELECT tag, count(*) AS n, sum(i) AS s FROM t LATERAL VIEW explode(tags) e AS tag GROUP BY tag",
    "over_union": "SELECT k, sum(v) AS s FROM (SELECT k, i AS v FROM t UNION ALL SELECT k, g FROM t) GROUP BY k",
    "distinct": "SELECT k, count(DISTINCT g) AS n, count(DISTINCT x) AS nx, count(*) AS m FROM t GROUP BY k",
    "distinct_only": "SELECT k, count(DISTINCT g, b) AS n, sum(DISTINCT g) AS s, avg(DISTINCT i) AS a FROM t "
    "GROUP BY k",
    "distinct_filtered": "SELECT k, count(DISTINCT i) FILTER (WHERE b) AS n, "
    "sum(DISTINCT i) FILTER (WHERE NOT b) AS s, sum(DISTINCT p) FILTER (WHERE b) AS sp FROM t GROUP BY k",
    "distinct_filtered_one_row": "SELECT count(DISTINCT i) FILTER (WHERE i > 500) AS n FROM t",
    "distinct_one_row": "SELECT count(DISTINCT k) AS n, count(DISTINCT x) AS nx, count(DISTINCT 1) AS one FROM t",
    "distinct_having": "SELECT k FROM t GROUP BY k HAVING count(DISTINCT g) > 2 AND count(DISTINCT b) < 3",
    "distinct_typed": "SELECT g, array_sort(collect_list(DISTINCT k)) AS ks, median(DISTINCT i) AS m FROM t GROUP BY g",
    "tried": "SELECT g, try_sum(i) AS s, try_avg(p) AS a, try_sum(wide * 100000000) AS w FROM t GROUP BY g",
    "by": "SELECT k, min_by(g, struct(i, at, p)) AS a, max_by(place, struct(i, at, p)) AS b FROM t GROUP BY k",
    "shapes": "SELECT g, skewness(i) AS s, kurtosis(i) AS k, covar_pop(i, p) AS c, covar_samp(i, g) AS d, "
    "corr(i, p) AS r FROM t GROUP BY g",
    "regressions": "SELECT b, regr_count(i, p) AS n, regr_avgx(i, p) AS ax, regr_avgy(i, p) AS ay, "
    "regr_sxx(i, p) AS xx, regr_sxy(i, p) AS xy, regr_syy(i, p) AS yy, regr_r2(i, p) AS r2, "
    "regr_slope(i, p) AS s, regr_intercept(i, p) AS c FROM t GROUP BY b",
    "logical": "SELECT k, bool_and(b) AS a, every(i > 0) AS e, bool_or(b) AS o, some(i > 900) AS s, "
    "any(i < 0) FILTER (WHERE g = 1) AS y, count_if(b) AS c FROM t GROUP BY k",
    "bits": "SELECT k, bit_and(i) AS a, bit_or(i) AS o, bit_xor(g) AS x FROM t GROUP BY k",
    "collections": "SELECT k, array_sort(collect_list(i)) AS l, array_sort(array_agg(place.city)) AS a, "
    "array_sort(collect_set(g)) AS s FROM t GROUP BY k",
    "collections_having": "SELECT k, size(collect_list(i)) AS n FROM t GROUP BY k HAVING size(collect_set(g)) > 2",
    "percentiles": "SELECT g, percentile(i, array(0.1, 0.9)) AS p, median(x) AS m, "
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY i DESC) AS c, percentile_disc(0.3) WITHIN GROUP (ORDER BY i) AS d "
    "FROM t GROUP BY g",
    "one_row_typed": "SELECT median(i) AS m, collect_list(k) FILTER (WHERE false) AS none FROM t",
    "rollup": "SELECT k, g, count(*) AS n, sum(i) AS s FROM t GROUP BY ROLLUP (k, g)",
    "cube": "SELECT k, b, grouping(k) AS gk, grouping_id() AS id, count(DISTINCT g) AS n FROM t GROUP BY CUBE (k, b)",
    "sets": "SELECT g, b, count(*) AS n FROM t GROUP BY GROUPING SETS ((g), (g), (b), ()) HAVING count(*) > 1",
    "select_distinct": "SELECT DISTINCT k, g % 2 AS h FROM t WHERE i > 0",
    "union_distinct": "SELECT k FROM t UNION SELECT upper(k) FROM t",
    "append_all": "SELECT * FROM t",
    "append_some": "SELECT k, x * 2 AS x2, CASE WHEN b THEN 'yes' ELSE 'no' END AS yes FROM t WHERE i > 0",
    "append_explode": "SELECT k, posexplode_outer(tags) AS (position, tag), place.city FROM t",
    "append_union": "SELECT k AS name, i FROM t WHERE b UNION ALL SELECT upper(k), -i FROM t WHERE NOT b",
    "append_nested": "SELECT map('a', i) AS m, array(g, 1) AS a, named_struct('k', k, 'p', place) AS s FROM t",
}


def _twice(x: Any) -> Any:
    return None if x is None else 2.0 * x


twice = F.udf(_twice, DoubleType())


def udf_rows(t: DataFrame) -> DataFrame:
    return t.where("i > 0").select("k", twice("x").alias("doubled"))


def udf_groups(t: DataFrame) -> DataFrame:
    return t.groupBy(F.lower("k").alias("low")).agg(
        F.count("*").alias("n"), F.sum(twice(F.col("i"))).alias("s"), twice(F.max("i")).alias("above")
    )


def frame_groups(t: DataFrame) -> DataFrame:
    return t.where(F.col("b")).groupBy("g").agg(F.avg("p").alias("a"), F.stddev("i").alias("d")).where("a IS NOT NULL")


def frame_without_duplicates(t: DataFrame) -> DataFrame:
    return t.select("k", "x").dropDuplicates()


def frame_products(t: DataFrame) -> DataFrame:
    return t.where("g IS NOT NULL").groupBy("k").agg(F.product(F.col("g") * 0.5).alias("p"))


DEFINITIONS = [ViewDefinition(name, query) for name, query in QUERIES.items()]
DEFINITIONS += [ViewDefinition(each.__name__, function=each) for each in (udf_rows, udf_groups, frame_groups)]
DEFINITIONS += [ViewDefinition(each.__name__, function=each) for each in (frame_without_duplicates, frame_products)]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_view_is_sparks_answer_after_every_epoch(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(f"rows of {definition.name}")
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    for rows in (chance.choice([0, 1, 7]), 40, 0, 1, chance.randrange(5, 60)):
        view.run({"t": random_rows(chance, rows)}, pieces=chance.randrange(1, 4))
        view.check()


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


@pytest.mark.parametrize("rows", [0, 30])
def test_one_row_view_has_its_row_from_creation_on(local_spark: SparkSession, tmp_path: Path, rows: int) -> None:
    view = FollowedView(local_spark, tmp_path, ViewDefinition("one", "SELECT count(*) AS n FROM t"), {"t": SCHEMA})
    view.run({"t": random_rows(random.Random(1), rows)})
    assert view.stored().to_pylist() == [{"n": rows}]


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


def test_lists_hold_epoch_after_epoch(local_spark: SparkSession, tmp_path: Path) -> None:
    view = FollowedView(
        local_spark, tmp_path, ViewDefinition("lists", "SELECT collect_list(i) AS l FROM t"), {"t": SCHEMA}
    )
    for values in ([3], [1], [], [2]):
        view.run({"t": pa.Table.from_pylist([{"i": value} for value in values], schema=SCHEMA)})
    assert view.stored().to_pylist() == [{"l": [3, 1, 2]}]


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
