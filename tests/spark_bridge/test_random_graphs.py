"""Random graphs of views equal Spark's answers at every epoch: new files, corrections, views added later, crashes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_bridge.random_graph_story import tell_graph

MORE = [pytest.param(seed, 10, marks=pytest.mark.more) for seed in range(5)]


@pytest.mark.parametrize("seed, epochs", [(1, 3), *MORE])
def test_random_graphs_equal_the_answers_of_spark_and_duckdb(
    local_spark: SparkSession, tmp_path: Path, seed: int, epochs: int
) -> None:
    compared = tell_graph(local_spark, tmp_path, seed, epochs)
    assert compared.spark >= epochs
    assert compared.duckdb > 0
