"""Joins follow the changes of both sides, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.analysis.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph

SOURCES = ("t", "u", "w")
JOINS: Mapping[str, tuple[str, str]] = {
    "inner": ("append", "SELECT t.k, t.i, u.i AS j FROM t JOIN u ON t.g = u.g"),
    "grouped": ("aggregate", "SELECT u.k, count(*) AS n, sum(t.i) AS s FROM t JOIN u USING (g) GROUP BY u.k"),
    "left": ("append", "SELECT t.k, t.g, u.i FROM t LEFT JOIN u ON t.g = u.g AND t.i < u.i"),
    "right": ("append", "SELECT t.k, u.g, u.i FROM t RIGHT JOIN u ON t.g = u.g"),
    "full": ("append", "SELECT t.k, t.g, u.g AS h, u.i FROM t FULL JOIN u ON t.g = u.g AND t.i < u.i"),
    "semi": ("append", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.i > t.i)"),
    "anti": ("append", "SELECT k, i FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g)"),
    "exists or": ("append", "SELECT k, i FROM t WHERE b OR g IN (SELECT g FROM u WHERE i > 0)"),
    "scalar": ("append", "SELECT k, (SELECT max(u.i) FROM u WHERE u.g = t.g) AS m, "
                         "(SELECT count(*) FROM u WHERE u.k = t.k) AS n FROM t"),
    "self": ("aggregate", "SELECT x.k, count(*) AS n, sum(y.i) AS s FROM t x JOIN t y ON x.g = y.g GROUP BY x.k"),
    "null safe": ("append", "SELECT t.i, u.i AS j FROM t JOIN u ON t.k <=> u.k AND t.g = u.g"),
    "three": ("aggregate", "SELECT w.k, count(*) AS n, max(t.i) AS m FROM t, u, w "
                           "WHERE t.g = u.g AND u.k = w.k AND t.b GROUP BY w.k"),
    "of groups": ("append", "SELECT t.i, s.n FROM t JOIN (SELECT g, count(*) AS n FROM u GROUP BY g) s USING (g)"),
    "two outer": ("aggregate", "SELECT t.k, count(u.i) AS n, sum(w.i) AS s FROM t LEFT JOIN u ON t.g = u.g "
                               "LEFT JOIN w ON u.k = w.k GROUP BY t.k"),
    "floats": ("append", "SELECT t.x, u.i FROM t JOIN u ON t.x = u.x"),
    "distinct": ("aggregate", "SELECT t.k, count(DISTINCT u.i) AS n, min(u.i) AS lo FROM t JOIN u USING (g) "
                              "GROUP BY t.k"),
    "intersect": ("aggregate", "SELECT k, g FROM t INTERSECT SELECT k, g FROM u"),
    "except": ("aggregate", "SELECT k, g FROM t EXCEPT SELECT k, g FROM u"),
    "exploded": ("append", "SELECT t.k, e FROM t JOIN u USING (g) LATERAL VIEW explode(array(t.i, u.i)) x AS e"),
    "lateral": ("append", "SELECT t.k, s.m FROM t, LATERAL (SELECT max(i) AS m FROM u WHERE u.g = t.g) s"),
}  # fmt: skip
QUICK = ("left", "three", "full", "self")


def _epoch(graph: ViewGraph, chance: random.Random) -> None:
    new = {
        (source, f"f{graph.epoch}"): random_rows(chance, chance.choice([1, 4, 9]))
        for source in SOURCES
        if chance.random() < 0.6
    }
    replaced: dict[tuple[str, str], pa.Table | None] = {}
    for file in chance.sample(sorted(graph.files), min(len(graph.files), chance.choice([0, 1, 2]))):
        replaced[file] = chance.choice([None, random_rows(chance, chance.choice([0, 3, 6]))])
    graph.correct(new, replaced)
    graph.check()


@pytest.mark.parametrize("name", few(JOINS, *QUICK))
def test_join_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"join {name}")
    view_class, query = JOINS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    for _ in range(4):
        _epoch(graph, chance)
    graph.reopen()
    for _ in range(2):
        _epoch(graph, chance)
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    _epoch(graph, chance)
    graph.materializer.close()
