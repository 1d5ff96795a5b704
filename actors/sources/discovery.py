"""Discovery of new files: by listings, or by events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from actors.settings import require_positive
from state.errors import SettingsError
from state.vnode import VNODES

_LONGEST_VISIBILITY_S = 43_200


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Discovery by repeated listings of the prefix.

    A file that was read once stays in the views, and its changes are noted, even if later options leave it out.

    Args:
        interval_s: the least time from the end of one listing to the start of the next, in seconds.  A listing for
            `Run.wait` begins at once.
        max_requests_per_hour: the limit of LIST requests; the interval grows to stay below it.
        modified_after: the earliest modification time of an object that is read; a time without a zone is UTC.
        include_existing: True to read also objects that were written before the first run with this source.
        name_actors: the number of actors that keep the names that were read, each a share of them, at most 256; with 1
            the list actor keeps them.  Each run may have another number.
    """

    interval_s: float = 10.0
    max_requests_per_hour: int = 3_600
    modified_after: datetime | None = None
    include_existing: bool = True
    name_actors: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "interval_s", "max_requests_per_hour")
        _require_zone(self)
        _require_name_actors(self)

    @property
    def relist_s(self) -> float:
        """The least time between two listings, in seconds."""
        return self.interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """The earliest modification time of an object that is read; None without a limit.

        Args:
            declared_at: the time of the first run with this source; None if it is not known.
        """
        return _not_before(self, declared_at)


@dataclass(frozen=True, kw_only=True)
class Notifications:
    """Discovery by the events that a bucket sends to an SQS queue, and by an occasional listing.

    The queue belongs to one source of one pipeline.  An event is a hint: one look at the object decides.  The listing
    finds objects without an event.  A file that was read once stays in the views, and its changes are noted, even if
    later options leave it out.

    Args:
        queue_url: the URL of the queue, as SQS prints it, without credentials.
        region: the region of the queue; None takes it from the URL, the storage options or the environment.
        endpoint: the URL of the SQS server; None takes the host of the queue's URL.
        relist_interval_s: the least time from the end of one listing to the start of the next, in seconds; shorter
            than the retention of the queue.
        max_requests_per_hour: the limit of LIST requests; the interval grows to stay below it.
        visibility_s: the time in seconds after which SQS delivers a received message again.  It is extended while the
            message's files are worked on; after a crash, events wait for this long.
        pollers: the number of concurrent requests that wait for messages.
        modified_after: the earliest modification time of an object that is read; a time without a zone is UTC.
        include_existing: True to read also objects that were written before the first run with this source.
        name_actors: the number of actors that keep the names that were read, each a share of them, at most 256; with 1
            the list actor keeps them.  Each run may have another number.
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
    name_actors: int = 1

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
                f"Notifications(queue_url={self.queue_url!r}): the URL does not name a queue; give the URL that "
                "`aws sqs get-queue-url --queue-name ...` prints"
            )
        if self.queue_url.endswith(".fifo"):
            raise SettingsError(
                f"Notifications(queue_url={self.queue_url!r}): S3 sends no events to FIFO queues, and their "
                "order is not used here; create a standard queue"
            )
        _require_zone(self)
        _require_name_actors(self)

    @property
    def relist_s(self) -> float:
        """The least time between two listings, in seconds."""
        return self.relist_interval_s

    def not_before(self, declared_at: datetime | None) -> datetime | None:
        """The earliest modification time of an object that is read; None without a limit.

        Args:
            declared_at: the time of the first run with this source; None if it is not known.
        """
        return _not_before(self, declared_at)


Discovery = Listing | Notifications


def _require_zone(discovery: Discovery) -> None:
    if discovery.modified_after is not None and discovery.modified_after.tzinfo is None:
        object.__setattr__(discovery, "modified_after", discovery.modified_after.replace(tzinfo=UTC))


def _require_name_actors(discovery: Discovery) -> None:
    count = discovery.name_actors
    if type(count) is not int or not 1 <= count <= VNODES:
        raise SettingsError(
            f"{type(discovery).__name__}(name_actors={count!r}): give a whole number from 1 to {VNODES}"
        )


def _not_before(discovery: Discovery, declared_at: datetime | None) -> datetime | None:
    limits = [discovery.modified_after, None if discovery.include_existing else declared_at]
    return max((limit for limit in limits if limit is not None), default=None)


def _require_web_url(option: str, url: str) -> None:
    """Refuses all but a plain URL of a web server; the message does not repeat credentials."""
    try:
        parts = urlsplit(url)
        plain = parts.username is None and not parts.query and not parts.fragment
    except (AttributeError, TypeError, ValueError):
        raise SettingsError(f"Notifications({option}=...): it is not a valid URL") from None
    if not plain:
        raise SettingsError(
            f"Notifications({option}=...): give a URL without user, query or fragment; credentials belong in "
            "storage_options or in the environment"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"Notifications({option}={url!r}): give a URL that begins with https://, as SQS prints it")
