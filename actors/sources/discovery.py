"""Discovery: how a source finds its new files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from actors.settings import require_positive
from state.errors import SettingsError

if TYPE_CHECKING:
    pass
_LONGEST_VISIBILITY_S = 43_200


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Discovery by listing the prefix again and again.

    Args:
        interval_s: seconds from the end of one listing to the start of the next, at least.
        max_requests_per_hour: LIST requests; the interval becomes longer where it would take more.
        modified_after: objects that were written earlier are left out; without a zone it is UTC.
        include_existing: whether objects count that were written before the run that first declared the source.

    What was read once stays, and its changes are noted, whatever is left out later.
    """

    interval_s: float = 10.0
    max_requests_per_hour: int = 3_600
    modified_after: datetime | None = None
    include_existing: bool = True

    def __post_init__(self) -> None:
        require_positive(self, "interval_s", "max_requests_per_hour")
        _require_zone(self)

    @property
    def relist_s(self) -> float:
        """Seconds between two listings, at least."""
        return self.interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """Objects that were written earlier are left out; None if none are.

        Args:
            declared_at: when the source was first declared, if that is known.
        """
        return _not_before(self, declared_at)


@dataclass(frozen=True, kw_only=True)
class Notifications:
    """Discovery by the events that a bucket sends to a queue of SQS, and now and then by a listing.

    The queue belongs to one source of one pipeline.  An event is a hint: the object that it names is looked at, and
    what is there counts.  The listing finds what no event has told of.

    Args:
        queue_url: of the queue, as SQS gives it; it holds no credentials.
        region: of the queue; None takes that of its URL, of the source's storage options or of the environment.
        endpoint: where SQS answers; None takes the host of the queue's URL.
        relist_interval_s: seconds from the end of one listing to the start of the next, at least; less than the queue
            keeps its messages.
        max_requests_per_hour: LIST requests; the interval becomes longer where it would take more.
        visibility_s: a message that was received comes again after so many seconds unless they are extended, which is
            done while its files are worked on: after a crash, events wait for so long.
        pollers: requests that wait for messages, side by side.
        modified_after: objects that were written earlier are left out; without a zone it is UTC.
        include_existing: whether objects count that were written before the run that first declared the source.

    What was read once stays, and its changes are noted, whatever is left out later.
    """

    queue_url: str
    region: str | None = None
    endpoint: str | None = None
    relist_interval_s: float = 86_400.0
    max_requests_per_hour: int = 3_600
    visibility_s: float = 120.0
    pollers: int = 2
    modified_after: datetime | None = None
    include_existing: bool = True

    def __post_init__(self) -> None:
        require_positive(self, "relist_interval_s", "max_requests_per_hour", "visibility_s", "pollers")
        if self.visibility_s > _LONGEST_VISIBILITY_S:
            raise SettingsError(
                f"Notifications(visibility_s={self.visibility_s!r}): SQS keeps a message invisible for "
                f"{_LONGEST_VISIBILITY_S} seconds at most"
            )
        _require_web_url("queue_url", self.queue_url)
        if self.endpoint is not None:
            _require_web_url("endpoint", self.endpoint)
        if urlsplit(self.queue_url).path.strip("/") == "":
            raise SettingsError(
                f"Notifications(queue_url={self.queue_url!r}): the URL names no queue; take what "
                "`aws sqs get-queue-url --queue-name ...` prints"
            )
        if self.queue_url.endswith(".fifo"):
            raise SettingsError(
                f"Notifications(queue_url={self.queue_url!r}): S3 sends no events to FIFO queues, and their "
                "order is of no use here; take a standard one"
            )
        _require_zone(self)

    @property
    def relist_s(self) -> float:
        """Seconds between two listings, at least."""
        return self.relist_interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """Objects that were written earlier are left out; None if none are.

        Args:
            declared_at: when the source was first declared, if that is known.
        """
        return _not_before(self, declared_at)


Discovery = Listing | Notifications


def _require_zone(discovery: Discovery) -> None:
    if discovery.modified_after is not None and discovery.modified_after.tzinfo is None:
        object.__setattr__(discovery, "modified_after", discovery.modified_after.replace(tzinfo=UTC))


def _not_before(discovery: Discovery, declared_at: datetime | None) -> datetime | None:
    limits = [discovery.modified_after, None if discovery.include_existing else declared_at]
    return max((limit for limit in limits if limit is not None), default=None)


def _require_web_url(option: str, url: str) -> None:
    """Refuses what is no plain URL of a web server; a URL with credentials in it is not repeated."""
    try:
        parts = urlsplit(url)
        plain = parts.username is None and not parts.query and not parts.fragment
    except (AttributeError, TypeError, ValueError):
        raise SettingsError(f"Notifications({option}=...): it is no URL") from None
    if not plain:
        raise SettingsError(
            f"Notifications({option}=...): a URL without user, query or fragment is wanted; credentials belong into "
            "storage_options or into the environment"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"Notifications({option}={url!r}): give a URL that begins with https://, as SQS writes it")
