"""Every kind of process is killed, each at two of five moments, over a store that loses answers: no row is lost.

`python -m tests.real.soak --matrix` kills every kind at every moment.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from slackwater.testing.servers.s3_server import S3Server
from tests.real import victims
from tests.real.siege import MOMENTS_S, Siege


@pytest.mark.ray
@pytest.mark.long
def test_a_run_survives_every_kind_of_death(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    with Siege(s3, bucket, tmp_path, random.Random(1)) as siege:
        for number, kind in enumerate(victims.KINDS):
            siege.kill(kind, MOMENTS_S[number % 5])
            siege.kill(kind, MOMENTS_S[(number + 2) % 5])
        assert siege.finish() > len(siege.kills) == 2 * len(victims.KINDS)
        faults = {request.fault for request in siege.proxy.requests}
    assert {"refuse", "cut"} <= faults
    print("\n" + siege.report())
