"""Many new rows of a join go from task to task: no table in this process has them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.datasets.added_rows import AddedRows
from spark_bridge.maintenance import weighted_rows
from spark_bridge.operators.join import join_operator
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph, random_epoch
from tests.spark_bridge.ways_of_rows import as_if_many

PAIRS = ViewDefinition("pairs", "SELECT t.k, t.i, u.i AS j FROM t JOIN u ON t.g = u.g")
VIEWS: Mapping[str, tuple[ViewDefinition, ...]] = {
    "inner": (PAIRS,),
    "left": (ViewDefinition("v", "SELECT t.k, t.i, u.i AS j FROM t LEFT JOIN u ON t.g = u.g AND t.i < u.i"),),
    "full": (ViewDefinition("v", "SELECT t.k, t.g, u.g AS h FROM t FULL JOIN u ON t.g = u.g AND t.i < u.i"),),
    "semi": (ViewDefinition("v", "SELECT k, i FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.i > t.i)"),),
    "grouped": (ViewDefinition("v", "SELECT u.k, count(*) AS n FROM t JOIN u USING (g) GROUP BY u.k"),),
    "rows of pairs": (PAIRS, ViewDefinition("v", "SELECT k, i + j AS s FROM pairs WHERE i > 0")),
    "groups of pairs": (PAIRS, ViewDefinition("v", "SELECT k, count(*) AS n, max(j) AS hi FROM pairs GROUP BY k")),
    "joined again": (PAIRS, ViewDefinition("v", "SELECT p.k, w.i FROM pairs p LEFT JOIN w ON p.i = w.i")),
}


@pytest.mark.more
@pytest.mark.parametrize("name", few(VIEWS, "left"))
def test_many_new_rows_of_a_join_are_in_no_table(
    local_spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"large {name}")
    graph = ViewGraph(local_spark, tmp_path, VIEWS[name], ("t", "u", "w"))
    for _ in range(2):
        random_epoch(graph, chance)
    with monkeypatch.context() as forbidden, as_if_many():
        forbidden.setattr(AddedRows, "table", property(_held))
        forbidden.setattr(join_operator, "changed_rows", _held)
        forbidden.setattr(weighted_rows, "_gone_and_new", _held)
        for number, (of_t, of_u) in enumerate([(60, 2), (40, 40)]):
            files = {("t", f"large {number}"): of_t, ("u", f"large {number}"): of_u}
            graph.correct({file: random_rows(chance, count) for file, count in files.items()})
            graph.check()
    for _ in range(2):
        random_epoch(graph, chance)
    graph.materializer.close()


@pytest.mark.more
def test_rows_that_come_with_many_others_leave_alone(local_spark: SparkSession, tmp_path: Path) -> None:
    """A file that is replaced in the epoch of many new rows takes out its own rows."""
    chance = random.Random(5)
    graph = ViewGraph(local_spark, tmp_path, [PAIRS], ("t", "u"))
    graph.correct({("t", "one"): random_rows(chance, 20), ("u", "one"): random_rows(chance, 20)})
    with as_if_many():
        replaced = {("u", "one"): random_rows(chance, 3), ("t", "one"): None}
        graph.correct({("t", "two"): random_rows(chance, 80)}, replaced)
        graph.check()
        graph.correct({("u", "three"): random_rows(chance, 80)}, {("t", "two"): None})
        graph.check()
    random_epoch(graph, chance)
    graph.materializer.close()


def _held(*_: object, **__: object) -> pa.Table:
    raise AssertionError("this process holds rows of a large epoch")
