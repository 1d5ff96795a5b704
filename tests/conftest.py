"""What all tests share: one S3 and one SQS server, and one session of Ray and Spark for those that are marked `ray`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import structlog

from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_bucket_numbers = itertools.count(1)
_queue_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def unconfigured_logs() -> Iterator[None]:
    """A command or a run inside this process sets up the logs; the next test must not inherit that."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server; started by the first test that asks for it."""
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The name of a fresh, empty bucket on the server."""
    return s3.create_bucket(f"bucket-{next(_bucket_numbers)}")


@pytest.fixture(scope="session")
def sqs() -> Iterator[SqsServer]:
    """A server of queues; started by the first test that asks for it."""
    with SqsServer() as server:
        yield server


@pytest.fixture
def queue_url(sqs: SqsServer) -> str:
    """The URL of a fresh, empty queue on the server."""
    return sqs.create_queue(f"queue-{next(_queue_numbers)}")


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """Ray and Spark over RayDP, which every run inside this process then uses."""
    from actors.hosting.ray_session import connect_ray, disconnect_ray
    from spark_bridge.session.session import prepare_java, start_session, stop_session
    from spark_bridge.session.settings import SparkSettings

    prepare_java()
    # Ten seconds by default: what is published is looked at by a test.
    os.environ.setdefault("RAY_metrics_report_interval_ms", "500")
    connect_ray(address=None, num_cpus=2, namespace="slackwater")
    spark = start_session(SparkSettings(), "slackwater-tests")
    yield spark
    stop_session()
    disconnect_ray()
