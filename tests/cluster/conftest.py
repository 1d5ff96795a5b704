"""A real Ray cluster for the tests of this directory, with the credentials of the S3 server in its environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from slackwater.testing.ray_cluster import RayCluster
from slackwater.testing.s3_server import S3Server


def s3_environment(s3: S3Server) -> Mapping[str, str]:
    """What the machines of a cluster know of the object store."""
    options = s3.storage_options
    return {
        "AWS_ENDPOINT_URL": options["endpoint"],
        "AWS_ACCESS_KEY_ID": options["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
        "AWS_REGION": options["region"],
        "AWS_ALLOW_HTTP": "true",
    }


@pytest.fixture
def cluster(s3: S3Server) -> Iterator[RayCluster]:
    """The head node alone; tests add what they need."""
    with RayCluster(num_cpus=2, environment=s3_environment(s3)) as made:
        yield made
