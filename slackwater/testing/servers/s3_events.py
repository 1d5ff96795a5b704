"""The messages that S3 sends of its objects, field by field as AWS documents them.

`created` and `removed` make the messages that S3 itself writes into a queue; `sns` and `event_bridge` make of them the
messages that arrive through those.  (Amazon S3 User Guide, "Event message structure" and "EventBridge event message
structure"; Amazon SNS Developer Guide, "HTTP/HTTPS notification JSON format".)
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus, unquote_plus

_AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
_SEQUENCER = "0055AED6DCD90281E5"
_REGION = "us-east-1"
_ACCOUNT = "111122223333"
_DETAIL_TYPES = {"ObjectCreated": "Object Created", "ObjectRemoved": "Object Deleted"}


def created(
    bucket: str,
    key: str,
    etag: str,
    size: int,
    *,
    kind: str = "Put",
    at: datetime = _AT,
    sequencer: str = _SEQUENCER,
    version_id: str = "",
) -> str:
    """An object was written.

    Args:
        key: of the object, as it is.
        etag: with or without its quotes.
        size: in bytes.
        kind: `Put`, `Post`, `Copy` or `CompleteMultipartUpload`.
        at: when S3 was done with it.
        sequencer: of two events of one key the later has the greater one.
        version_id: of a bucket with versions.
    """
    item = {"key": quote_plus(key), "size": size, "eTag": etag.strip('"')}
    return _message(f"ObjectCreated:{kind}", bucket, item, at, sequencer, version_id)


def removed(
    bucket: str,
    key: str,
    *,
    kind: str = "Delete",
    at: datetime = _AT,
    sequencer: str = _SEQUENCER,
    version_id: str = "",
) -> str:
    """An object was removed; see `created`.

    Args:
        key: of the object, as it is.
        kind: `Delete` or `DeleteMarkerCreated`.
        at: when S3 was done with it.
        sequencer: of two events of one key the later has the greater one.
        version_id: of a bucket with versions.
    """
    return _message(f"ObjectRemoved:{kind}", bucket, {"key": quote_plus(key)}, at, sequencer, version_id)


def together(*bodies: str) -> str:
    """One message with the records of several."""
    return json.dumps({"Records": [record for body in bodies for record in json.loads(body)["Records"]]})


def test_event(bucket: str) -> str:
    """The message that S3 sends once when a notification is set up."""
    return json.dumps(
        {
            "Service": "Amazon S3",
            "Event": "s3:TestEvent",
            "Time": _time(_AT),
            "Bucket": bucket,
            "RequestId": "5582815E1AEA5ADF",
            "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR+YstdA6Knx4Ip8EXAMPLE",
        }
    )


def sns(body: str) -> str:
    """A message as SNS passes it on, without raw delivery."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": f"arn:aws:sns:{_REGION}:{_ACCOUNT}:raw-events",
            "Subject": "Amazon S3 Notification",
            "Message": body,
            "Timestamp": _time(_AT),
            "SignatureVersion": "1",
            "Signature": "EXAMPLEw6JRN==",
            "SigningCertURL": f"https://sns.{_REGION}.amazonaws.com/SimpleNotificationService-EXAMPLE.pem",
            "UnsubscribeURL": f"https://sns.{_REGION}.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=EXAMPLE",
        }
    )


def event_bridge(body: str) -> str:
    """The same event as EventBridge sends it; the message has one record."""
    [record] = json.loads(body)["Records"]
    name, _, kind = record["eventName"].partition(":")
    item = dict(record["s3"]["object"])
    shown = {"key": unquote_plus(item["key"])}
    if "eTag" in item:
        shown |= {"size": item["size"], "etag": item["eTag"]}
    if "versionId" in item:
        shown["version-id"] = item["versionId"]
    shown["sequencer"] = item["sequencer"]
    detail: dict[str, Any] = {
        "version": "0",
        "bucket": {"name": record["s3"]["bucket"]["name"]},
        "object": shown,
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": _ACCOUNT,
        "source-ip-address": "127.0.0.1",
    }
    if name == "ObjectCreated":
        detail["reason"] = f"{kind}Object" if kind in ("Put", "Post", "Copy") else kind
    else:
        detail["reason"] = "DeleteObject"
        detail["deletion-type"] = "Permanently Deleted" if kind == "Delete" else "Delete Marker Created"
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": _DETAIL_TYPES[name],
            "source": "aws.s3",
            "account": _ACCOUNT,
            "time": record["eventTime"],
            "region": record["awsRegion"],
            "resources": [record["s3"]["bucket"]["arn"]],
            "detail": detail,
        }
    )


def _message(name: str, bucket: str, item: dict[str, Any], at: datetime, sequencer: str, version_id: str) -> str:
    version = {"versionId": version_id} if version_id else {}
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": _REGION,
        "eventTime": _time(at),
        "eventName": name,
        "userIdentity": {"principalId": "AWS:AIDAJDPLRKLG7UEXAMPLE"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {
            "x-amz-request-id": "C3D13FE58DE4C810",
            "x-amz-id-2": "FMyUVURIY8/IgAtTv8xRjskZQpcIZ9KG4V5Wp6S7S/JRWeUWerMUE5JgHvANOjpD",
        },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "new-files",
            "bucket": {
                "name": bucket,
                "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                "arn": f"arn:aws:s3:::{bucket}",
            },
            "object": {**item, **version, "sequencer": sequencer},
        },
    }
    return json.dumps({"Records": [record]})


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
