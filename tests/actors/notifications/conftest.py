"""A bucket whose events go to a queue."""

from __future__ import annotations

import pytest

from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer
from tests.actors.notifications.notifying_bucket import NotifyingBucket


@pytest.fixture
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls of at most 1 s: one whose reader is gone continues in the shared server, and takes messages.

    One change at a time: of two batches that are deleted at the same moment moto may keep one, as SQS does not.
    """
    monkeypatch.setattr("actors.notifications.event_watch._LONG_POLL_S", 1.0)
    monkeypatch.setattr("actors.notifications.event_watch._SHORT_POLL_S", 0.0)
    monkeypatch.setattr("actors.hosting.event_source._CHANGES_SIDE_BY_SIDE", 1)


@pytest.fixture
def told(s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str, short_polls: None) -> NotifyingBucket:
    """An empty bucket and its empty queue."""
    return NotifyingBucket(s3, bucket, sqs, queue_url)
