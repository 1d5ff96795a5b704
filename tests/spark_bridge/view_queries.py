"""One view for each form of query that can be maintained, over the table `t` of `random_rows`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from spark_bridge.plans.view_definition import ViewDefinition

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
    "by_window": "SELECT window(at, '9 hours') AS w, count(*) AS n, sum(i) AS s FROM t GROUP BY window(at, '9 hours')",
    "by_window_start": "SELECT window.start AS since, k, count(*) AS n FROM t GROUP BY window(at, '7 hours'), k",
    "by_hopping_window": "SELECT window.end AS e, min(i) AS lo FROM t GROUP BY window(at, '10 hours', '5 hours')",
    "by_struct": "SELECT struct(k, x) AS pair, count(*) AS n, max(i) AS hi FROM t GROUP BY struct(k, x)",
    "by_array": "SELECT array(k, upper(k)) AS both, array(x, f) AS fs, count(*) AS n FROM t "
    "GROUP BY array(k, upper(k)), array(x, f)",
    "by_nested": "SELECT CASE WHEN b THEN struct(k, array(struct(g, x))) END AS part, sum(i) AS s FROM t "
    "GROUP BY CASE WHEN b THEN struct(k, array(struct(g, x))) END HAVING count(*) > 1",
    "distinct_nested": "SELECT k, count(DISTINCT struct(g, b)) AS n, count(DISTINCT array(x)) AS m FROM t GROUP BY k",
    "keys_not_shown": "SELECT count(*) AS n, sum(i) AS s FROM t GROUP BY k, g",
    "keys_only": "SELECT k, g FROM t GROUP BY k, g",
    "key_twice": "SELECT k, k AS again, count(*) AS n, count(*) AS m FROM t GROUP BY k",
    "one_row": "SELECT count(*) AS n, sum(i) AS s, avg(x) AS a, max(k) AS m, min(p) AS p FROM t",
    "one_row_having": "SELECT count(*) AS n FROM t HAVING count(*) BETWEEN 10 AND 60",
    "in_tasks": "SELECT k, count(*) AS n FROM (SELECT /*+ REPARTITION(3) */ k FROM t DISTRIBUTE BY g SORT BY i) "
    "GROUP BY k",
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
    "append_unpivot": "SELECT k, name, v FROM (SELECT k, i, CAST(g AS BIGINT) AS g FROM t) "
    "UNPIVOT (v FOR name IN (i, g))",
    "append_hopping": "SELECT i, window(at, '10 minutes', '5 minutes').start AS w FROM t",
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
