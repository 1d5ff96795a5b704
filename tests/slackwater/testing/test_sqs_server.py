"""Tests of the SQS server: its queues are private, and its messages are those of S3."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from actors.notifications.bucket_event import BucketEvent, bucket_events
from actors.notifications.message_tracker import QueueDepth
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.sqs_server import SqsServer
from state.clock import SystemClock
from tests.waiting import is_gone

_AT = datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)


@pytest.mark.more
def test_what_is_sent_is_there_until_it_is_purged(sqs: SqsServer, queue_url: str) -> None:
    sqs.send_batch(queue_url, [str(number) for number in range(23)])
    sqs.send(queue_url, "one more")
    assert sqs.depth(queue_url) == QueueDepth(visible=24, in_flight=0)
    sqs.client().receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)
    assert sqs.depth(queue_url) == QueueDepth(visible=14, in_flight=10)
    sqs.purge(queue_url)
    assert sqs.depth(queue_url) == QueueDepth(0, 0)


@pytest.mark.more
def test_two_servers_have_queues_and_accounts_of_their_own(sqs: SqsServer) -> None:
    sqs.create_queue("of-the-first")
    with SqsServer(SystemClock()) as other:
        pid = other.pid
        assert "QueueUrls" not in other.client().list_queues()
        assert other.create_queue("a").split("/")[3] != sqs.create_queue("a").split("/")[3]
    assert is_gone(pid)


def test_the_repr_shows_no_secret(sqs: SqsServer) -> None:
    assert sqs.storage_options["secret_access_key"] not in repr(sqs)


def _both(body: str) -> str:
    return s3_events.sns(s3_events.event_bridge(body))


@pytest.mark.parametrize("wrapped", [str, s3_events.sns, s3_events.event_bridge, _both])
def test_an_event_is_read_as_it_was_meant_however_it_comes(wrapped: Callable[[str], str]) -> None:
    key, kind = "in/ü +%\n.csv", "CompleteMultipartUpload"
    body = wrapped(s3_events.created("raw", key, '"9b2c-2"', 5, kind=kind, at=_AT, version_id="v1"))
    assert bucket_events(body) == [BucketEvent("raw", key)]
    body = wrapped(s3_events.removed("raw", "a b", kind="DeleteMarkerCreated", sequencer="0056"))
    assert bucket_events(body) == [BucketEvent("raw", "a b")]


def test_events_come_together_and_a_test_event_says_nothing() -> None:
    body = s3_events.together(s3_events.created("raw", "a", "1", 1), s3_events.removed("raw", "b"))
    assert bucket_events(body) == [BucketEvent("raw", "a"), BucketEvent("raw", "b")]
    assert bucket_events(s3_events.test_event("raw")) == []
