"""Bucket events as S3, SNS and EventBridge write them, in messages of a queue, and a feed that receives these."""

from __future__ import annotations

import json
from typing import Any

from actors.notifications.event_feed import EventFeed
from actors.notifications.message_tracker import QueueMessage
from actors.sources.path_filter import PathFilter


def record(name: str = "ObjectCreated:Put", **of_object: Any) -> dict[str, Any]:
    """A record as S3 writes it."""
    item = {"key": "in/a.parquet", "size": 1024, "eTag": "d41d8cd98f00b204", "sequencer": "0055AED6DCD90281E5"}
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-central-1",
        "eventTime": "2026-01-31T12:00:00.005Z",
        "eventName": name,
        "userIdentity": {"principalId": "AIDAJDPLRKLG7UEXAMPLE"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "new files",
            "bucket": {"name": "raw", "ownerIdentity": {"principalId": "A3NL1KOZZKExample"}, "arn": "arn:aws:s3:::raw"},
            "object": item | of_object,
        },
    }


def direct(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": records})


def by_sns(body: str) -> str:
    return json.dumps({"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:::raw", "Message": body})


def event_bridge(kind: str = "Object Created", detail: dict[str, Any] | None = None, **of_object: Any) -> str:
    item = {"key": "in/a+b c.parquet", "size": 5, "etag": "b1946ac92492d234", "sequencer": "617f08299329d189"}
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": kind,
            "source": "aws.s3",
            "account": "111122223333",
            "time": "2026-01-31T12:00:00Z",
            "region": "eu-central-1",
            "resources": ["arn:aws:s3:::raw"],
            "detail": {"version": "0", "bucket": {"name": "raw"}, "object": item | of_object, **(detail or {})},
        }
    )


def feed(most_messages: int = 100) -> EventFeed:
    return EventFeed(
        queue="https://sqs/raw",
        bucket="raw",
        prefix="in/",
        path_filter=PathFilter("**/*.parquet"),
        visibility_s=60.0,
        most_messages=most_messages,
    )


def message(number: int, *keys: str, deliveries: int = 1) -> QueueMessage:
    body = direct(*(record(key=key) for key in keys))
    return QueueMessage(f"m{number}", f"r{number}", body, 0.0, deliveries)
