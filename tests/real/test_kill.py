"""The whole process is killed, again and again, and no row is lost and none comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real import job
from tests.real.killed_job import (
    FILES,
    Job,
    Moment,
    at_the_start,
    checked,
    fill,
    in_the_middle,
    killed_at,
    near_the_end,
)


@pytest.mark.ray
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "moments",
    [[in_the_middle], pytest.param([at_the_start, in_the_middle, near_the_end], marks=pytest.mark.more)],
    ids=["one kill", "three kills"],
)
def test_no_row_is_lost_and_none_comes_twice(
    s3: S3Server, bucket: str, tmp_path: Path, moments: Sequence[Moment]
) -> None:
    store, epochs = killed_at(s3, bucket, tmp_path, moments)
    assert epochs > 10
    assert len(set(store.epochs()["term"].to_pylist())) == len(moments) + 1, "every life has committed something"


def beyond(share: float, done: int, reading: int) -> bool:
    return done + reading > share * FILES


@pytest.mark.ray
@pytest.mark.more
@pytest.mark.timeout(1_200)
def test_no_row_is_lost_and_none_comes_twice_over_ten_kills(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    shares = [0.0, 0.02, 0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9]
    killed_at(s3, bucket, tmp_path, [partial(beyond, share) for share in shares])


@pytest.mark.ray
@pytest.mark.more
@pytest.mark.timeout(1_200)
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
    assert store.backfills().num_rows == 0
    assert len({name for epoch in store.epochs()["epoch"].to_pylist() for name in store.snapshot(epoch).views}) == 8
