"""No row is lost and none comes twice when the whole process is killed, once or many times."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real import job
from tests.real.killed_job import FILES, Job, checked, fill, in_the_middle, killed_at


@pytest.mark.ray
def test_no_row_is_lost_and_none_comes_twice(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    store, epochs = killed_at(s3, bucket, tmp_path, [in_the_middle])
    assert epochs > 10
    assert len(set(store.epochs()["term"].to_pylist())) == 2, "each life has committed"


def beyond(share: float, done: int, reading: int) -> bool:
    return done + reading > share * FILES


@pytest.mark.ray
@pytest.mark.long
def test_no_row_is_lost_and_none_comes_twice_over_six_kills(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    shares = [0.0, 0.02, 0.2, 0.45, 0.7, 0.9]
    killed_at(s3, bucket, tmp_path, [partial(beyond, share) for share in shares])


@pytest.mark.ray
@pytest.mark.long
def test_views_that_come_and_go_are_whole_whenever_they_are_shown_over_kills(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    fill(s3, bucket)
    root, url, options = f"s3://{bucket}/root", f"s3://{bucket}/in", s3.storage_options
    for number, done in enumerate([1, FILES // 2, FILES, FILES]):
        life = Job(root, url, options, tmp_path / f"life-{number}.log", "changing", str(number))
        try:
            life.kill_while_a_view_catches_up(done)
        finally:
            life.end()
    last = Job(root, url, options, tmp_path / "last.log", "all")
    try:
        last.finish()
    finally:
        last.end()
    store = sw.open(root, options)
    assert checked(store, s3, bucket, tmp_path) > 10
    snapshot = store.snapshot()
    assert {*snapshot.views} == {*job.VIEWS, *job.LATE_VIEWS}
    assert store.views.backfills().num_rows == 0
    ever = {name for epoch in store.epochs()["epoch"].to_pylist() for name in store.snapshot(epoch).views}
    assert ever == {*job.VIEWS, *job.LATE_VIEWS}
