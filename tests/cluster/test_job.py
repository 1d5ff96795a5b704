"""Tests of a pipeline as a job of a Ray cluster: submitted, refused a second time, stopped, and its log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import slackwater as sw
from slackwater.plugins.demo.flights import day_files
from slackwater.testing.servers.ray_cluster import RayCluster
from slackwater.testing.servers.s3_server import S3Server
from tests.repository import REPOSITORY
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long]

FILES = 6
_STOP_S = "60"
_NOT_OF_THE_JOB = re.compile(r"Job submission server|job_manager|Running entrypoint")
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \[(info|warning) +\] [^\x1b]*$")


def ray_job(cluster: RayCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", "job", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **cluster.environment, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def submit(cluster: RayCluster, name: str, raw: str, root: str, *how: str) -> subprocess.CompletedProcess[str]:
    environment = f'{{"env_vars": {{"RAY_JOB_STOP_WAIT_TIME_S": "{_STOP_S}"}}}}'
    options = [f"--submission-id={name}", "--working-dir=.", f"--runtime-env-json={environment}", *how]
    return ray_job(cluster, "submit", *options, "--", "python", "examples/flights_job.py", raw, root)


def log_of(cluster: RayCluster, name: str) -> list[str]:
    said = ray_job(cluster, "logs", name)
    assert said.returncode == 0, said.stderr
    return [line for line in said.stdout.splitlines() if line and not _NOT_OF_THE_JOB.search(line)]


@dataclass(frozen=True)
class Story:
    """What was there when the jobs had ended."""

    store: sw.Store
    root: str
    options: list[str]
    environment: dict[str, str]
    rows: int
    refused: subprocess.CompletedProcess[str]
    stopped: str
    log: list[str]


@pytest.fixture(scope="module")
def story(s3: S3Server) -> Iterator[Story]:
    bucket = s3.create_bucket("flights-job")
    raw, root = f"s3://{bucket}/raw", f"s3://{bucket}/root"
    rows = 0
    for file in [each for each in day_files() if each.format == "parquet"][:FILES]:
        s3.put(bucket, f"raw/{file.key}", file.body)
        rows += file.rows
    environment = s3.environment
    with RayCluster(num_cpus=3, environment=environment) as cluster:
        submitted = submit(cluster, "flights", raw, root, "--no-wait")
        assert submitted.returncode == 0, submitted.stderr
        try:
            eventually(lambda: done(root, s3.storage_options) == FILES, 120)
        except AssertionError:
            pytest.fail("\n".join(["the job did not read its files; its log:", *log_of(cluster, "flights")]))
        refused = submit(cluster, "second", raw, root)
        stopped = ray_job(cluster, "stop", "flights")
        assert stopped.returncode == 0, stopped.stderr
        log = log_of(cluster, "flights")
    options = ["-o", f"endpoint={s3.endpoint}", "-o", "allow_http=true"]
    store = sw.open(root, s3.storage_options)
    yield Story(store, root, options, environment, rows, refused, stopped.stdout, log)


def done(root: str, options: dict[str, str]) -> int:
    try:
        return int(sw.open(root, options).ledger.files()["status"].to_pylist().count("done"))
    except sw.errors.StoreNotFoundError:
        return 0


def test_a_job_that_is_stopped_ends_with_a_last_epoch_and_its_report(story: Story) -> None:
    owner = story.store.owner()
    assert owner is not None and owner.phase == "stopped"
    assert "Job 'flights' was stopped" in story.stopped
    assert story.log[-2].endswith("stopping after a last epoch; repeat the signal to stop now actor=run signal=SIGTERM")
    assert re.match(rf"RunReport\(epochs=\d+, files={FILES}, rows={story.rows}, .*recoveries=0", story.log[-1])


def test_the_log_of_a_job_is_a_plain_line_for_each_epoch(story: Story) -> None:
    *lines, _report = story.log
    assert [line for line in lines if not _LOG_LINE.match(line)] == []
    committed = [int(found[1]) for line in lines if (found := re.search(r"epochs committed .*\bepochs=(\d+)", line))]
    assert sum(committed) == story.store.epochs().num_rows, lines


def test_a_second_job_on_the_root_is_refused_with_the_owners_name(story: Story) -> None:
    owner = story.store.owner()
    assert owner is not None
    assert story.refused.returncode == 1
    (error,) = {line for line in story.refused.stdout.splitlines() if line.startswith("error: ")}
    assert f"{story.root} is owned by pipeline 'flights', pid {owner.pid} on {owner.host}" in error
    assert "Traceback" not in story.refused.stdout + story.refused.stderr


def test_the_views_have_every_flight_once(story: Story) -> None:
    view = story.store.snapshot().view("by_carrier").to_arrow()
    assert sum(view["n"].to_pylist()) == story.rows
    shown = slackwater("status", story.root, *story.options, environment=story.environment)
    assert shown.code == 0 and "owner: stopped" in shown.out
