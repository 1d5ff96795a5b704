"""Listings of a run on a real S3 server: files that are found, left out and gone, and the requests they cost."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

import slackwater as sw
from actors.objects.enclosing_table import requests_above
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from tests.real.event_pipeline import FAST, TOTALS
from tests.real.events import events, parquet
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def pipeline_of(s3: S3Server, bucket: str, discovery: sw.Listing, options: dict[str, str] | None = None) -> sw.Pipeline:
    pipeline = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=s3.storage_options)
    url = f"s3://{bucket}/in"
    pipeline.source("events", url, format="parquet", discovery=discovery, storage_options=options)
    pipeline.view("totals", TOTALS)
    return pipeline


def gone(pipeline: sw.Pipeline, s3: S3Server) -> dict[str, bool]:
    files = sw.open(pipeline.root.url, s3.storage_options).ledger.files()
    rows = files.select(["path", "deleted_epoch"]).to_pylist()
    return {row["path"].rpartition("/")[2]: row["deleted_epoch"] is not None for row in rows}


@pytest.mark.more
def test_an_object_that_is_deleted_is_noted_once_and_its_rows_stay(s3: S3Server, bucket: str) -> None:
    for name in "abc":
        s3.put(bucket, f"in/{name}.parquet", parquet(events(0)))
    # No object store client takes this name.
    s3.client().put_object(Bucket=bucket, Key="in/odd\n.parquet", Body=b"x")
    pipeline = pipeline_of(s3, bucket, FAST)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        (odd,) = sw.open(pipeline.root.url, s3.storage_options).ledger.files(status="quarantined").to_pylist()
        assert odd["path"].endswith("/odd\n.parquet") and "control characters" in odd["error"]
        s3.client().delete_object(Bucket=bucket, Key="in/b.parquet")
        expected = {"a.parquet": False, "b.parquet": True, "c.parquet": False, "odd\n.parquet": False}
        eventually(lambda: gone(pipeline, s3) == expected)
        run.wait(until="caught_up")
        noted = run.status().epoch
        run.wait(until="caught_up")
        assert run.status().epoch == noted, "noted once"
    # While nobody runs another one goes; the next run knows of the first.
    s3.client().delete_object(Bucket=bucket, Key="in/c.parquet")
    with pipeline.start() as run:
        run.wait(until="caught_up")
        eventually(lambda: gone(pipeline, s3) == {**expected, "c.parquet": True})
    rows = sw.open(pipeline.root.url, s3.storage_options).snapshot().view("totals").to_arrow()
    assert sum(rows["n"].to_pylist()) == 3 * len(events(0))


@pytest.mark.more
def test_what_was_there_before_is_left_out_and_what_comes_is_read(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "in/old.parquet", parquet(events(0)))
    written = s3.client().head_object(Bucket=bucket, Key="in/old.parquet")["LastModified"]
    # S3 tells times in whole seconds; what was written in that of the declaration is taken.
    eventually(lambda: datetime.now(UTC) > written + timedelta(seconds=2))
    pipeline = pipeline_of(s3, bucket, sw.Listing(interval_s=0.1, include_existing=False))
    with pipeline.start() as run:
        run.wait(until="caught_up")
        s3.put(bucket, "in/new.parquet", parquet(events(1)))
        run.wait(until="caught_up")
        assert set(gone(pipeline, s3)) == {"new.parquet"}
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    s3.put(bucket, "in/newer.parquet", parquet(events(2)))
    pipeline_of(s3, bucket, sw.Listing(interval_s=0.1, modified_after=tomorrow)).run(until="caught_up")
    assert gone(pipeline, s3) == {"new.parquet": False}


@pytest.mark.more
def test_listings_stay_within_their_budget_and_the_status_says_so(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "in/a.parquet", parquet(events(0)))
    with closing(s3.proxy()) as proxy:
        listing = sw.Listing(interval_s=0.05, max_requests_per_hour=3)
        pipeline = pipeline_of(s3, bucket, listing, proxy.storage_options)
        with pipeline.start() as run:
            run.wait(until="caught_up")
            status = run.status().sources["events"]
            assert status.stretched_by == "max_requests_per_hour"
            # The first listing searches the bucket for tables above the source, too.
            listing_cost = 1 + requests_above(Location(f"s3://{bucket}/in"))[0]
            assert status.listing_period_s == pytest.approx(1_200.0 * listing_cost)
            made = [request for request in proxy.requests if request.is_list]
            assert status.requests_per_hour == listing_cost < len(made)
