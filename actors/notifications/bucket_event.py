"""Events of a bucket, as a queue has them: from S3, through SNS, or through EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

_CHANGES = ("ObjectCreated:", "ObjectRemoved:", "LifecycleExpiration:")
_WRAPPINGS = 4
_MOST_KEY_BYTES = 1_024  # of S3


@dataclass(frozen=True)
class BucketEvent:
    """An object was written or removed.  Only the bucket knows its state now.

    Args:
        bucket: the name of the bucket.
        key: the key of the object, without percent-encoding.
    """

    bucket: str
    key: str


class PoisonMessageError(ValueError):
    """A message that no bucket writes; the text names the fault."""


def bucket_events(body: str) -> list[BucketEvent]:
    """The events of a message.

    A test event has none, nor has an event that neither writes nor removes an object: tags, restores, replication.

    Args:
        body: the text of the message, as the queue gives it.

    Raises:
        PoisonMessageError: the message has none of the three forms.
    """
    message = _object(body, "the message")
    for _ in range(_WRAPPINGS):
        match message:
            case {"Type": "Notification", "Message": str(wrapped)}:
                message = _object(wrapped, "the message that SNS has wrapped")
            case {"Event": "s3:TestEvent"}:
                return []
            case {"Records": list(records)}:
                found = [_of_record(each) for each in records]
                return [each for each in found if each is not None]
            case {"source": "aws.s3", "detail-type": _}:
                event = _of_event_bridge(message)
                return [] if event is None else [event]
            case _:
                break
    raise PoisonMessageError("it is not an event of S3 as S3 itself, SNS or EventBridge send it")


def _of_record(record: Any) -> BucketEvent | None:
    """The event of one of S3's own records, in which keys are encoded as in HTML forms."""
    if not _text(record, "eventName").removeprefix("s3:").startswith(_CHANGES):
        return None
    s3 = _part(record, "s3")
    return BucketEvent(_text(_part(s3, "bucket"), "name"), _key(_decoded(_text(_part(s3, "object"), "key"))))


def _of_event_bridge(message: Mapping[str, Any]) -> BucketEvent | None:
    """The event in EventBridge's form, in which keys are not encoded."""
    if message["detail-type"] not in ("Object Created", "Object Deleted"):
        return None
    detail = _part(message, "detail")
    return BucketEvent(_text(_part(detail, "bucket"), "name"), _key(_text(_part(detail, "object"), "key")))


def _decoded(key: str) -> str:
    try:
        return unquote_plus(key, errors="strict")
    except UnicodeDecodeError:
        raise PoisonMessageError(f"{key!r} is not a valid key: it is not UTF-8") from None


def _key(key: str) -> str:
    """The key, if a bucket can have it: a request with another key would fail each time the message comes."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise PoisonMessageError(f"{key!r} is not a valid key: it is not Unicode") from None
    if size > _MOST_KEY_BYTES:
        raise PoisonMessageError(f"{key[:40]!r}... is not a valid key: it has {size:,} bytes")
    return key


def _object(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise PoisonMessageError(f"{name} is not JSON: {error}") from None
    except RecursionError:
        raise PoisonMessageError(f"{name} is nested too deeply") from None
    if not isinstance(value, dict):
        raise PoisonMessageError(f"{name} is not a JSON object")
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
