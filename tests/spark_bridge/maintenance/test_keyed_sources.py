"""Views over sources with a key see the last row of each key, whatever the order of files, through corrections."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.sources.row_key import Key
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import ViewError
from tests.cases import few
from tests.spark_bridge.corrected_view import Files
from tests.spark_bridge.keyed_graph import ORIGIN, KeyedGraph, with_origin
from tests.spark_bridge.view_graph import ViewGraph
from tests.spark_bridge.ways_of_rows import as_if_many, kept_at_once

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("at", pa.int64()),
        ("op", pa.string()),
        ("g", pa.int64()),
        ("x", pa.float64()),
        *ORIGIN,
    ]
)
KEY = Key(("id", "part"), order_by="at", deleted="op = 'D'  -- a deletion")
SCHEMAS = {"orders": SCHEMA, "log": SCHEMA}
VIEWS: Mapping[str, tuple[str, str]] = {
    "rows": ("append", "SELECT id, part, g, x FROM orders WHERE g IS NOT NULL"),
    "star": ("append", "SELECT * FROM orders"),
    "grouped": ("aggregate", "SELECT g, count(*) AS n, sum(x) AS s, max(at) AS m FROM orders GROUP BY g"),
    "one_row": ("aggregate", "SELECT count(*) AS n, count(DISTINCT part) AS p FROM orders"),
    "joined": ("aggregate", "SELECT o.g, count(*) AS n FROM orders o JOIN log l ON o.id = l.id GROUP BY o.g"),
    "left": ("append", "SELECT l.id, l.at, o.g FROM log l LEFT JOIN orders o ON o.id = l.id AND o.part = 'a'"),
    "with_itself": ("append", "SELECT a.id, a.g, b.g AS h FROM orders a JOIN orders b ON a.id = b.id AND a.g < b.g"),
    "window": ("append", "SELECT id, part, rank() OVER (PARTITION BY g ORDER BY x DESC) AS r FROM orders"),
    "union": ("aggregate", "SELECT id, count(*) AS n FROM (SELECT id FROM orders UNION ALL SELECT id FROM log) "
                           "GROUP BY id"),
    "full": ("full", "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.g < b.g"),
}  # fmt: skip


def rows(chance: random.Random, path: str, count: int) -> pa.Table:
    """New versions of few records, many of which tie in their order."""
    made = [
        {
            "id": chance.randrange(6),
            "part": chance.choice("ab"),
            "at": chance.randrange(4),
            "op": chance.choice(["U", "U", "U", "D", None]),
            "g": chance.choice([None, 1, 2, 3]),
            "x": chance.choice([0.25, 0.5, 0.75, -0.0, float("nan")]),
        }
        for _ in range(count)
    ]
    return with_origin(pa.Table.from_pylist(made, pa.schema([*SCHEMA][: -len(ORIGIN)])), path)


def files(graph: ViewGraph, chance: random.Random) -> tuple[Files, dict[tuple[str, str], pa.Table | None]]:
    """Files for the next epoch, whose paths are in no order, and other rows, or none, of present files."""
    paths = [f"{chance.randrange(1_000):03}-{graph.epoch}" for _ in range(3)]
    new = {
        (chance.choice(["orders", "orders", "log"]), path): rows(chance, path, chance.choice([0, 1, 4, 9]))
        for path in paths
    }
    replaced: dict[tuple[str, str], pa.Table | None] = {}
    for source, path in chance.sample(sorted(graph.files), min(len(graph.files), chance.choice([0, 1, 2]))):
        replaced[(source, path)] = chance.choice([None, rows(chance, path, chance.choice([0, 3, 6]))])
    return new, replaced


def follow(graph: ViewGraph, chance: random.Random, epochs: int = 4) -> None:
    for _ in range(epochs):
        graph.correct(*files(graph, chance))
        graph.settle()
        graph.check()


@pytest.mark.parametrize("name", few(VIEWS, "grouped"))
def test_a_view_sees_the_last_row_of_each_key_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(f"keyed {name}")
    view_class, query = VIEWS[name]
    view = ViewDefinition("v", query, on_full="allow")
    graph = KeyedGraph(local_spark, tmp_path, [view], SCHEMAS, KEY, lambda row: row["op"] == "D")
    assert graph.plans["v"].view_class == view_class
    if view_class == "full":
        for _ in range(3):
            graph.correct(*files(graph, chance))
            graph.settle()
        while graph.materializer.behind:
            graph.settle()
        graph.check()
        return
    follow(graph, chance)
    with kept_at_once():
        graph.reopen()
    follow(graph, chance)
    with as_if_many():
        follow(graph, chance, 2)
        graph.correct({}, dict.fromkeys(graph.files))
        graph.check()
    graph.materializer.close()


@pytest.mark.parametrize("deleted", ["operation = 'D'", "op", "op = "])
def test_a_condition_that_is_none_is_refused(local_spark: SparkSession, deleted: str) -> None:
    view = ViewDefinition("v", "SELECT id FROM orders")
    with pytest.raises(ViewError, match=r"source 'orders': Key\(deleted=.*\) must be a condition over its columns"):
        analyse(local_spark, view, SCHEMAS, keys={"orders": Key(("id",), deleted=deleted)})


@pytest.mark.more
def test_explain_tells_which_rows_a_view_sees(local_spark: SparkSession) -> None:
    plan = analyse(local_spark, ViewDefinition("v", VIEWS["grouped"][1]), SCHEMAS, keys={"orders": KEY})
    assert (
        "of orders it sees the last row of each id and part by at and file, without those where op = 'D'" in plan.reason
    )


@pytest.mark.more
def test_views_of_one_source_keep_its_rows_once(local_spark: SparkSession) -> None:
    plans = [
        analyse(local_spark, ViewDefinition(name, VIEWS[name][1]), SCHEMAS, keys={"orders": KEY})
        for name in ("grouped", "window", "rows")
    ]
    assert len({plan.inner[0].content for plan in plans}) == 1 and plans[0].inner[0].content
