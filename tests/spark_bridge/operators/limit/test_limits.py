"""The first rows in an order follow the changes of all rows, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from spark_bridge.operators.limit import limit_operator
from spark_bridge.operators.limit.first_rows import FirstRows
from spark_bridge.operators.limit.limit_operator import LimitOperator
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.numbered_rows import cost, with_numbers
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, follow_late

SOURCES = ("t", "u")
LIMITS: Mapping[str, tuple[str, str]] = {
    "largest": ("append", "SELECT k, i, x FROM t ORDER BY i DESC LIMIT 5"),
    "ties": ("append", "SELECT k, g FROM t ORDER BY g LIMIT 6"),
    "nulls": ("append", "SELECT g, x, f FROM t ORDER BY x DESC NULLS FIRST, f ASC NULLS LAST LIMIT 7"),
    "texts": ("append", "SELECT upper(k) AS k, i FROM t ORDER BY k, length(k) DESC LIMIT 8"),
    "structs": ("append", "SELECT place, tags, raw FROM t ORDER BY place DESC, tags, raw LIMIT 6"),
    "all columns": ("append", "SELECT * FROM t ORDER BY at LIMIT 4"),
    "offset": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 4 OFFSET 3"),
    "by another column": ("append", "SELECT k FROM t WHERE b ORDER BY p DESC, wide LIMIT 5"),
    "none": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 0"),
    "all": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 1000"),
    "a third page": ("append", "SELECT k, i FROM (SELECT k, i FROM t ORDER BY i LIMIT 9) ORDER BY k LIMIT 2 OFFSET 4"),
    "twice": ("append", "SELECT k, g FROM (SELECT * FROM t ORDER BY i LIMIT 9 OFFSET 1) LIMIT 3"),
    "grouped": ("aggregate", "SELECT k, max(i) AS m, count(*) AS n, sum(p) AS s FROM (SELECT * FROM t ORDER BY i "
                             "LIMIT 12) GROUP BY k"),
    "filtered": ("append", "SELECT s FROM (SELECT k AS s, i FROM t ORDER BY i DESC LIMIT 9) WHERE i > 0"),
    "of groups": ("append", "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k ORDER BY n DESC LIMIT 3"),
    "of a hidden order": ("append", "SELECT k FROM t GROUP BY k ORDER BY max(i) DESC LIMIT 3"),
    "of a join": ("append", "SELECT t.k, u.i FROM t JOIN u ON t.g = u.g ORDER BY u.i DESC, t.i LIMIT 6"),
    "of joins in another order": ("append", "SELECT a.k, b.g, u.i FROM t a, t b, u WHERE a.i = u.i AND b.g = u.g "
                                            "AND b.k = u.k ORDER BY u.i DESC, a.k, b.i LIMIT 6"),
    "of one row": ("aggregate", "SELECT count(*) AS n, max(i) AS m FROM t LIMIT 5"),
    "of single rows": ("append", "SELECT n, m FROM (SELECT count(*) AS n FROM t) CROSS JOIN (SELECT max(i) AS m FROM "
                                 "u) LIMIT 1"),
    "of an outer join": ("append", "SELECT t.k, u.i FROM t LEFT JOIN u ON t.k = u.k ORDER BY u.i NULLS FIRST LIMIT 6"),
    "of a union": ("append", "SELECT k, i FROM t UNION ALL SELECT k, i FROM u ORDER BY i LIMIT 6"),
    "of a window": ("append", "SELECT k, n, i FROM (SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i) AS n "
                              "FROM t) ORDER BY n DESC LIMIT 5"),
    "below a window": ("append", "SELECT k, sum(i) OVER (PARTITION BY k ORDER BY i) AS s FROM (SELECT * FROM t ORDER "
                                 "BY i LIMIT 9)"),
    "joined": ("append", "SELECT u.k, u.i FROM u JOIN (SELECT k FROM t ORDER BY i DESC LIMIT 3) s ON u.k = s.k"),
    "in a condition": ("append", "SELECT k, i FROM t WHERE g IN (SELECT g FROM u ORDER BY i LIMIT 2)"),
    "beside others": ("append", "(SELECT k, i FROM t ORDER BY i LIMIT 3) UNION ALL (SELECT k, i FROM t ORDER BY i DESC "
                                "LIMIT 3)"),
}  # fmt: skip
LARGEST = ViewDefinition("v", LIMITS["largest"][1])


@contextmanager
def scans(spare: int = 1) -> Iterator[list[str]]:
    """So few spare rows, and for each time that all rows are put in order, the limit."""
    made = list[str]()
    computed = LimitOperator._computed

    def noted(self: LimitOperator, parents: Any, limit: Any, *arguments: Any) -> Any:
        made.append(limit.name)
        return computed(self, parents, limit, *arguments)

    with (
        patch.object(limit_operator, "_SPARE_ROWS", spare),
        patch.object(LimitOperator, "_computed", noted),
    ):
        yield made


@pytest.mark.parametrize("name", few(LIMITS, "grouped"))
def test_a_limit_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"limit {name}")
    view_class, query = LIMITS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    with scans():
        follow_in_all_ways(graph, chance)


@pytest.mark.parametrize("name", few(["largest", "ties", "grouped", "of a join"]))
def test_a_limit_over_rows_that_were_there_before(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"late {name}")
    follow_late(local_spark, tmp_path, ViewDefinition("v", LIMITS[name][1]), chance)


@pytest.mark.parametrize("name", few(["largest", "offset", "grouped", "of a join"]))
def test_a_limit_over_rows_that_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", LIMITS[name][1]), {"t": SCHEMA, "u": SCHEMA})
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()


class Numbers:
    """The view of the five largest of the numbers from 1 on, of which each is in a file of its own."""

    def __init__(self, spark: SparkSession, root: Path, most: int = 20) -> None:
        self.graph = ViewGraph(spark, root, [LARGEST])
        self.graph.correct({("t", f"{number}"): with_numbers(number) for number in range(1, most + 1)})

    def leave(self, *numbers: int) -> None:
        """An epoch in which these numbers leave."""
        self.graph.correct({}, {("t", f"{number}"): None for number in numbers})
        self.graph.check()

    def come(self, *numbers: int) -> None:
        """An epoch in which these numbers come."""
        self.graph.correct({("t", f"{number}"): with_numbers(number) for number in numbers})
        self.graph.check()


@pytest.mark.more
def test_all_rows_are_put_in_order_again_when_the_spare_ones_have_left(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    with scans() as made:
        view = Numbers(local_spark, tmp_path)  # 20 to 11 are kept: as many spare ones as wanted ones
        made.clear()
        view.leave(20, 18, 12)
        view.leave(1, 2)
        view.come(30, 31)
        view.leave(19, 17)
        assert not made, "five are left: 31, 30, 16, 15 and 14"
        view.come(-7)
        view.leave(16, 3)
        view.leave(31)
        assert not made, "five are left: 30, 15, 14, 13 and 11"
        view.leave(30)
        assert made == ["limit 1"]
        view.leave(15, 14)
        view.leave(13, 11)
        assert made == ["limit 1"], "that has brought as many spare ones again"
        view.leave(10, 9)
        assert made == ["limit 1"] * 2
        view.graph.materializer.close()


@pytest.mark.more
def test_a_limit_that_had_all_rows_may_have_others_later(local_spark: SparkSession, tmp_path: Path) -> None:
    with scans() as made:
        view = Numbers(local_spark, tmp_path, most=3)
        view.come(*range(4, 21))
        view.leave(1, 2, 20, 19, 18)
        assert len(made) == 1, "17 to 11 are left of ten"
        view.leave(17, 16, 15)
        assert len(made) == 2
        view.graph.materializer.close()


@pytest.mark.more
def test_of_equal_rows_at_the_boundary_each_leaves_once(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = ViewGraph(local_spark, tmp_path, [LARGEST])
    with scans() as made:
        graph.correct(
            {("t", f"{number}"): with_numbers(1, 1, 1) for number in range(6)} | {("t", "b"): with_numbers(9)}
        )
        for number in range(5):
            graph.correct({("t", f"later {number}"): with_numbers(1, 0)}, {("t", f"{number}"): None})
            graph.check()
        graph.correct({}, {("t", f"later {number}"): None for number in range(5)})
        graph.check()
        assert len(made) > 1
    graph.materializer.close()


@pytest.mark.more
def test_an_attempt_begins_with_the_rows_of_its_epoch(local_spark: SparkSession, tmp_path: Path) -> None:
    """What an epoch that was not committed has kept is of a version that no later epoch begins at."""
    with scans() as made:
        view = Numbers(local_spark, tmp_path)
        views, catalog, rows = view.graph.views, view.graph.catalog, view.graph.files
        view.come(40, 41, 42)
        view.graph.views, view.graph.catalog, view.graph.files = views, catalog, rows
        view.graph.reopen()
        made.clear()
        view.come(50)
        assert made == ["limit 1"], "nothing is kept at a start"
        view.leave(20, 19)
        assert made == ["limit 1"]
        view.graph.materializer.close()


@pytest.mark.more
def test_kept_rows_of_another_version_are_not_used(local_spark: SparkSession, tmp_path: Path) -> None:
    with scans() as made:
        view = Numbers(local_spark, tmp_path)
        made.clear()
        with patch.object(FirstRows, "keep"):
            view.come(40)
        view.leave(20)
        assert made == ["limit 1"]
        view.graph.materializer.close()


@pytest.mark.more
def test_an_epoch_gives_spark_the_cached_rows_and_the_changed_ones(local_spark: SparkSession, tmp_path: Path) -> None:
    with scans():
        graph = ViewGraph(local_spark, tmp_path, [LARGEST])
        graph.correct({("t", "many"): with_numbers(*range(1000))})
        done = graph.correct({("t", "few"): with_numbers(5000, 3)})
    assert (cost(done).given, cost(done).found) == (10 + 2 + 1, 1), "kept ones, new ones, and the last kept one again"
    graph.materializer.close()


@pytest.mark.more
def test_groups_above_a_limit_are_computed_again_from_the_cached_rows(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    greatest = ViewDefinition("v", f"SELECT k, max(i) AS m, count(*) AS n FROM ({LARGEST.query}) GROUP BY k")
    graph = ViewGraph(local_spark, tmp_path, [greatest])
    with scans() as made:
        graph.correct({("t", f"{number}"): with_numbers(number) for number in range(1, 21)})
        made.clear()
        for number in (20, 19, 18):
            graph.correct({}, {("t", f"{number}"): None})
            graph.check()
        assert not made
    graph.materializer.close()


@pytest.mark.more
def test_two_limits_share_the_rows_below_them(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random("two limits")
    other = ViewDefinition("w", "SELECT k, i, x FROM t ORDER BY x LIMIT 3")
    graph = ViewGraph(local_spark, tmp_path, [LARGEST, other])
    with scans():
        follow_in_all_ways(graph, chance)
    assert graph.views["v.1"].path == graph.views["w.1"].path


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k FROM t ORDER BY i LIMIT 2 + 3", r"a limit of \(2 \+ 3\) rows: write a number"),
        ("SELECT map(k, i) AS m FROM t ORDER BY i LIMIT 2", r"a limit beside m of type map.*take its entries"),
        ("SELECT k FROM (SELECT * FROM t WHERE i > (SELECT i FROM t)) ORDER BY i LIMIT 3", "a subquery"),
    ],
)
def test_other_limits_are_refused_with_a_way_out(local_spark: SparkSession, query: str, reason: str) -> None:
    with pytest.raises(NotIncrementalError, match=f'{reason}.*on_full="allow"'):
        analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA}, ["t"])
    allowed = analyse(local_spark, ViewDefinition("v", query, on_full="allow"), {"t": SCHEMA}, ["t"])
    assert allowed.view_class == "full"


@pytest.mark.more
def test_a_python_function_in_an_order_is_refused_and_below_it_is_maintained(local_spark: SparkSession) -> None:
    twice = udf(lambda i: 2 * i, "bigint")

    def in_order(t: DataFrame) -> DataFrame:
        return t.select("k", "i").orderBy(twice("i")).limit(3)

    def below(t: DataFrame) -> DataFrame:
        return t.select("k", twice("i").alias("j")).orderBy("j").limit(3)

    with pytest.raises(NotIncrementalError, match="a Python function in the ORDER BY of a limit: make it a column"):
        analyse(local_spark, ViewDefinition("v", function=in_order), {"t": SCHEMA}, ["t"])
    assert analyse(local_spark, ViewDefinition("v", function=below), {"t": SCHEMA}, ["t"]).view_class == "append"


def test_explain_tells_what_is_kept_and_when_all_rows_are_read(local_spark: SparkSession) -> None:
    text = analyse(local_spark, ViewDefinition("v", LIMITS["offset"][1]), {"t": SCHEMA}, ["t"]).explain()
    assert "limit 1, the first 4 rows in an order after 3 others, of v.1" in text
    assert "kept in memory beside spare ones; a job over all rows at a start, and when the spare ones have left" in text
