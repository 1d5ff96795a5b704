"""Views of a branch, whose datasets name the files of another root, equal Spark's answers; so do those of that root."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import lance_options, open_dataset
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph, random_epoch
from tests.spark_bridge.ways_of_rows import as_if_many, kept_at_once

VIEWS = {
    "grouped": "SELECT k, count(*) AS n, sum(i) AS s, count(DISTINCT g) AS d FROM t GROUP BY k",
    "joined": "SELECT t.k, t.i, u.g FROM t LEFT JOIN u ON t.g = u.g",
    "of_join": "SELECT t.k, count(*) AS n, max(u.i) AS m FROM t JOIN u ON t.k = u.k GROUP BY t.k",
    "nested": "SELECT n, count(*) AS c, max(k) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
    "top": "SELECT k, i FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY i DESC, g) AS n FROM t) WHERE n < 3",
    "first": "SELECT k, i, g FROM u ORDER BY i DESC, g LIMIT 5",
    "filtered": "SELECT k, i FROM t WHERE i > 0",
    "above": "SELECT n, count(*) AS c FROM grouped GROUP BY n",
}
LATE = {
    "late": "SELECT g, count(*) AS n, min(i) AS m FROM t GROUP BY g",
    "late_join": "SELECT u.k, count(*) AS n FROM u JOIN t ON u.g = t.g GROUP BY u.k",
}


def defined(views: dict[str, str]) -> list[ViewDefinition]:
    return [ViewDefinition(name, query) for name, query in views.items()]


def branch_of(graph: ViewGraph) -> ViewGraph:
    """The graph at a branch of its root, which goes on from the last epoch."""
    branch = copy.copy(graph)
    branch.root = graph.root.child("branches/b")
    for path, version in {each for view in graph.views.values() for each in view.datasets.items()}:
        clone = branch.root.child(path)
        open_dataset(graph.root.child(path), version).shallow_clone(clone.lance_uri, version, lance_options(clone))
    branch.rows, branch.catalog, branch._stored_at = dict(graph.rows), dict(graph.catalog), dict(graph._stored_at)
    branch.materializer = branch.new_materializer()
    branch.reopen()
    return branch


@pytest.mark.more
@pytest.mark.parametrize("seed", range(2))
def test_views_of_root_and_branch_are_sparks_answers_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"branch {seed}")
    graph = ViewGraph(local_spark, tmp_path / "a root%", defined(VIEWS), ("t", "u"))
    for _ in range(chance.randint(2, 4)):
        random_epoch(graph, chance)
    branch = branch_of(graph)
    branch.check()
    for _ in range(2):
        random_epoch(branch, chance)
        random_epoch(graph, chance)
    with kept_at_once():
        branch.reopen()
    branch.declare(defined(VIEWS | LATE))
    with as_if_many():
        branch.settle()
        branch.check()
        random_epoch(branch, chance)
        random_epoch(graph, chance)
    branch.correct({("t", "many"): random_rows(chance, 300)}, dict.fromkeys(branch.files))
    branch.check()
    graph.reopen()
    random_epoch(graph, chance)
    second = branch_of(branch)
    random_epoch(second, chance)
    for each in (graph, branch, second):
        each.check()
        each.materializer.close()
