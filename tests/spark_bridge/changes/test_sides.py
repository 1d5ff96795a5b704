"""The sides of joins in an epoch: views with the same sides look rows up together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.joined_view import JOINED, Followed
from spark_bridge.datasets.look_ups import look_up
from state.location import Location

BY_CUSTOMER = "SELECT customer, region, amount FROM orders JOIN customers ON customer = id"


@pytest.mark.more
def test_views_with_the_same_sides_look_rows_up_together(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = list[str]()

    def noted(dataset: Any, by: str, *arguments: Any) -> pa.Table:
        looked_up.append(by)
        return look_up(dataset, by, *arguments)

    monkeypatch.setattr("spark_bridge.changes.rows_before.look_up", noted)
    numbers = {}
    for queries in ([JOINED], [JOINED, BY_CUSTOMER, BY_CUSTOMER]):
        views = Followed(local_spark, Location(str(tmp_path / f"{len(queries)}")), queries, 1_000, memory_bytes=0)
        looked_up.clear()
        views.turn()
        views.materializer.close()
        numbers[len(queries)] = sorted(looked_up)
    assert numbers[1] and numbers[3] == numbers[1]
