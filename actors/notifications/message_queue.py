"""Queue of SQS: receives messages, deletes them, and keeps them invisible to other readers meanwhile."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.notifications.queue_errors import NotOfferedError, Result, ask_queue, code_of, of_code
from actors.sources.discovery import Notifications
from state.errors import AccessDeniedError, SettingsError
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, endpoint_of

OWNER_TAG = "slackwater-root"
IDENTITY_TAG = "slackwater-root-identity"
BATCH = 10
LONGEST_POLL_S = 20
_ATTEMPTS = 3
_SPARE_CONNECTIONS = 4
# With one of these codes a message can no longer be deleted or extended by its receipt.  SQS answers
# `InvalidParameterValue` for a receipt that it does not know, and for a message that was invisible for twelve hours.
_STALE = ("InvalidParameterValue", "MessageNotInflight", "ReceiptHandleIsInvalid")
_REGION_IN_HOST = re.compile(r"(?:^|\.)sqs(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.")
_AWS_DOMAINS = ("amazonaws.com", "amazonaws.com.cn", "api.aws")
_AWS = "AWS"
_TAG_TEXT = re.compile(r"[A-Za-z0-9 _.:/=+@-]{1,256}")


@dataclass(frozen=True)
class _Owner:
    """The root that reads a queue, as its tags name it.

    Args:
        root: the URL of the root, as a tag can hold it.
        identity: the identity of the root; empty if its first start has not ended yet.
    """

    root: str
    identity: str

    @property
    def tags(self) -> dict[str, str]:
        # An empty identity replaces the identity of an earlier reader, which SQS would keep beside the new root.
        return {OWNER_TAG: self.root, IDENTITY_TAG: self.identity}

    def is_same(self, other: _Owner) -> bool:
        """True for one root: two machines can have roots with one URL."""
        is_identical = not self.identity or not other.identity or self.identity == other.identity
        return self.root == other.root and is_identical

    def words(self, shows_identity: bool) -> str:
        """The root in a message."""
        return f"{self.root} (identity {self.identity})" if shows_identity else self.root


class MessageQueue:
    """One queue, by one client of boto3; it connects at the first call.  Safe to call from many threads.

    The credentials are those of the source's storage options if the bucket is on the same provider as the queue: both
    on AWS, or both on one host.  Otherwise boto3 finds them, so that no other provider sees the bucket's key.

    Args:
        discovery: the URL of the queue, and the time for which its messages stay invisible.
        location: the location of the source that reads it.
    """

    def __init__(self, discovery: Notifications, location: Location) -> None:
        self._discovery, self._location = discovery, location
        self._url = discovery.queue_url
        self._connecting = threading.Lock()
        self._connected: Any = None

    def __repr__(self) -> str:
        return f"MessageQueue({self._url!r})"

    def receive(self, most: int, wait_s: float) -> list[QueueMessage]:
        """Receives the next messages, in any order; none if none came in time.  One request.

        Args:
            most: the most messages; one request brings at most ten.
            wait_s: seconds to wait for the first message, up to 20; rounded up to a whole second.

        Raises:
            QueueNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ask_queue`.
        """
        if most <= 0:
            return []
        answer = self._ask(
            "sqs:ReceiveMessage",
            lambda client: client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(most, BATCH),
                WaitTimeSeconds=min(math.ceil(wait_s), LONGEST_POLL_S),
                VisibilityTimeout=self._visibility_s,
                MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            ),
        )
        return [_message(each) for each in answer.get("Messages", ())]

    def delete(self, messages: Sequence[QueueMessage]) -> int:
        """Deletes messages that are done with, ten with a request; returns the number of deleted messages.

        A message whose receipt is stale stays: it was received again since, or is gone.  If it comes again, the paths
        that it names are known.  After an error the same call may be repeated.

        Raises:
            QueueNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ask_queue`.
        """
        deleted = 0
        for entries in _batches(messages):
            deleted += self._change(
                "sqs:DeleteMessage",
                entries,
                lambda client, entries: client.delete_message_batch(QueueUrl=self._url, Entries=entries),
            )
        return deleted

    def extend(self, messages: Sequence[QueueMessage]) -> int:
        """Keeps messages invisible for `visibility_s` from now, ten with a request; returns their number.

        A message whose receipt is stale stays as it is, as does one that was invisible for twelve hours: it comes
        again, and is known.  After an error the same call may be repeated.

        Raises:
            QueueNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ask_queue`.
        """
        return self._hide(messages, self._visibility_s)

    def release(self, messages: Sequence[QueueMessage]) -> int:
        """Makes messages visible again, so that they can be received at once; otherwise as `extend`."""
        return self._hide(messages, 0)

    def claim(self, root_url: str, identity: str = "") -> str | None:
        """Writes the root that reads the queue into tags of the queue, so that no second root reads it.

        Two roots that claim it at the same moment may both succeed; the one that was overwritten is refused when it
        claims the queue again.

        Args:
            root_url: the URL of the pipeline's root, without credentials.
            identity: the identity of the root; empty before its first start.

        Returns:
            A warning if the tags of the queue may not be read or written; None otherwise.

        Raises:
            SettingsError: another root reads the queue.
            QueueNotFoundError, AccessDeniedError, StorageUnavailableError: see `ask_queue`.
        """
        ours = _Owner(_tag_value(root_url), identity)
        try:
            owner = self._owner()
            if owner is None or (identity and owner == replace(ours, identity="")):
                self._ask("sqs:TagQueue", lambda client: client.tag_queue(QueueUrl=self._url, Tags=ours.tags))
                # Of two roots that both found no tag, the overwritten one mostly sees that here.
                owner = self._owner()
        except (AccessDeniedError, NotOfferedError) as error:
            return (
                f"{error}; without the tag {OWNER_TAG} a second pipeline on this queue stays unnoticed, and each of "
                "the two misses the events that the other receives"
            )
        if owner is None or owner.is_same(ours):
            return None
        shows_identity = owner.root == ours.root
        raise SettingsError(
            f"{self._url} is read by the pipeline at {owner.words(shows_identity)}, and this one is at "
            f"{ours.words(shows_identity)}: each would get only a part of the events. Give each pipeline a queue of "
            "its own, and let SNS send the events to both; or, if the other pipeline was removed for good: "
            f"aws sqs untag-queue --queue-url {self._url} --tag-keys {OWNER_TAG} {IDENTITY_TAG}"
        )

    def depth(self) -> QueueDepth:
        """The number of messages in the queue, as SQS estimates it.

        Raises:
            QueueNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ask_queue`.
        """
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self._ask(
            "sqs:GetQueueAttributes",
            lambda client: client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names),
        )
        visible, in_flight = (int(answer["Attributes"][name]) for name in names)
        return QueueDepth(visible, in_flight)

    @property
    def _visibility_s(self) -> int:
        return math.ceil(self._discovery.visibility_s)

    def _owner(self) -> _Owner | None:
        answer = self._ask("sqs:ListQueueTags", lambda client: client.list_queue_tags(QueueUrl=self._url))
        tags: Mapping[str, str] = answer.get("Tags", {})
        return _Owner(tags[OWNER_TAG], tags.get(IDENTITY_TAG, "")) if OWNER_TAG in tags else None

    def _hide(self, messages: Sequence[QueueMessage], seconds: int) -> int:
        hidden = 0
        for entries in _batches(messages):
            hidden += self._change(
                "sqs:ChangeMessageVisibility",
                [{**each, "VisibilityTimeout": seconds} for each in entries],
                lambda client, entries: client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries),
            )
        return hidden

    def _change(self, permission: str, entries: list[dict[str, Any]], call: Callable[[Any, Any], Any]) -> int:
        answer = self._ask(permission, lambda client: call(client, entries))
        for failed in answer.get("Failed", ()):
            code = code_of(failed.get("Code"))
            if code not in _STALE:
                raise of_code(code, self._url, permission)
        return len(answer.get("Successful", ()))

    def _ask(self, permission: str, call: Callable[[Any], Result]) -> Result:
        return ask_queue(lambda: call(self._client()), self._url, permission)

    def _client(self) -> Any:
        with self._connecting:
            if self._connected is None:
                self._connected = _client(self._discovery, self._location)
            return self._connected


def _client(discovery: Notifications, location: Location) -> Any:
    import boto3
    from botocore.config import Config

    keys = _credentials(discovery, location)
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=LONGEST_POLL_S + READ_TIMEOUT_S,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        max_pool_connections=discovery.pollers + _SPARE_CONNECTIONS,
    )
    # A new session: boto3's default session may not be used from several threads.
    return boto3.Session().client(
        "sqs",
        endpoint_url=_endpoint(discovery),
        region_name=_region(discovery, location),
        aws_access_key_id=keys.get("access_key_id"),
        aws_secret_access_key=keys.get("secret_access_key"),
        aws_session_token=keys.get("session_token") or keys.get("token"),
        config=config,
    )


def _endpoint(discovery: Notifications) -> str:
    if discovery.endpoint is not None:
        return discovery.endpoint
    parts = urlsplit(discovery.queue_url)
    return f"{parts.scheme}://{parts.netloc}"


def _region(discovery: Notifications, location: Location) -> str | None:
    in_host = _REGION_IN_HOST.search(urlsplit(discovery.queue_url).hostname or "")
    return discovery.region or (in_host and in_host[1]) or _options(location).get("region")


def _credentials(discovery: Notifications, location: Location) -> Mapping[str, str]:
    """The source's storage options if they are for the provider of the queue; empty otherwise."""
    options = _options(location)
    if "access_key_id" not in options or "secret_access_key" not in options:
        return {}
    return options if _provider(_endpoint(discovery)) == _provider(endpoint_of(location)) else {}


