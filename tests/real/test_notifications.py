"""Whole runs whose files are told by events: whatever the queue does, every file is in the views once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from actors.sources.source import OnChange
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.actors.notifications.notifying_bucket import NotifyingBucket
from tests.real import notified_job
from tests.real.events import VIEWS, events, parquet
from tests.real.ledger_oracle import LedgerOracle
from tests.real.source_files import encoded
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

LIVES = 3
ROWS = 40_000
PIECEMEAL = sw.Settings(
    fetch=sw.settings.FetchSettings(
        num_fetchers=1,
        piece_bytes=4 * 1024,
        max_bytes_in_flight=64 * 1024,
        requests=sw.settings.RequestSettings(whole_object_bytes=4 * 1024, block_bytes=4 * 1024),
    )
)
"""A text is asked for block by block."""


@pytest.fixture
def told(s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str) -> NotifyingBucket:
    """An empty bucket and its empty queue."""
    return NotifyingBucket(s3, bucket, sqs, queue_url)


def by_events(told: NotifyingBucket, **options: Any) -> sw.Notifications:
    # A poll of a run that is over goes on in this server, and what it takes comes again only then.
    return sw.Notifications(queue_url=told.queue_url, **{**told.sqs.options, "visibility_s": 4.0, **options})


def declared(
    told: NotifyingBucket,
    root: Path,
    *,
    discovery: sw.Listing | sw.Notifications | None = None,
    options: dict[str, str] | None = None,
    on_change: OnChange = "ignore",
    settings: sw.Settings | None = None,
    kind: str = "parquet",
) -> sw.Pipeline:
    pipeline = sw.Pipeline("events", root, settings=settings)
    pipeline.source(
        "events",
        told.url,
        format=kind,
        schema="user bigint, amount double",
        discovery=discovery or by_events(told),
        storage_options=options or told.s3.storage_options,
        on_change=on_change,
        materialize=True,
    )
    for name, query in VIEWS.items():
        pipeline.view(name, query)
    return pipeline


def oracle(told: NotifyingBucket, place: Path, kind: str = "parquet") -> LedgerOracle:
    scratch = place / "scratch"
    scratch.mkdir()
    return LedgerOracle({"events": kind}, told.read, scratch, ["events"])


def statuses(store: sw.Store, name: str) -> list[str]:
    return sorted(row["status"] for row in store.ledger.files().to_pylist() if row["path"].endswith(f"/{name}"))


@pytest.mark.long
def test_after_one_listing_events_tell_of_what_comes_changes_and_goes(told: NotifyingBucket, tmp_path: Path) -> None:
    known, root = oracle(told, tmp_path), tmp_path / "root"
    for number in range(10):
        told.s3.put(told.name, f"in/{number}.parquet", parquet(events(90 + number)))
    proxy = told.s3.proxy()
    pipeline = declared(told, root, options=proxy.storage_options, on_change="replace")
    with closing(proxy), pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(root, told.s3.storage_options)
        # One looks at the start whether the bucket can be listed at all.
        assert len([each for each in proxy.requests if each.is_list]) == 2
        with proxy.recording() as requests:
            told.send("hello", s3_events.test_event(told.name), s3_events.created("another", "in/x", '"1"', 1))
            for number in range(10, 30):
                told.put(f"{number}.parquet", parquet(events(90 + number)), tells=2)
            told.send(s3_events.removed(told.name, "in/12.parquet"))
            assert run.wait(until="caught_up", timeout_s=60)
            assert store.ledger.files()["status"].to_pylist() == ["done"] * 30
            known.learn(store)
            told.put("10.parquet", parquet(events(500, 20)))
            told.remove("11.parquet")
            eventually(lambda: statuses(store, "10.parquet") == ["done", "replaced"])
            eventually(lambda: statuses(store, "11.parquet") == ["forgotten"])
            known.learn(store)
            told.put("11.parquet", parquet(events(800)))
            eventually(lambda: statuses(store, "11.parquet") == ["done", "forgotten"])
            eventually(lambda: told.is_drained)
        assert not [each for each in requests if each.is_list]
    assert known.check_every_epoch(store, VIEWS) > 3
    found = {row["raw"]: row for row in store.ledger.quarantine("events").to_pylist()}
    assert b"hello" in found and len(found) == 2
    assert all(row["path"].startswith(f"{told.queue_url}#") for row in found.values())


@pytest.mark.more
@pytest.mark.parametrize("on_change", ["ignore", "replace"])
def test_what_is_removed_while_it_is_read_stays_as_far_as_it_was_committed_or_leaves(
    told: NotifyingBucket, tmp_path: Path, on_change: OnChange
) -> None:
    known, root = oracle(told, tmp_path, "csv"), tmp_path / "root"
    told.put("small.csv", encoded("csv", events(90)))
    with declared(told, root, on_change=on_change, settings=PIECEMEAL, kind="csv").start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        run.throttle(bytes_per_second=50_000)
        told.put("large.csv", encoded("csv", events(1_000, ROWS)))
        store = sw.open(root)
        eventually(lambda: statuses(store, "large.csv") == ["reading"])
        known.learn(store)
        told.remove("large.csv")
        run.throttle()
        eventually(lambda: told.is_drained)
        [large] = [row for row in store.ledger.files().to_pylist() if row["path"].endswith("large.csv")]
        assert large["deleted_epoch"] is not None and 0 < large["rows_read"] < ROWS
        assert (large["status"] == "forgotten") == (on_change == "replace"), large
    known.check_every_epoch(store, VIEWS)
    amounts = store.snapshot().view("large").to_arrow()["twice"].to_pylist()
    assert (max(amounts, default=0.0) >= 2_000) == (on_change == "ignore")


@pytest.mark.long
def test_a_root_goes_from_listing_to_events_and_back(told: NotifyingBucket, tmp_path: Path) -> None:
    known, root = oracle(told, tmp_path), tmp_path / "root"
    discoveries: list[sw.Listing | sw.Notifications]
    discoveries = [sw.Listing(interval_s=0.2), by_events(told), sw.Listing(interval_s=0.2)]
    for number, discovery in enumerate(discoveries):
        told.put(f"{number}-gap.parquet", parquet(events(90 + number)))
        with declared(told, root, discovery=discovery).start() as run:
            assert run.wait(until="caught_up", timeout_s=120)
            told.put(f"{number}-run.parquet", parquet(events(100 + number)))
            assert run.wait(until="caught_up", timeout_s=60)
            assert run.report().files == 2
    store = sw.open(root)
    assert store.ledger.files()["status"].to_pylist() == ["done"] * 6
    known.check_every_epoch(store, VIEWS)


@pytest.mark.long
def test_a_run_that_is_killed_with_messages_in_hand_loses_and_repeats_no_row(
    told: NotifyingBucket, tmp_path: Path
) -> None:
    root, rows = tmp_path / "root", 0
    for life in range(LIVES):
        for number in range(40):
            told.put(f"{life}-{number}.parquet", parquet(events(90 + number)), tells=1 + number % 2)
            rows += 10
        log = (tmp_path / f"life-{life}.log").open("wb")
        with log, subprocess.Popen(
            [sys.executable, notified_job.__file__, str(root), told.url, told.queue_url, told.sqs.options["region"]],
            env={
                **os.environ,
                "STORAGE_OPTIONS": json.dumps(told.s3.storage_options),
                "QUEUE_ENDPOINT": told.sqs.endpoint,
            },
            stdout=log,
            stderr=log,
        ) as process:  # fmt: skip
            if life < LIVES - 1:
                eventually(lambda: told.depth.in_flight > 0, 120.0)
                if life:
                    # Some of what it has received is committed by then, and the rest is not.
                    eventually(lambda: is_in_the_middle(root, 40 * life), 120.0)  # noqa: B023
                process.send_signal(signal.SIGKILL)
                assert process.wait() == -signal.SIGKILL
            else:
                assert process.wait(timeout=150) == 0, Path(log.name).read_text()
    store = sw.open(root)
    assert store.ledger.files()["status"].to_pylist() == ["done"] * 40 * LIVES
    known = LedgerOracle({"events": "parquet"}, told.read, tmp_path)
    known.check_every_epoch(store, {"totals": notified_job.QUERY})
    assert sum(store.snapshot().view("totals").to_arrow()["n"].to_pylist()) == rows
    assert told.is_drained


def is_in_the_middle(root: Path, files: int) -> bool:
    try:
        done: int = sw.open(root).ledger.files()["status"].to_pylist().count("done")
    except sw.errors.StoreNotFoundError:
        return False
    return done > files
