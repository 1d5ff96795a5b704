"""Spark's processes take messages of each other, and of no other process."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark_bridge.engine.application.unauthenticated import is_refused


def test_local_driver_refuses_a_stranger(local_spark: SparkSession) -> None:
    assert is_refused("127.0.0.1", int(local_spark.conf.get("spark.driver.port") or 0))
    assert local_spark.range(4).count() == 4


@pytest.mark.ray
def test_driver_and_master_on_ray_refuse_a_stranger(session: Any) -> None:
    driver = session.conf.get("spark.driver.host"), int(session.conf.get("spark.driver.port"))
    found = re.fullmatch(r"ray://\w+@([\d.]+):(\d+)", session.sparkContext.master)
    assert found is not None
    assert is_refused(*driver) and is_refused(found[1], int(found[2]))


@pytest.mark.ray
def test_driver_and_executors_on_ray_give_each_other_blocks(session: Any) -> None:
    numbers = session.sparkContext.broadcast(list(range(100_000)))
    assert session.sparkContext.parallelize([1, 2], 2).map(lambda _: len(numbers.value)).collect() == [100_000] * 2
    # More than a task sends with its result: the driver fetches it from the executor.
    assert sum(batch.num_rows for batch in session.range(1_000_000)._collect_as_arrow()) == 1_000_000


@pytest.mark.ray
def test_secret_stands_in_no_command_line(session: Any) -> None:
    secret = os.environ["_SPARK_AUTH_SECRET"].encode()
    assert len(secret) == 64 and secret.decode() not in str(session.sparkContext.getConf().getAll())
    commands = [_read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert any(b"java" in command for command in commands)
    assert not [command for command in commands if secret in command]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
