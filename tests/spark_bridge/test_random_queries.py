"""Views of random queries, over random rows in random epochs, equal Spark's answers over all rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_bridge.random_story import QUERIES_OF_A_STORY, tell

_FEW = 0.05
_AT_ONCE = 2


def _require_equal(spark: SparkSession, directory: Path, seeds: range) -> None:
    """Asserts no difference.  The message has the seeds; `random_queries --queries 10 --start SEED` repeats one."""
    reports = [tell(spark, directory / str(seed), seed) for seed in seeds]
    wrong = [f"seed {report.seed}: {each}" for report in reports for each in report.differences]
    skipped = [f"seed {report.seed}: {each}" for report in reports for each in report.skipped]
    assert not wrong, "\n".join(wrong)
    queries = len(seeds) * QUERIES_OF_A_STORY
    assert len(skipped) <= _FEW * queries, "\n".join(skipped)
    assert sum(report.queries for report in reports) >= queries * (1 - _FEW)


@pytest.mark.more
@pytest.mark.parametrize("seed", range(4))
def test_random_queries_equal_sparks_answers(local_spark: SparkSession, tmp_path: Path, seed: int) -> None:
    _require_equal(local_spark, tmp_path, range(seed, seed + 1))


@pytest.mark.more
@pytest.mark.parametrize("seed", range(1_000, 1_010, _AT_ONCE))
def test_many_random_queries_equal_sparks_answers(local_spark: SparkSession, tmp_path: Path, seed: int) -> None:
    _require_equal(local_spark, tmp_path, range(seed, seed + _AT_ONCE))