def _provider(endpoint: str) -> str:
    host = urlsplit(endpoint).hostname or ""
    is_aws = not host or any(host == domain or host.endswith(f".{domain}") for domain in _AWS_DOMAINS)
    return _AWS if is_aws else host


def _options(location: Location) -> Mapping[str, str]:
    return {name.removeprefix("aws_"): value for name, value in location.storage_options.items()}


def _message(received: Mapping[str, Any]) -> QueueMessage:
    attributes = received.get("Attributes", {})
    return QueueMessage(
        message_id=received["MessageId"],
        receipt=received["ReceiptHandle"],
        body=received["Body"],
        sent_s=int(attributes["SentTimestamp"]) / 1000,
        deliveries=int(attributes["ApproximateReceiveCount"]),
    )


def _batches(messages: Sequence[QueueMessage]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(messages), BATCH):
        batch = messages[start : start + BATCH]
        yield [{"Id": str(number), "ReceiptHandle": each.receipt} for number, each in enumerate(batch)]


def _tag_value(root_url: str) -> str:
    """The URL; or, where a tag cannot hold it, its readable characters and a digest of all of it."""
    if _TAG_TEXT.fullmatch(root_url):
        return root_url
    digest = blake2b(root_url.encode(), digest_size=16).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9 _.:/=+@-]', '_', root_url)[:200]} {digest}"
