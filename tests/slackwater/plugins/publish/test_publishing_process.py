"""The job of the process that publishes, on its way there."""

from __future__ import annotations

import json
from types import MappingProxyType

import slackwater as sw
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publishing_process import PublishingJob
from state.location import Location

OPTIONS = MappingProxyType({"secret_access_key": "hidden", "region": "eu-west-1"})


def test_a_job_is_the_same_after_a_way_as_json() -> None:
    targets = (
        sw.Delta("s3://lake/a", OPTIONS, interval_s=5),
        sw.Iceberg("lake.b", catalog=MappingProxyType({"type": "rest"}), keep_s=60),
        sw.Iceberg("/tmp/c", table="lake.c"),
        sw.ParquetFiles("/tmp/d", partition_by=["day", "carrier"]),
    )
    job = PublishingJob(Location("s3://lake/root", OPTIONS), tuple(DeclaredPublication("v", each) for each in targets))
    assert PublishingJob.of_json(json.loads(json.dumps(job.to_json()))) == job
