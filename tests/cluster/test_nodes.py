"""A run over several nodes of Ray, each with an object store: where its rows travel, and nodes that come and go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.testing.servers.ray_cluster import RayCluster
from slackwater.testing.servers.s3_server import S3Server
from tests.cluster import node_job, node_look
from tests.cluster.conftest import said_by
from tests.real import job
from tests.real.killed_job import FILES, checked, fill, in_the_middle
from tests.real.source_files import encoded
from tests.repository import REPOSITORY
from tests.slackwater.cli.command import slackwater

pytestmark = [pytest.mark.ray, pytest.mark.long]

_ROWS, _LARGE_FILES = 20_000, 16
_CONTROL = ("Coordinator", "ListActor")


class Driver:
    """The process of a run, on the head node."""

    def __init__(self, cluster: RayCluster, s3: S3Server, bucket: str, log: Path, *how: str) -> None:
        self._root, self._options, self._log = f"s3://{bucket}/root", s3.storage_options, log
        options = {"STORAGE_OPTIONS": json.dumps(s3.storage_options), "PYTHONPATH": str(REPOSITORY)}
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, node_job.__file__, f"s3://{bucket}/root", f"s3://{bucket}/in", *how],
                env={**os.environ, **cluster.environment, **options, "SLACKWATER_LOG_LEVEL": "info"},
                stdout=stream,
                stderr=stream,
            )

    def store(self) -> sw.Store:
        return sw.open(self._root, self._options)

    def until(self, condition: Any, limit_s: float = 240) -> None:
        deadline = time.monotonic() + limit_s
        while not condition(*self.files()):
            assert self.process.poll() is None, f"the run ended by itself:\n{self.log}"
            assert time.monotonic() < deadline, f"it did not come true:\n{self.log}"
            time.sleep(0.2)

    def files(self) -> tuple[int, int]:
        """How many are done, and half-read."""
        try:
            statuses = self.store().ledger.files()["status"].to_pylist()
        except sw.errors.StoreNotFoundError:
            return 0, 0
        return statuses.count("done"), statuses.count("reading")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0, self.log

    @property
    def log(self) -> str:
        return self._log.read_text()


@contextmanager
def driving(cluster: RayCluster, s3: S3Server, bucket: str, log: Path, *how: str) -> Iterator[Driver]:
    driver = Driver(cluster, s3, bucket, log, *how)
    try:
        yield driver
    finally:
        driver.process.kill()
        driver.process.wait()


def look(cluster: RayCluster) -> dict[str, Any]:
    """Where things are."""
    return said_by(cluster, node_look.__file__, timeout_s=60)


def put_large(s3: S3Server, bucket: str, first: int, count: int) -> int:
    """Files whose rows are many kilobytes; returns about how many bytes."""
    nbytes = 0
    for number in range(first, first + count):
        rows: list[dict[str, object]] = [
            {"user": row % 30, "amount": row + 0.25, "note": f"{number:06}{row:010}" * 4} for row in range(_ROWS)
        ]
        s3.put(bucket, f"in/orders/{number:04}.parquet", encoded("parquet", rows))
        nbytes += _ROWS * 72
    return nbytes


@pytest.fixture
def three_nodes(s3: S3Server) -> Iterator[RayCluster]:
    """The head for the driver and what controls the run, a node for Spark, one for reading."""
    with RayCluster(num_cpus=1, resources={"control": 100}, environment=s3.environment) as cluster:
        cluster.add_node("spark", num_cpus=1)
        cluster.add_node("one", num_cpus=0, resources={"fetching": 2})
        yield cluster


def test_rows_travel_from_the_readers_to_spark_alone_and_a_node_that_joins_reads(
    three_nodes: RayCluster, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    nbytes = put_large(s3, bucket, 0, _LARGE_FILES)
    with driving(three_nodes, s3, bucket, tmp_path / "log", "control", "large") as driver:
        driver.until(lambda done, _: done == _LARGE_FILES)
        seen = look(three_nodes)
        assert seen["actors"]["FetchActor"] == ["one", "one"]
        assert {where for each in _CONTROL for where in seen["actors"][each]} == {"head"}
        held = {name: each[0] for name, each in seen["nodes"].items()}
        # `one` has the rows, `spark` a copy of them, and where the driver and the merger are there is none.
        assert held["one"] > nbytes and held["spark"] > nbytes, held
        assert held["head"] < 0.05 * nbytes, held

        three_nodes.add_node("two", num_cpus=0, resources={"fetching": 2})
        rescaled = rescale(s3, bucket, 4)
        assert rescaled.code == 0, rescaled.err
        put_large(s3, bucket, _LARGE_FILES, _LARGE_FILES)
        driver.until(lambda done, _: done == 2 * _LARGE_FILES)
        seen = look(three_nodes)
        assert seen["actors"]["FetchActor"] == ["one", "one", "two", "two"]
        assert seen["nodes"]["two"][0] > 0.2 * nbytes, "the new node reads its share"
        driver.stop()
    rows = driver.store().snapshot().view("by_user").to_arrow()
    assert sum(rows["n"].to_pylist()) == 2 * _LARGE_FILES * _ROWS
    assert sum(rows["total"].to_pylist()) == 2 * _LARGE_FILES * (_ROWS * (_ROWS - 1) / 2 + 0.25 * _ROWS)


def rescale(s3: S3Server, bucket: str, fetchers: int) -> Any:
    options = ["-o", f"endpoint={s3.endpoint}", "-o", "allow_http=true"]
    return slackwater("rescale", f"s3://{bucket}/root", str(fetchers), *options, environment=s3.environment)


@pytest.fixture
def two_equals(s3: S3Server) -> Iterator[RayCluster]:
    """The head for the driver, and two nodes, each of which has room for everything else."""
    room: Mapping[str, float] = {"fetching": 4, "spark": 1, "elsewhere": 10}
    with RayCluster(num_cpus=1, environment=s3.environment) as cluster:
        for name in ("one", "two"):
            cluster.add_node(name, num_cpus=1, resources=room)
        yield cluster


@pytest.mark.parametrize("victim", ["FetchActor", "Coordinator", "RayDPExecutor"])
def test_a_node_that_dies_costs_no_row(
    two_equals: RayCluster, s3: S3Server, bucket: str, tmp_path: Path, victim: str
) -> None:
    fill(s3, bucket)
    with driving(two_equals, s3, bucket, tmp_path / "log", "elsewhere") as driver:
        driver.until(in_the_middle)
        where = look(two_equals)["actors"]
        two_equals.kill_node(where[victim][0])
        assert driver.files()[0] < FILES, "it was killed in the middle"
        driver.until(lambda _done, _reading: "recovering" in driver.log)
        if victim != "RayDPExecutor":
            assert "died: its node is lost, or does not answer" in driver.log
        driver.until(lambda done, _: done == FILES, 400)
        driver.stop()
    assert checked(driver.store(), s3, bucket, tmp_path) > 10
    assert len(set(driver.store().epochs()["term"].to_pylist())) > 1, "a later attempt has committed something"
    assert job.VIEWS.keys() == {*driver.store().snapshot().views}
