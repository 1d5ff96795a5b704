"""What a bucket says of its objects, as S3 writes it into a queue: by itself, or through SNS or EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import unquote_plus

_CREATED = "ObjectCreated:"
_REMOVED = ("ObjectRemoved:", "LifecycleExpiration:")
_WRAPPINGS = 4


@dataclass(frozen=True)
class BucketEvent:
    """One object was written or removed.

    Args:
        kind: what happened to it.
        bucket: its name.
        key: of the object, as it is and not as URLs have it.
        at: when S3 was done with it.
        etag: of what was written, with quotes as listings have them; empty for what was removed.
        size: of what was written, in bytes; 0 for what was removed.
        version_id: of a bucket with versions; empty without.
        sequencer: of two events of one key the later has the greater one, once both are as long; empty if unknown.
    """

    kind: Literal["created", "removed"]
    bucket: str
    key: str
    at: datetime
    etag: str = ""
    size: int = 0
    version_id: str = ""
    sequencer: str = ""

    def is_after(self, other: BucketEvent) -> bool:
        """Whether this is the later one of two events of one object; where S3 does not say, by their times.

        Sequencers are hexadecimal numbers of different lengths; the shorter one counts as padded with zeros on its
        right (Amazon S3 User Guide, "Event message structure").
        """
        if self.sequencer and other.sequencer:
            length = max(len(self.sequencer), len(other.sequencer))
            return self.sequencer.ljust(length, "0") > other.sequencer.ljust(length, "0")
        return self.at > other.at


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
    name = _text(record, "eventName")
    kind = _kind(name.removeprefix("s3:"))
    if kind is None:
        return None
    s3 = _part(record, "s3")
    item = _part(s3, "object")
    return _event(
        kind,
        bucket=_text(_part(s3, "bucket"), "name"),
        key=_decoded(_text(item, "key")),
        at=_text(record, "eventTime"),
        etag=item.get("eTag"),
        size=item.get("size"),
        version_id=item.get("versionId"),
        sequencer=item.get("sequencer"),
    )


def _of_event_bridge(message: Mapping[str, Any]) -> BucketEvent | None:
    """EventBridge's form, in which keys are as they are."""
    kinds: dict[Any, Literal["created", "removed"]] = {"Object Created": "created", "Object Deleted": "removed"}
    kind = kinds.get(message["detail-type"])
    if kind is None:
        return None
    detail = _part(message, "detail")
    item = _part(detail, "object")
    return _event(
        kind,
        bucket=_text(_part(detail, "bucket"), "name"),
        key=_text(item, "key"),
        at=_text(message, "time"),
        etag=item.get("etag"),
        size=item.get("size"),
        version_id=item.get("version-id"),
        sequencer=item.get("sequencer"),
    )


def _kind(name: str) -> Literal["created", "removed"] | None:
    if name.startswith(_CREATED):
        return "created"
    return "removed" if name.startswith(_REMOVED) else None


def _event(
    kind: Literal["created", "removed"],
    *,
    bucket: str,
    key: str,
    at: str,
    etag: Any,
    size: Any,
    version_id: Any,
    sequencer: Any,
) -> BucketEvent:
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        raise PoisonMessageError(f"{at!r} is no time") from None
    if time.tzinfo is None:
        raise PoisonMessageError(f"{at!r} has no time zone")
    version_id, sequencer = str(version_id or ""), str(sequencer or "")
    if kind == "removed":
        return BucketEvent(kind, bucket, key, time, version_id=version_id, sequencer=sequencer)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise PoisonMessageError(f"the object {key!r} has the size {size!r}")
    if not isinstance(etag, str) or not etag:
        raise PoisonMessageError(f"the object {key!r} has no etag")
    etag = f'"{etag.strip(chr(34))}"'
    return BucketEvent(kind, bucket, key, time, etag, size, version_id, sequencer)


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
