"""A changed definition of a view whose rows come and leave with time: right at every epoch after it is shown."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.maintenance import parents_backfill
from spark_bridge.plans.view_definition import ViewDefinition
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.timed_graph import timed_graph

pytestmark = pytest.mark.more

_BEFORE = "SELECT k, count(*) AS n, sum(i) AS s FROM t WHERE at > now() - INTERVAL 5 HOURS GROUP BY k"
_CHANGES = {
    "a filter above": f"{_BEFORE} HAVING sum(i) > 0",
    "further measures": "SELECT k, count(*) AS n, sum(i) AS s, min(g) AS lo, max(at) AS last FROM t "
    "WHERE at > now() - INTERVAL 5 HOURS GROUP BY k",
}
_POLL_S, _POLLS = 0.1, 600


@pytest.mark.parametrize("way", ["at once", "beside the epochs"])
@pytest.mark.parametrize("name", _CHANGES)
def test_a_changed_filter_by_the_time_is_sparks_answer(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    chance = random.Random(3)
    graph = timed_graph(local_spark, tmp_path, _BEFORE)
    for number in range(2):
        graph.at(graph.now + timedelta(hours=2))
        graph.correct({("t", f"{number}"): random_rows(chance, 60)})
        graph.check()
    if way != "at once":
        monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    graph.declare([ViewDefinition("v", _CHANGES[name], replace=True)])
    graph.at(graph.now + timedelta(hours=2))
    graph.correct({("t", "changed"): random_rows(chance, 60)})
    for _ in range(_POLLS):
        if graph.catalog["v"].identity == graph.plans["v"].identity:
            break
        # Rows leave while the changed view is made.
        graph.at(graph.now + timedelta(minutes=1))
        graph.correct({})
        time.sleep(_POLL_S)
    graph.check()
    for hours in (1, 2, 3):
        graph.at(graph.now + timedelta(hours=hours))
        graph.correct({("t", f"after {hours}"): random_rows(chance, 20)})
        graph.check()
    graph.materializer.close()
