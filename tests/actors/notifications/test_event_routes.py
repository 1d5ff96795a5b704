"""Events on every route from a bucket into a queue, as moto makes them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from actors.notifications.bucket_event import BucketEvent, bucket_events
from actors.notifications.message_queue import MessageQueue
from actors.sources.discovery import Notifications
from slackwater.testing.servers.sqs_server import SqsServer
from state.clock import SystemClock
from state.location import Location

_KEY = "events/day=1/ü a+b%.csv"
_EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
_numbers = itertools.count(1)


class _Route:
    """A bucket and a queue of one name, on one server."""

    def __init__(self, server: SqsServer) -> None:
        self.server, self.name = server, f"route-{next(_numbers)}"
        self.s3 = server.client("s3")
        self.s3.create_bucket(Bucket=self.name)
        url = server.create_queue(self.name)
        attributes = server.client().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        self.queue_arn = attributes["QueueArn"]
        discovery = Notifications(queue_url=url, **server.options)  # type: ignore[arg-type]
        self.queue = MessageQueue(discovery, Location(f"s3://{self.name}", server.storage_options))

    def send(self, **configuration: Any) -> None:
        self.s3.put_bucket_notification_configuration(Bucket=self.name, NotificationConfiguration=configuration)

    def arrived(self, count: int) -> list[BucketEvent]:
        """Receives `count` events, and deletes their messages and those without events."""
        return list(itertools.islice(self._events(), count))

    def _events(self, within_s: float = 20.0) -> Iterator[BucketEvent]:
        clock = SystemClock()
        deadline = clock.monotonic() + within_s
        while clock.monotonic() < deadline:
            messages = self.queue.receive(10, 1.0)
            events = [event for message in messages for event in bucket_events(message.body)]
            assert self.queue.delete(messages) == len(messages)
            yield from events


@pytest.fixture
def route(sqs: SqsServer) -> _Route:
    return _Route(sqs)


def _check_both(route: _Route) -> None:
    event = BucketEvent(route.name, _KEY)
    route.s3.put_object(Bucket=route.name, Key=_KEY, Body=b"hello")
    assert route.arrived(1) == [event]
    route.s3.delete_object(Bucket=route.name, Key=_KEY)
    assert route.arrived(1) == [event]


def test_a_bucket_sends_to_a_queue(route: _Route) -> None:
    route.send(QueueConfigurations=[{"QueueArn": route.queue_arn, "Events": _EVENTS}])
    _check_both(route)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("raw", ["false", "true"])
def test_a_bucket_sends_through_sns(route: _Route, raw: str) -> None:
    sns = route.server.client("sns")
    topic = sns.create_topic(Name=route.name)["TopicArn"]
    attributes = {"RawMessageDelivery": raw}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=route.queue_arn, Attributes=attributes)
    route.send(TopicConfigurations=[{"TopicArn": topic, "Events": _EVENTS}])
    _check_both(route)


@pytest.mark.more
def test_a_bucket_sends_through_event_bridge(route: _Route) -> None:
    bridge = route.server.client("events")
    kinds = ["Object Created", "Object Deleted"]
    pattern = {"source": ["aws.s3"], "detail-type": kinds, "detail": {"bucket": {"name": [route.name]}}}
    bridge.put_rule(Name=route.name, EventPattern=json.dumps(pattern))
    bridge.put_targets(Rule=route.name, Targets=[{"Id": "queue", "Arn": route.queue_arn}])
    route.send(EventBridgeConfiguration={})
    _check_both(route)
