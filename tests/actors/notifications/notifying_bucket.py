"""A bucket whose events the test sends itself: SeaweedFS sends none."""

from __future__ import annotations

from typing import Any

from actors.notifications.message_tracker import QueueDepth
from slackwater.testing.servers import s3_events
from slackwater.testing.servers.s3_server import S3Server
from slackwater.testing.servers.sqs_server import SqsServer


class NotifyingBucket:
    """Objects below `in/` of a bucket of SeaweedFS, and a queue of moto with their events.

    Args:
        s3: the server of the bucket.
        bucket: the name of the bucket.
        sqs: the server of the queue.
        queue_url: the URL of the queue.
    """

    def __init__(self, s3: S3Server, bucket: str, sqs: SqsServer, queue_url: str) -> None:
        self.s3, self.name, self.sqs, self.queue_url = s3, bucket, sqs, queue_url
        self.client: Any = s3.client()

    @property
    def url(self) -> str:
        """The URL of the objects."""
        return f"s3://{self.name}/in"

    def put(self, name: str, content: bytes = b"x", *, tells: int = 1) -> str:
        """Writes an object and sends its event `tells` times; returns its etag."""
        self.s3.put(self.name, f"in/{name}", content)
        head = self.client.head_object(Bucket=self.name, Key=f"in/{name}")
        self.send(*[s3_events.created(self.name, f"in/{name}", head["ETag"], head["ContentLength"])] * tells)
        etag: str = head["ETag"]
        return etag

    def remove(self, name: str, *, tells: int = 1) -> None:
        """Removes an object and sends its event `tells` times."""
        self.client.delete_object(Bucket=self.name, Key=f"in/{name}")
        self.send(*[s3_events.removed(self.name, f"in/{name}")] * tells)

    def send(self, *bodies: str) -> None:
        """Puts messages into the queue."""
        self.sqs.send_batch(self.queue_url, bodies)

    def read(self, url: str) -> bytes:
        """The content of an object."""
        content: bytes = self.client.get_object(Bucket=self.name, Key=url.removeprefix(f"s3://{self.name}/"))[
            "Body"
        ].read()
        return content

    @property
    def depth(self) -> QueueDepth:
        """The number of messages in the queue."""
        return self.sqs.depth(self.queue_url)

    @property
    def is_drained(self) -> bool:
        """Whether every message was deleted."""
        return self.depth == QueueDepth(0, 0)
