"""What a run says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from actors.reports import SourceProgress


@dataclass(frozen=True)
class MessageStatus:
    """The messages of a source's queue of events, over the life of the run.

    Args:
        queue: its URL.
        in_flight: messages that are being worked on.
        oldest_s: for how long the oldest of them has been in the queue; 0 if there is none.
        received: messages; what comes again after a failure of the run counts again.
        redelivered: deliveries of messages that had been received before, by whomever.
        poison: messages that say nothing of the source's bucket; they are in quarantine.
        deleted: messages that are done with.
    """

    queue: str
    in_flight: int = 0
    oldest_s: float = 0.0
    received: int = 0
    redelivered: int = 0
    poison: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class SourceStatus(SourceProgress):
    """One source, all fetch actors together, with what its list actor says; `requests` are LIST and GET requests.

    Args:
        listed: files that the last listing found.
        listings: complete listings.
        requests_per_hour: LIST requests of the last hour.
        listing_period_s: seconds from the beginning of one listing to that of the next.
        stretched_by: what makes that longer than the source asks for: `max_requests_per_hour`, `listing takes longer`,
            or None.
        oldest_unfinished_s: for how long the oldest file that was listed has not been finished; 0 if all are.
        oldest_unfinished_epochs: and how many epochs this attempt has committed meanwhile.
        listed_at: when the last listing ended; None if none has.
        found: new and changed files that it found; with a queue, those of which no event had told.
        messages: of the queue of events; None if there is none, or before it was asked.
    """

    listed: int = 0
    listings: int = 0
    requests_per_hour: int = 0
    listing_period_s: float = 0.0
    stretched_by: str | None = None
    oldest_unfinished_s: float = 0.0
    oldest_unfinished_epochs: int = 0
    listed_at: datetime | None = None
    found: int = 0
    messages: MessageStatus | None = None


@dataclass(frozen=True)
class LateView:
    """A view that lacks rows which were ingested before it was declared.

    Args:
        fraction: how many of them it has, from 0 to 1.
        missing: the files that cannot be read again, when it cannot be shown because of them.
    """

    fraction: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Args:
        phase: `starting`, `running`, `paused`, `recovering`, `stopping`, `stopped` or `failed`.
        epoch: the last committed one, 0 before the first.
        epochs: committed by this run.
        sources: by name.
        views: name → class, of the views that are being maintained.
        late_views: name → how far it is, of the views that catch up and are not shown yet.
        spark: `starting` or `ready`.
        message: what the run waits for or recovers from, if anything.
        caught_up: every object of a listing that began after the start is finished and committed.
        recoveries: failures that the run has survived.
        fetchers: how many fetch actors there are.
        scaling: the last decision about that by the workload, with its reason; empty if there was none.
    """

    phase: str = "starting"
    epoch: int = 0
    epochs: int = 0
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    late_views: Mapping[str, LateView] = field(default_factory=dict)
    spark: str = "starting"
    message: str = ""
    caught_up: bool = False
    recoveries: int = 0
    fetchers: int = 0
    scaling: str = ""


@dataclass(frozen=True)
class RunReport:
    """What a run did.  `files`, `rows` and `bytes` are those of committed epochs; `notes` say what is odd."""

    epochs: int
    files: int
    rows: int
    bytes: int
    requests: int
    seconds: float
    quarantined: int
    recoveries: int = 0
    notes: tuple[str, ...] = ()
