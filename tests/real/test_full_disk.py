"""A whole run whose root has no room for a while: it says so, and goes on when there is some; nothing is lost."""

from __future__ import annotations

import os
import random
import resource
from contextlib import closing
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real import victims
from tests.real.event_pipeline import FAST, TOTALS, check_every_epoch, expected, local, totals
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    pipeline = local(tmp_path)
    pipeline.view("touchy", "SELECT amount FROM events")
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=60)
        # From here on the process that commits, and the log that it writes, find no room; the next one does.
        [coordinator] = victims.find(os.getpid(), "coordinator")
        resource.prlimit(coordinator.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        write(tmp_path / "in", "b.parquet", parquet(events(50)))
        eventually(lambda: run.status().phase == "recovering")
        said = run.status().message
        assert run.wait(until="caught_up", timeout_s=60)
        report = run.stop()
    assert f"{tmp_path / 'root'} has no room left (the disk, or its quota, is full): make room" in said
    assert (report.recoveries, report.files, report.rows) == (1, 2, 20)
    check_every_epoch(tmp_path / "root", tmp_path)


def test_a_run_in_a_full_bucket_tries_again_and_goes_on_when_there_is_room(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "in/a.parquet", parquet(events(0)))
    with closing(s3.fault_proxy(random.Random(7))) as proxy:
        pipeline = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=proxy.storage_options)
        pipeline.source(
            "events", f"s3://{bucket}/in", format="parquet", discovery=FAST, storage_options=s3.storage_options
        )
        pipeline.view("totals", TOTALS)
        with pipeline.start() as run:
            assert run.wait(until="caught_up", timeout_s=60)
            proxy.on("PUT", "root/*").fill()
            s3.put(bucket, "in/b.parquet", parquet(events(50)))
            eventually(lambda: run.status().recoveries == 2, limit_s=100)
            assert proxy.met("fill") and run.report().rows == 10
            eventually(lambda: "no room left (the store, or its quota, is full)" in run.status().message)
            proxy.heal()
            assert run.wait(until="caught_up", timeout_s=60)
    assert totals(pipeline.root.url, storage_options=s3.storage_options) == expected(events(0) + events(50))
