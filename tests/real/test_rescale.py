"""Fetch actors come and go while files arrive, on Ray, Spark, Lance and a real S3 server."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from state.places.marker import MARKER
from tests.real import victims
from tests.real.event_pipeline import FAST, TOTALS, expected, totals
from tests.real.events import events, parquet
from tests.real.ledger_oracle import LedgerOracle
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

FILES = 300
FEW_PER_SECOND = 2.0
"""At this rate most files wait while vnodes move, also on a machine on which that takes a minute."""


def fill(s3: S3Server, bucket: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        s3.put(bucket, f"in/{number:04}.parquet", parquet(events(number)))


def pipeline(s3: S3Server, bucket: str, storage_options: dict[str, str]) -> sw.Pipeline:
    settings = sw.Settings(
        fetch=sw.settings.FetchSettings(num_fetchers=1, concurrency=4),
        recovery=sw.settings.RecoverySettings(first_pause_s=0.01, max_pause_s=0.01),
    )
    made = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=s3.storage_options, settings=settings)
    made.source("events", f"s3://{bucket}/in", format="parquet", discovery=FAST, storage_options=storage_options)
    made.view("totals", TOTALS)
    return made


def checked(s3: S3Server, bucket: str, files: int, tmp_path: Path) -> None:
    """Every epoch is what DuckDB makes of the ledger, and every row is in the last one."""
    store, client = sw.open(f"s3://{bucket}/root", s3.storage_options), s3.client()

    def read(path: str) -> bytes:
        content: bytes = client.get_object(Bucket=bucket, Key=path.removeprefix(f"s3://{bucket}/"))["Body"].read()
        return content

    assert LedgerOracle({"events": "parquet"}, read, tmp_path).check_every_epoch(store, {"totals": TOTALS}) > 3
    everything = [row for number in range(files) for row in events(number)]
    assert totals(f"s3://{bucket}/root", storage_options=s3.storage_options) == expected(everything)


def num_fetchers() -> int:
    return len(victims.find(os.getpid(), "fetch"))


@pytest.mark.more
def test_one_fetch_actor_becomes_three_and_then_two_under_load_and_no_file_is_read_twice(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    fill(s3, bucket, 0, FILES)
    with (
        closing(s3.proxy()) as proxy,
        proxy.recording() as requests,
        pipeline(s3, bucket, proxy.storage_options).start() as run,
    ):
        run.throttle(files_per_second=FEW_PER_SECOND)
        eventually(lambda: run.report().files > 5, limit_s=90)
        run.rescale(fetchers=3)
        assert (run.status().fetchers, num_fetchers()) == (3, 3)
        assert run.status().sources["events"].waiting > 0, "files waited while their vnodes moved"
        fill(s3, bucket, FILES, FILES)
        before = run.report().files
        eventually(lambda: run.report().files > before)
        rescaled = slackwater("rescale", f"s3://{bucket}/root", "2", *where(s3), environment=secrets(s3))
        assert (rescaled.code, rescaled.out) == (0, "2 fetch actors\n"), rescaled.err
        assert run.status().fetchers == 2
        eventually(lambda: num_fetchers() == 2)
        assert run.status().sources["events"].waiting > 0, "files waited while their vnodes moved"
        run.throttle()
        assert run.wait(until="caught_up", timeout_s=120)
        status = run.status()
        assert (status.sources["events"].done, status.recoveries) == (2 * FILES, 0)
    gets = Counter(request.key for request in requests if request.method == "GET" and not request.is_list)
    assert gets.pop(MARKER) == 1, "one looks once for a marker above the source"
    assert gets == Counter({f"in/{number:04}.parquet": 1 for number in range(2 * FILES)})
    checked(s3, bucket, 2 * FILES, tmp_path)


def where(s3: S3Server) -> list[str]:
    return ["-o", f"endpoint={s3.endpoint}", "-o", "allow_http=true"]


def secrets(s3: S3Server) -> dict[str, str]:
    options = s3.storage_options
    return {"AWS_ACCESS_KEY_ID": options["access_key_id"], "AWS_SECRET_ACCESS_KEY": options["secret_access_key"]}


@pytest.mark.long
@pytest.mark.parametrize("victim", ["fetch", "dispatcher", "coordinator"])
def test_a_death_while_vnodes_move_loses_no_row_and_the_number_that_was_asked_for_comes(
    s3: S3Server, bucket: str, tmp_path: Path, victim: str
) -> None:
    fill(s3, bucket, 0, FILES)
    with pipeline(s3, bucket, s3.storage_options).start() as run:
        run.throttle(files_per_second=FEW_PER_SECOND)
        eventually(lambda: run.report().files > 5, limit_s=90)
        for fetchers in (3, 2):
            recoveries = run.status().recoveries
            rescaling = threading.Thread(target=run.rescale, kwargs={"fetchers": fetchers})
            rescaling.start()
            # The new actors are there, and the barrier is about to come; or those who leave hand over.
            eventually(lambda: num_fetchers() == 3)
            victims.send(os.getpid(), victim)
            eventually(lambda: run.status().recoveries > recoveries)  # noqa: B023
            rescaling.join(60)
            assert not rescaling.is_alive()
            assert run.status().fetchers == fetchers
        run.throttle()
        assert run.wait(until="caught_up", timeout_s=120)
    checked(s3, bucket, FILES, tmp_path)
