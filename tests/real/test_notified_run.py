"""Progress and messages of a run whose source has a queue of events, during the run and after it."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_events import created
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.real.event_pipeline import TOTALS
from tests.real.events import events, parquet
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]


def test_messages_are_counted_and_told_wherever_somebody_looks(
    s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str
) -> None:
    pipeline = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=s3.storage_options)
    discovery = sw.Notifications(queue_url=queue_url, **sqs.options)  # type: ignore[arg-type]
    pipeline.source("events", f"s3://{bucket}/in", format="parquet", discovery=discovery)
    pipeline.view("totals", TOTALS)
    s3.put(bucket, "in/a.parquet", parquet(events(0)))
    sqs.send(queue_url, "hello")

    with pipeline.start() as run:

        def deleted() -> int:
            messages = run.status().sources["events"].messages
            return 0 if messages is None else messages.deleted

        run.wait(until="caught_up")
        content = parquet(events(10))
        s3.put(bucket, "in/b.parquet", content)
        sqs.send(queue_url, created(bucket, "in/b.parquet", "e", len(content)))
        run.wait(until="caught_up")
        eventually(lambda: deleted() == 2)
        status = run.status().sources["events"]
        assert (status.listings, status.found, status.done) == (1, 1, 2), "of one of them an event has told"
        assert status.messages is not None and status.listed_at is not None
        assert status.messages.queue == queue_url
        assert (status.messages.received, status.messages.poison, status.messages.in_flight) == (2, 1, 0)

        store = sw.open(pipeline.root.url, s3.storage_options)
        # The store knows the state of the last ingest, `owner.json` the one of a few seconds ago.
        eventually(lambda: told(store)["received"] == 2 and told(store)["in_flight"] == 0)
        assert told(store) == {
            "url": queue_url,
            "in_flight": 0,
            "oldest_s": None,
            "received": 2,
            "redelivered": 0,
            "poison": 1,
            "found_by_listing": 1,
        }
        why = store.ledger.why("none.parquet")
        assert why.status == "absent" and "no event has named it" in why.text
        assert (
            f"the last listing ended at {status.listed_at:%Y-%m-%d %H:%M:%S} UTC, and the next one begins" in why.text
        )
        assert "0 messages of its queue are in flight, 1 is in quarantine as poison" in why.text
        report = run.stop()

    (note,) = report.notes
    assert "1 poison message of its queue quarantined" in note and f"slackwater quarantine {pipeline.root.url}" in note
    assert told(store)["received"] == 2, "what the run has said is known when it is over"
    assert "no pipeline runs on this root now" in store.ledger.why("none.parquet").text
    (poison,) = store.ledger.quarantine("events").to_pylist()
    assert poison["path"].startswith(f"{queue_url}#") and (poison["row"], poison["raw"]) == (None, b"hello")
    assert sw.verify(store, engine="duckdb", follow_sources=True).all_equal


def told(store: sw.Store) -> dict[str, Any]:
    (source,) = store.ledger.sources().to_pylist()
    queue: dict[str, Any] = source["queue"]
    return queue
