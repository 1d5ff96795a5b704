"""What a run says of itself: to its own process, and in `owner.json` to everybody who can read the root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from actors.protocol.reports import SourceProgress
from actors.protocol.run_state import CommittedEpoch


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
        files_per_s: finished each second, over the last seconds.
        rows_per_s: emitted, likewise.
        bytes_per_s: read.
        requests_per_s: made.
        freshness_s: see `CommittedEpoch`, of the last epoch that tells it; None if none has.
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
    files_per_s: float = 0.0
    rows_per_s: float = 0.0
    bytes_per_s: float = 0.0
    requests_per_s: float = 0.0
    freshness_s: float | None = None


@dataclass(frozen=True)
class BackfillStatus:
    """A view that lacks rows which were ingested before it was declared.

    Args:
        fraction: how many of them it has, from 0 to 1.
        missing: the files that cannot be read again, when it cannot be shown because of them.
    """

    fraction: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewStatus:
    """A view that is maintained.

    Args:
        view_class: `append`, `aggregate` or `full`.
        rows: how many it has; None until this attempt has opened it.
        behind_s: how much older than the latest rows those are that it shows: only a `full` view lags.
    """

    view_class: str
    rows: int | None = None
    behind_s: float = 0.0


@dataclass(frozen=True)
class EpochStatus:
    """An epoch between its barrier and its commit, and for how many seconds it has been in its phase."""

    epoch: int
    phase: str
    seconds: float


@dataclass(frozen=True)
class EdgeStatus:
    """An edge of the flow, all actors of a kind together.

    Args:
        sender, receiver: `list`, `dispatcher`, `fetch`, `merger`, `materializer` or `views`.
        unit: what passes: `files`, `bytes`, `epochs` or `rows`.
        per_s: how much of it in the last seconds.
        waiting: how much of it is on its way, or waits at the receiver.
        limit: how much may; beyond it the sender waits.  None: the sender waits for something else.
    """

    sender: str
    receiver: str
    unit: str
    per_s: float
    waiting: int
    limit: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether the sender waits for the receiver."""
        return self.limit is not None and self.waiting >= self.limit


@dataclass(frozen=True)
class StartupStep:
    """A step of the start of a run; several are taken side by side.

    Args:
        name: what it waits for: `Ray`, `Java`, `coordinator and actors`, `Spark's master on Ray`, `Spark's session`,
            `executor`, `first job`.
        seconds: how long it took, or has been taking.
        done: whether it is over.
    """

    name: str
    seconds: float
    done: bool


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Args:
        phase: `starting`, `running`, `paused`, `recovering`, `stopping`, `stopped` or `failed`.
        epoch: the last committed one, 0 before the first.
        epochs: committed by this run.
        sources: by name.
        views: by name: those that are being maintained.
        backfills: name → how far it is, of the views that catch up and are not shown yet.
        spark: `starting` or `ready`.
        message: what the run waits for or recovers from, if anything.
        caught_up: every object of a listing that began after the start is finished and committed.
        recoveries: failures that the run has survived.
        fetchers: how many fetch actors there are.
        scaling: the last decision about that by the workload, with its reason; empty if there was none.
        in_flight: the epochs between barrier and commit, the oldest first.
        recent: the last epochs that were committed, the oldest first.
        edges: how much passes between the actors, and where it waits.
        seconds: since the start of the run.
        startup: the steps of the start so far; a Spark application that is replaced takes its own again.
    """

    phase: str = "starting"
    epoch: int = 0
    epochs: int = 0
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    views: Mapping[str, ViewStatus] = field(default_factory=dict)
    backfills: Mapping[str, BackfillStatus] = field(default_factory=dict)
    spark: str = "starting"
    message: str = ""
    caught_up: bool = False
    recoveries: int = 0
    fetchers: int = 0
    scaling: str = ""
    in_flight: tuple[EpochStatus, ...] = ()
    recent: tuple[CommittedEpoch, ...] = ()
    edges: tuple[EdgeStatus, ...] = ()
    seconds: float = 0.0
    startup: tuple[StartupStep, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as what `json.dumps` takes, with times as ISO text."""
        document: dict[str, Any] = _plain(asdict(self))
        return document

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> RunStatus | None:
        """What `to_json` has made, by this version or another; None if that is not understood."""
        from pydantic import TypeAdapter, ValidationError  # 0.1 s, for those who read only

        try:
            return TypeAdapter(cls).validate_python(document)
        except ValidationError:
            return None


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


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value
