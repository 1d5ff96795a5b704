"""A Spark session without Ray, and roots whose views it has made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from tests.slackwater.verification.committed_root import CommittedRoot


@pytest.fixture
def root(local_spark: SparkSession, tmp_path: Path) -> Iterator[CommittedRoot]:
    """An empty root in a directory, beside an empty directory of files."""
    (tmp_path / "raw").mkdir()
    with CommittedRoot(local_spark, Location(str(tmp_path / "root")), Location(str(tmp_path / "raw"))) as made:
        yield made


@pytest.fixture
def root_s3(local_spark: SparkSession, s3: S3Server, bucket: str) -> Iterator[CommittedRoot]:
    """The same in a bucket."""
    with CommittedRoot(local_spark, s3.location(bucket, "root"), s3.location(bucket, "raw")) as made:
        yield made
