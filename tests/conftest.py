"""Fixtures of all tests: one S3 server, one SQS server, and one Spark session per process.

A process has one Spark session: on RayDP for tests marked `ray`, which run by themselves, or without Ray.
"""

from __future__ import annotations

import itertools
import os
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
import structlog
from hypothesis import HealthCheck, settings

from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.repository import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A busy machine is slow, not wrong.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

_CASES = pytest.StashKey[Counter[str]]()
_bucket_numbers = itertools.count(1)
_queue_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that `make test-more PART=2/4` gives."""
    parser.addoption("--part", type=_part, default=(1, 1), metavar="NUMBER/COUNT", help="run this part of the tests")


def _part(text: str) -> tuple[int, int]:
    """The number of a part, from 1 on, and the number of all parts."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ArgumentTypeError(f"{text!r} is no part; give its number and the number of all parts, as in 2/4")
    return int(number), int(count)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of other parts: each part has its share of the cases of each file."""
    number, count = config.getoption("part")
    parts: list[list[pytest.Item]] = [[] for _ in range(count)]
    for item in items:
        parts[crc32(item.nodeid.encode()) % count].append(item)
    items[:] = parts.pop(number - 1)
    for others in parts:
        config.hook.pytest_deselected(items=others)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Assigns the groups of `--dist loadgroup`: the session on Ray, each other file, or what the test says.

    Tests with a local session take longest, so each of their functions is a group.  A process keeps the session that
    its first one has started.
    xdist reads the groups at the end of the collection, before any `pytest_collection_modifyitems` of a conftest.
    """
    _mark_more(item)
    if not item.get_closest_marker("xdist_group"):
        group = str(item.path.relative_to(REPOSITORY))
        if isinstance(item, pytest.Function):
            if "session" in item.fixturenames:
                group = "session"
            elif "local_spark" in item.fixturenames:
                group += f"::{item.originalname}"
        item.add_marker(pytest.mark.xdist_group(group))


def _mark_more(item: pytest.Item) -> None:
    """Marks the cases of a function after the first ones as `more`, if it has the mark `more_after`."""
    if limit := item.get_closest_marker("more_after"):
        function = item.nodeid.partition("[")[0]
        counts = item.config.stash.setdefault(_CASES, Counter())
        counts[function] += 1
        if counts[function] > limit.args[0]:
            item.add_marker(pytest.mark.more)


@pytest.fixture(autouse=True)
def unconfigured_logs() -> Iterator[None]:
    """Resets the logs after each test: a command or a run inside this process configures them."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server, started for the first test that uses it."""
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The name of a fresh, empty bucket on the server."""
    return s3.create_bucket(f"bucket-{next(_bucket_numbers)}")


@pytest.fixture(scope="session")
def sqs() -> Iterator[SqsServer]:
    """An SQS server, started for the first test that uses it."""
    with SqsServer() as server:
        yield server


@pytest.fixture
def queue_url(sqs: SqsServer) -> str:
    """The URL of a fresh, empty queue on the server."""
    return sqs.create_queue(f"queue-{next(_queue_numbers)}")


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """Ray, and Spark over RayDP, for every run inside this process."""
    from actors.hosting.ray_session import connect_ray, disconnect_ray
    from spark_bridge.engine.application.java import prepare_java
    from spark_bridge.engine.session.session import start_session, stop_session
    from spark_bridge.engine.session.settings import SparkSettings

    prepare_java()
    # A test reads the published metrics; the default is 10 s.
    os.environ.setdefault("RAY_metrics_report_interval_ms", "500")
    connect_ray(address=None, num_cpus=2, namespace="slackwater")
    spark = start_session(SparkSettings(), "slackwater-tests")
    yield spark
    stop_session()
    disconnect_ray()


@pytest.fixture(scope="session")
def local_spark() -> Iterator[SparkSession]:
    """A Spark session of this process, without Ray."""
    from spark_bridge.engine.session.local_session import start_local_session
    from spark_bridge.engine.session.settings import SparkSettings

    spark = start_local_session(SparkSettings(), "slackwater-tests")
    yield spark
    spark.stop()
