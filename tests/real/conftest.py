"""One Ray and one Spark session for all tests that run pipelines inside this process."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.run_client import connect_ray, disconnect_ray
from spark_bridge.session import SparkSettings, prepare_java, start_session, stop_session, warm_up


@pytest.fixture(scope="session")
def session() -> Iterator[None]:
    """Ray and Spark, which every run of this process then uses."""
    prepare_java()
    connect_ray(address=None, num_cpus=2, namespace="slackwater")
    spark = start_session(SparkSettings(), "slackwater-tests")
    warm_up(spark)
    yield
    stop_session()
    disconnect_ray()


def parquet(rows: list[dict[str, Any]], row_group_size: int = 1_000) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=row_group_size)
    return sink.getvalue()


def events(start: int, count: int = 10) -> list[dict[str, Any]]:
    return [{"user": number % 3, "amount": float(number)} for number in range(start, start + count)]


def write(directory: Path, name: str, content: bytes) -> None:
    """As a careful writer does: the file appears whole."""
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f".{name}.part"
    part.write_bytes(content)
    part.rename(directory / name)
