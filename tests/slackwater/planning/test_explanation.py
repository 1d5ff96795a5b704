"""An explanation of views names what they read, what they keep, and what the epochs of the root did cost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import slackwater as sw
from state.clock import ManualClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta
from state.tables.epoch_trace import EpochTrace, Span, WorkCost
from state.tables.records import EpochCounts, EpochSeconds
from tests.spark_bridge.followed_view import FollowedView


def test_an_explanation_has_the_costs_of_the_last_epochs_and_of_internal_views(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    pipeline = sw.Pipeline("p", root=str(tmp_path / "root"))
    pipeline.source("t", str(tmp_path / "raw"), format="csv", schema="k string, i bigint")
    pipeline.view("v", "SELECT max(n) AS n FROM (SELECT k, count(*) AS n FROM t GROUP BY k)")
    pipeline.view("over", "SELECT n FROM v WHERE n > 1")
    root = Location(str(tmp_path / "root"))
    view = FollowedView(local_spark, tmp_path / "root", pipeline.views["v"], {"t": pa.schema([("k", pa.string())])})
    view.run({"t": pa.table({"k": ["a", "b", "b"]})})
    view.materializer.close()
    store = LanceRoot(root, ManualClock()).create_or_open()
    store.take_over("test")
    costs = {"v": WorkCost(given=2, written=1), "v.1": WorkCost(given=3, found=1, written=2, written_bytes=500)}
    trace = EpochTrace.of([Span("spark", name, 0.0, 0.25, cost) for name, cost in costs.items()])
    counts = EpochCounts(1, 3, 30, 1)
    store.commit(epoch=7, delta=Delta(), views=view.views, counts=counts, seconds=EpochSeconds(), trace=trace.to_json())
    pipeline.view("least", "SELECT min(n) AS n FROM (SELECT k, count(*) AS n FROM t GROUP BY k)")
    v, over, least = pipeline.explain()
    assert "shared     with least.1: the same rows" in v.text and "shared     with v.1: the same rows" in least.text
    assert (v.reads, over.reads) == (("t",), ("v",))
    lines = [line.strip() for line in v.text.splitlines()]
    of_v = lines.index("did cost   0.250 s, at most 0.250 s; 2 rows into Spark, 0 looked up, 1 written (0 B); "
                       "the medians of 1 epoch")  # fmt: skip
    assert lines[of_v + 1].startswith("did cost   v.1: 0.250 s") and "(500 B)" in lines[of_v + 1]
    assert lines[of_v + 2].startswith("internal view v.1: aggregate")
    assert {*v.costs} == {"v", "v.1"} and v.costs["v.1"].cost == costs["v.1"]
    assert over.costs == {} and "did cost" not in over.text
