"""A source that loses the access to its store pauses; the others go on, and it continues by itself."""

from __future__ import annotations

import random

import pytest

import slackwater as sw
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from tests.real.event_pipeline import FAST, ONE_FETCHER
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]


def declared(s3: S3Server, bucket: str, proxy: FaultProxy) -> sw.Pipeline:
    pipeline = sw.Pipeline("shop", f"s3://{bucket}/root", storage_options=s3.storage_options, settings=ONE_FETCHER)
    for name, options in (("orders", proxy.storage_options), ("clicks", s3.storage_options)):
        pipeline.source(
            name, f"s3://{bucket}/{name}", format="csv", schema="n int", discovery=FAST, storage_options=options
        )
    pipeline.view("both", "SELECT n FROM orders UNION ALL SELECT n FROM clicks")
    return pipeline


def test_a_source_without_access_pauses_and_the_others_go_on(s3: S3Server, bucket: str) -> None:
    proxy = s3.fault_proxy(random.Random(1))
    pipeline = declared(s3, bucket, proxy)

    def put(key: str, number: int) -> None:
        s3.put(bucket, key, f"n\n{number}\n".encode())

    def rows() -> list[int]:
        snapshot = sw.open(pipeline.root.url, storage_options=s3.storage_options).snapshot()
        return sorted(row["n"] for row in snapshot.view("both").to_arrow().to_pylist())

    def lose_access(*, listings: int) -> None:
        proxy.on("GET", "orders/*").deny()
        proxy.on("LIST", "orders*", skip=listings).deny()

    put("orders/a.csv", 1)
    put("clicks/a.csv", 2)
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        run.pause()
        put("orders/b.csv", 3)
        lose_access(listings=1)
        run.resume()
        eventually(lambda: run.status().sources["orders"].paused is not None, 120)
        assert any(request.key == "orders/b.csv" for request in proxy.met("deny")), "a file that was listed is refused"
        put("clicks/b.csv", 4)
        eventually(lambda: rows() == [1, 2, 4], 120)
        assert run.wait(until="caught_up", timeout_s=120), "a refused source is not waited for"
        reason = run.status().sources["orders"].paused or ""
        assert reason.startswith(f"its listing failed: s3://{bucket}/orders: access is denied (403 InvalidObjectState)")
        assert run.report().paused_sources == {"orders": reason}
        proxy.heal()
        eventually(lambda: rows() == [1, 2, 3, 4], 120)
        eventually(lambda: run.status().sources["orders"].paused is None, 120)
        assert run.status().recoveries == 0
    lose_access(listings=0)
    put("clicks/c.csv", 5)
    put("orders/c.csv", 6)
    report = pipeline.run(until="caught_up")
    assert [*report.paused_sources] == ["orders"] and report.exit_code == 3
    assert rows() == [1, 2, 3, 4, 5]
    proxy.heal()
    assert not pipeline.run(until="caught_up").paused_sources
    assert rows() == [1, 2, 3, 4, 5, 6]
    files = sw.open(pipeline.root.url, storage_options=s3.storage_options).ledger.files()
    assert files["status"].to_pylist() == ["done"] * 6, "no file is marked"
