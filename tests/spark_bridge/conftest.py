"""One Spark session per test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_bridge.session.local_session import start_local_session
from spark_bridge.session.settings import SparkSettings


@pytest.fixture(scope="session")
def local_spark() -> Iterator[SparkSession]:
    """A session on this machine, without Ray."""
    spark = start_local_session(SparkSettings(), "slackwater-tests")
    yield spark
    spark.stop()
