"""Every kind of process is killed, at several moments, over a store that loses answers: no row is lost or doubled."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from slackwater.testing.servers.s3_server import S3Server
from tests.real import victims
from tests.real.siege import Siege

MOMENTS_S = (0.0, 0.1, 0.3, 0.7, 1.5)
"""After files have come: they are listed, read, computed, committed; and then nothing happens."""


@pytest.mark.ray
@pytest.mark.more
@pytest.mark.timeout(2_400)
def test_a_run_survives_every_kind_of_death_at_every_moment(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    with Siege(s3, bucket, tmp_path, random.Random(1)) as siege:
        for kind in victims.KINDS:
            for moment_s in MOMENTS_S:
                siege.kill(kind, moment_s)
        assert siege.finish() > len(siege.kills) == len(victims.KINDS) * len(MOMENTS_S)
        faults = {request.fault for request in siege.proxy.requests}
    assert {"refuse", "cut"} <= faults
    print("\n" + siege.report())
