"""Events of S3 in every form, and messages that are not events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.notifications.bucket_event import BucketEvent, PoisonMessageError, bucket_events
from tests.actors.notifications.bucket_events import by_sns, direct, event_bridge, record


@pytest.mark.parametrize("wrapped", [str, by_sns], ids=["from S3", "by SNS"])
def test_every_object_that_was_written_is_named(wrapped: Any) -> None:
    body = wrapped(
        direct(
            record(), record("s3:ObjectCreated:CompleteMultipartUpload", key="b"), record("ObjectCreated:Copy", key="c")
        )
    )
    assert bucket_events(body) == [BucketEvent("raw", "in/a.parquet"), BucketEvent("raw", "b"), BucketEvent("raw", "c")]


@pytest.mark.parametrize(
    ("encoded", "key"), [("red+flower%2B%25.csv", "red flower+%.csv"), ("%C3%BC/%E6%97%A5", "ü/日"), ("a%0Ab", "a\nb")]
)
def test_the_key_is_that_of_the_object(encoded: str, key: str) -> None:
    assert bucket_events(direct(record(key=encoded)))[0].key == key


def test_event_bridge_writes_keys_as_they_are() -> None:
    [event] = bucket_events(event_bridge())
    assert event == BucketEvent("raw", "in/a+b c.parquet")
    assert bucket_events(by_sns(event_bridge())) == [event]


@pytest.mark.parametrize(
    "body",
    [
        direct(record("ObjectRemoved:Delete", size=None, eTag=None)),
        direct(record("ObjectRemoved:DeleteMarkerCreated", versionId="v2")),
        direct(record("LifecycleExpiration:Delete")),
        event_bridge("Object Deleted", {"deletion-type": "Permanently Deleted"}, size=None, etag=None),
        event_bridge("Object Deleted", {"deletion-type": "Delete Marker Created"}),
    ],
)
def test_what_was_removed_is_named_too(body: str) -> None:
    [event] = bucket_events(body)
    assert event.bucket == "raw" and event.key.startswith("in/a")


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(
            {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-01-31T12:00:00.005Z", "Bucket": "raw"}
        ),
        direct(
            record("ObjectTagging:Put"),
            record("ObjectRestore:Completed"),
            record("Replication:OperationMissedThreshold"),
        ),
        direct(),
        event_bridge("Object Tags Added"),
    ],
)
def test_what_changes_no_object_is_no_event(body: str) -> None:
    assert bucket_events(body) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<xml/>", "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "not an event of S3"),
        (by_sns("hello"), "SNS has wrapped is not JSON"),
        (json.dumps({"Records": ["x"]}), "without 'eventName'"),
        (json.dumps({"Records": [{"eventName": "ObjectCreated:Put"}]}), "without 's3'"),
        (direct(record(key="")), "without 'key'"),
        (direct(record(key="%ff")), "'%ff' is not a valid key"),
        (direct(record(key="in/\ud800")), r"'in/\\ud800' is not a valid key: it is not Unicode"),
        (event_bridge("Object Created", key="in/\ud800"), r"'in/\\ud800' is not a valid key: it is not Unicode"),
        (direct(record(key="é" * 600)), "is not a valid key: it has 1,200 bytes"),
        ("[" * 100_000, "the message is nested too deeply"),
        ('{"a":' * 100_000, "the message is nested too deeply"),
        (by_sns("[" * 100_000), "SNS has wrapped is nested too deeply"),
    ],
)
def test_what_no_bucket_writes_is_poison_and_says_why(body: str, reason: str) -> None:
    with pytest.raises(PoisonMessageError, match=reason):
        bucket_events(body)
