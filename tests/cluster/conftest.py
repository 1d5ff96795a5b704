"""A real Ray cluster with drivers for the tests of this directory; it reaches the S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.testing.servers.ray_cluster import RayCluster
from slackwater.testing.servers.s3_server import S3Server
from tests.repository import REPOSITORY


def said_by(cluster: RayCluster, program: str | Path, timeout_s: float) -> dict[str, Any]:
    """What a driver in the cluster prints at last, as JSON."""
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, **cluster.environment, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture
def cluster(s3: S3Server) -> Iterator[RayCluster]:
    """The head node alone; tests add what they need."""
    with RayCluster(num_cpus=2, environment=s3.environment) as made:
        yield made
