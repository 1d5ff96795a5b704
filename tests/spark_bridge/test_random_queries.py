"""Whatever the query, the rows, and how they are cut into epochs: a view is Spark's answer over all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_bridge.random_story import QUERIES_OF_A_STORY, tell

_FEW = 0.02


def _require_equal(spark: SparkSession, directory: Path, first_seed: int, queries: int) -> None:
    reports = [
        tell(spark, directory / str(seed), seed)
        for seed in range(first_seed, first_seed + queries // QUERIES_OF_A_STORY)
    ]
    wrong = [f"seed {report.seed}: {each}" for report in reports for each in report.differences]
    skipped = [f"seed {report.seed}: {each}" for report in reports for each in report.skipped]
    assert not wrong, "\n".join(wrong)
    assert len(skipped) <= _FEW * queries, "\n".join(skipped)
    assert sum(report.queries for report in reports) >= queries * (1 - _FEW)


def test_hundred_random_queries_equal_sparks_answers(local_spark: SparkSession, tmp_path: Path) -> None:
    _require_equal(local_spark, tmp_path, first_seed=0, queries=100)


@pytest.mark.full
@pytest.mark.timeout(3_600)
def test_thousand_random_queries_equal_sparks_answers(local_spark: SparkSession, tmp_path: Path) -> None:
    _require_equal(local_spark, tmp_path, first_seed=1_000, queries=1_000)
