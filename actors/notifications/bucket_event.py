"""What a bucket says of its objects, as S3 writes it into a queue: by itself, or through SNS or EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

_CHANGES = ("ObjectCreated:", "ObjectRemoved:", "LifecycleExpiration:")
_WRAPPINGS = 4


@dataclass(frozen=True)
class BucketEvent:
    """Something has happened to an object: it was written, or removed.  What there is now, only the bucket knows.

    Args:
        bucket: its name.
        key: of the object, as it is and not as URLs have it.
    """

    bucket: str
    key: str


class PoisonMessageError(ValueError):
    """A message that no bucket writes; the text says why."""


def bucket_events(body: str) -> list[BucketEvent]:
    """The events of a message.

    Test events have none, nor have events that say nothing of which objects there are: tags, restores, replication.

    Args:
        body: of the message, as the queue gives it.

    Raises:
        PoisonMessageError: it is none of the forms.
    """
    message = _object(body, "the message")
    for _ in range(_WRAPPINGS):
        if message.get("Type") == "Notification" and isinstance(message.get("Message"), str):
            message = _object(message["Message"], "the message that SNS has wrapped")
        elif message.get("Event") == "s3:TestEvent":
            return []
        elif isinstance(message.get("Records"), list):
            found = [_of_record(each) for each in message["Records"]]
            return [each for each in found if each is not None]
        elif message.get("source") == "aws.s3" and "detail-type" in message:
            event = _of_event_bridge(message)
            return [] if event is None else [event]
        else:
            break
    raise PoisonMessageError("it is no event of S3, as S3 itself, SNS or EventBridge send them")


def _of_record(record: Any) -> BucketEvent | None:
    """One of S3's own records, in which keys are as forms encode them."""
    if not _text(record, "eventName").removeprefix("s3:").startswith(_CHANGES):
        return None
    s3 = _part(record, "s3")
    return BucketEvent(_text(_part(s3, "bucket"), "name"), _decoded(_text(_part(s3, "object"), "key")))


def _of_event_bridge(message: Mapping[str, Any]) -> BucketEvent | None:
    """EventBridge's form, in which keys are as they are."""
    if message["detail-type"] not in ("Object Created", "Object Deleted"):
        return None
    detail = _part(message, "detail")
    return BucketEvent(_text(_part(detail, "bucket"), "name"), _text(_part(detail, "object"), "key"))


def _decoded(key: str) -> str:
    try:
        return unquote_plus(key, errors="strict")
    except UnicodeDecodeError:
        raise PoisonMessageError(f"{key!r} is no key: it is not UTF-8") from None


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise PoisonMessageError(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise PoisonMessageError(f"{what} is no JSON object")
    return value


def _part(value: Any, name: str) -> dict[str, Any]:
    part = value.get(name) if isinstance(value, dict) else None
    if not isinstance(part, dict):
        raise PoisonMessageError(f"it is an event without {name!r}")
    return part


def _text(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    if not isinstance(text, str) or not text:
        raise PoisonMessageError(f"it is an event without {name!r}")
    return text
