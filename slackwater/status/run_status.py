"""The status and the report of a run: for its own process, and in `owner.json` for all readers of the root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from actors.protocol.counters import ListingCounts, MaterializerCounts, MessageCounts, SourceProgress, ViewCounts
from actors.protocol.run_state import CommittedEpoch, EpochPhase
from actors.telemetry.counted import TerminalColumn, counted

if TYPE_CHECKING:
    from state.ownership.owner import Owner

INCOMPLETE = 3
"""The exit code of a command that has done its work, and whose published table lacks rows or whose source is paused."""

FlowStep: TypeAlias = Literal["list", "dispatcher", "fetch", "merger", "materializer", "views"]


@dataclass(frozen=True)
class MessageStatus(MessageCounts):
    """The messages of the event queue of a source, since the start of the run.

    Args:
        queue: the URL of the queue.
        in_flight: messages that are received and not finished.
        oldest_s: age of the oldest message in flight, in seconds; 0 without one.
        received, redelivered, poison, deleted: see `MessageCounts`.
    """

    queue: str
    in_flight: int = counted(
        "messages",
        "Messages that are being worked on.",
        kind="gauge",
        metric=("messages_in_flight", "source"),
        log="messages_in_flight",
    )
    oldest_s: float = 0.0


def _rate(unit: str, title: str, position: int, width: int, rank: int, page: str = "") -> Any:
    column = TerminalColumn(title, position, width, rank)
    return counted(unit, f"{title}, over the last seconds.", default=0.0, kind="gauge", column=column, page=page)


@dataclass(frozen=True)
class SourceStatus(SourceProgress, ListingCounts):
    """Progress of one source.

    Files and rows are the counts of the root, plus the uncommitted work of this run.  `requests` are the LIST
    and GET requests of this run.

    Args:
        before: the counts that the run found at its start.
        listed: files in the last listing.
        listings: complete listings.
        requests_per_hour: LIST requests of the last hour.
        listing_period_s: seconds from the beginning of one listing to the beginning of the next.
        stretched_by: the reason why this period is longer than the source declares: `max_requests_per_hour` or
            `listing takes longer`; else None.
        oldest_unfinished_s: seconds since the oldest unfinished file was listed; 0 if all files are finished.
        oldest_unfinished_epochs: epochs that this attempt has committed since then.
        listed_at: end of the last listing; None before the first.
        found: new and changed files in it; with a queue, those without an event.
        paused_removals: missing files whose rows stay in the views until they are back or `Run.allow_removals` permits
            their removal.
        paused: the reason why no file of the source is read, with the next step; None while it is read.
        filled_columns: the columns that a file lacked since the first run, and that are null in the rows of such files.
        watermark: the event time before which no row is expected; None without one.
        watermark_lag_s: the clock's seconds ahead of it; None without one.
        messages: the event queue; None without a queue, and before its first request.
        files_per_s: finished files each second, over the last seconds.
        rows_per_s: emitted rows each second.
        bytes_per_s: bytes read each second.
        requests_per_s: requests each second.
        freshness_s: see `CommittedEpoch`, of the last epoch with rows of the source; None before the first.
    """

    before: SourceProgress = field(default_factory=SourceProgress)
    requests_per_hour: int = 0
    listing_period_s: float = 0.0
    oldest_unfinished_s: float = counted(
        "seconds",
        "Time since the oldest unfinished file was listed.",
        default=0.0,
        kind="gauge",
        metric=("oldest_unfinished_seconds", "source"),
    )
    oldest_unfinished_epochs: int = 0
    filled_columns: tuple[str, ...] = counted(
        "columns",
        "Columns that a file lacked, and that are null in its rows.",
        default=(),
        kind="gauge",
        metric=("filled_columns", "source"),
    )
    watermark: datetime | None = counted(
        "seconds since 1970",
        "Event time before which no row of the source is expected.",
        default=None,
        kind="gauge",
        metric=("watermark_timestamp_seconds", "source"),
    )
    watermark_lag_s: float | None = None
    messages: MessageStatus | None = None
    files_per_s: float = _rate("files/s", "files/s", 120, 7, 11, page="files/s")
    rows_per_s: float = _rate("rows/s", "rows/s", 70, 7, 2, page="rows/s")
    bytes_per_s: float = _rate("bytes/s", "bytes/s", 90, 8, 5, page="read/s")
    requests_per_s: float = _rate("requests/s", "requests/s", 110, 10, 12)
    freshness_s: float | None = counted(
        "seconds",
        "Age of the youngest file of a source at the commit of the epoch that finished it.",
        default=None,
        kind="gauge",
        column=TerminalColumn("freshness", 130, 9, 4),
        page="fresh",
    )


@dataclass(frozen=True)
class BackfillStatus:
    """Progress of a backfill: a view that does not yet have the rows from before its declaration.

    Args:
        fraction: the part of these rows that it has, from 0 to 1.
        missing: files that cannot be read again, if they keep the view from being shown.
    """

    fraction: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewStatus(ViewCounts):
    """A view that is declared.

    Args:
        view_class: `append`, `aggregate` or `full`.
        rows: its number of rows; None until this attempt has opened it.
        behind_s: its delay behind the latest rows of its sources, in seconds: only a `full` view has one.
        open_groups: for a view with `emit="on_close"`: the groups whose window is open, which it does not show.
        late_rows: for such a view, or one with `expire="by_watermark"`: the rows that came too late for it, since it
            was created.
        violations: expectation → the rows of the view that violate it.
        held_since: the epoch since which the view is held back; None if it is not.
        stale_epoch: for a view that has failed: the last epoch whose rows it has; None if it has no rows.
        error: for a view that has failed: what Spark said; None for one that is maintained.
    """

    stale_epoch: int | None = None
    error: str | None = None
    violations: Mapping[str, int] = field(default_factory=dict)
    held_since: int | None = None


@dataclass(frozen=True)
class PublicationStatus:
    """A table that follows a view during the run.

    Args:
        view: the name of the view.
        table: the format and place of the table.
        epoch: the last epoch whose rows the table has; None if it has none, or that is not known yet.
        behind_epochs: committed epochs after it.
        behind_s: seconds since the first of them was committed; 0 without one.
        commits: commits to the table, since the start of the run or of the process that publishes.
        rows: rows that they have written.
        failures: failed tries in a row.  The pause between two grows to a minute, or to ten minutes if `state` is
            `failed`.
        error: the reason of the last one; None if the last try succeeded.
        state: `current`; `behind`: an epoch is not published yet, or the view is in backfill; `held`: the gate of the
            root holds later epochs back; `retrying`: the last try failed, for a reason that may pass by itself;
            `failed`: for another reason.
        waits_for: the condition that the table waits for; empty if it waits only for its next commit.
    """

    view: str
    table: str
    epoch: int | None = None
    behind_epochs: int = counted(
        "epochs",
        "Committed epochs that a published table lacks.",
        kind="gauge",
        metric=("publication_lag_epochs", "view", "table"),
    )
    behind_s: float = counted(
        "seconds",
        "Time since the commit of the first of them.",
        default=0.0,
        kind="gauge",
        metric=("publication_lag_seconds", "view", "table"),
    )
    commits: int = 0
    rows: int = 0
    failures: int = 0
    error: str | None = counted(
        "0 or 1",
        "1 for a publication whose last try failed, 0 for the others.",
        default=None,
        kind="gauge",
        metric=("publication_failed", "view", "table"),
    )
    state: Literal["current", "behind", "held", "retrying", "failed"] = "current"
    waits_for: str = ""

    @property
    def is_incomplete(self) -> bool:
        """True if the table lacks rows that it should have."""
        return self.state not in ("current", "held")


@dataclass(frozen=True)
class AfterCommitStatus:
    """The actions on the files of a source after the commit.

    Args:
        source: the name of the source.
        action: `delete`, `move to URL`, or `tag {...}`.
        handled: files that this run has deleted, moved or tagged.
        left: files that it has left alone, since they have changed after they were read.
        failed: files that the store has refused, and that are tried again.
        waits_for: why files that are old enough are left for now; empty if none are.
        error: the reason of the last failure; None without one.
    """

    source: str
    action: str
    handled: int = counted(
        "files", "Files deleted, moved or tagged after the commit.", metric=("handled_files", "source")
    )
    left: int = 0
    failed: int = counted(
        "files",
        "Files that the store refuses to delete, move or tag.",
        kind="gauge",
        metric=("handled_files_failed", "source"),
    )
    waits_for: str = ""
    error: str | None = None


@dataclass(frozen=True)
class RowsInMemory:
    """The rows of an internal view that are in the memory of a run, or that it reads into it.

    Args:
        rows: their number.
        bytes: their size, with the orders by which they are found; estimated until they are read.
    """

    rows: int
    bytes: int


@dataclass(frozen=True)
class EpochStatus:
    """An epoch between its barrier and its commit: its phase, and the seconds since the phase began."""

    epoch: int
    phase: EpochPhase
    seconds: float


@dataclass(frozen=True)
class EdgeStatus:
    """An edge of the flow, for all actors of a kind together.

    Args:
        sender, receiver: the steps at its ends.
        unit: the unit of the numbers.
        per_s: units each second, over the last seconds.
        waiting: units on the way, or waiting at the receiver.
        limit: upper limit of `waiting`, above which the sender waits; None if the edge has no limit of its own.
    """

    sender: FlowStep
    receiver: FlowStep
    unit: Literal["files", "bytes", "epochs", "rows"]
    per_s: float
    waiting: int
    limit: int | None = None

    @property
    def is_full(self) -> bool:
        """True if the sender waits for the receiver."""
        return self.limit is not None and self.waiting >= self.limit


@dataclass(frozen=True)
class StartupStep:
    """A step of the start of a run; several run at the same time.

    Args:
        name: `Ray`, `Java`, `coordinator and actors`, `Spark's master on Ray`, `Spark's session`, `executor`, `first
            job`; and up to the first commit of files `first listing`, `first files`, `views of the first epoch` or
            `first commit`.
        seconds: its duration so far.
        done: it is complete.
    """

    name: str
    seconds: float
    done: bool


@dataclass(frozen=True, kw_only=True)
class MaintainedStatus(MaterializerCounts):
    """The views, by the materializer of one attempt.

    Args:
        views: the maintained views by name.
        backfills: the views by name that are not complete, and not shown yet.
        in_memory: the rows of internal views in memory, by the path of the dataset below the root.
        rebuilt_indexes, planned_queries: see `MaterializerCounts`.
    """

    views: Mapping[str, ViewStatus] = field(default_factory=dict)
    backfills: Mapping[str, BackfillStatus] = field(default_factory=dict)
    in_memory: Mapping[str, RowsInMemory] = field(default_factory=dict)


@dataclass(frozen=True)
class RunStatus(MaintainedStatus):
    """The status of a run.

    Args:
        phase: `starting`, `running`, `paused`, `recovering`, `stopping`, `stopped` or `failed`.
        epoch: the last committed epoch; 0 before the first.
        epochs: number of epochs that this run has committed.
        sources: the sources by name.
        views: the maintained views by name.
        backfills: the views by name that are not complete, and not shown yet.
        in_memory: the rows of internal views in memory, by the path of the dataset below the root.
        rebuilt_indexes: view, or rows of a source, → the number of its indexes that differed from the rows in this
            attempt, and were rebuilt or dropped.
        planned_queries: queries that Spark analysed or planned during the epochs of this attempt.
        spark: the state of the Spark application; empty if no run reports it.
        message: the present waiting or recovery, in words; empty without one.
        caught_up: every object of a listing that began after the start is finished and committed.
        recoveries: failures that the run has survived.
        fetchers: number of fetch actors.
        scaling: the last change of this number by the backlog, with its reason; empty without one.
        in_flight: the epochs between barrier and commit, oldest first.
        recent: the last committed epochs, oldest first.
        edges: the edges of the flow, from the buckets to the views.
        seconds: seconds since the start of the run.
        startup: the steps of the start so far; a new Spark application repeats its steps.
        publications: the tables that follow views during the run.
        after_commit: the actions on the files of sources after the commit.
    """

    phase: str = "starting"
    epoch: int = 0
    epochs: int = counted("epochs", "Epochs that were committed.", metric=("epochs",))
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    spark: Literal["starting", "ready", ""] = "starting"
    message: str = ""
    caught_up: bool = False
    recoveries: int = counted("failures", "Failures that the run has survived.", metric=("recoveries",))
    fetchers: int = counted("actors", "Fetch actors that share the work.", kind="gauge", metric=("fetch_actors",))
    scaling: str = ""
    in_flight: tuple[EpochStatus, ...] = ()
    recent: tuple[CommittedEpoch, ...] = ()
    edges: tuple[EdgeStatus, ...] = ()
    seconds: float = 0.0
    startup: tuple[StartupStep, ...] = ()
    publications: tuple[PublicationStatus, ...] = ()
    after_commit: tuple[AfterCommitStatus, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The status as values of JSON, with times as ISO text."""
        document: dict[str, Any] = _plain(asdict(self))
        return document

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> RunStatus | None:
        """Reads a document of `to_json`, of this version or another; None if it is not valid here."""
        from pydantic import TypeAdapter, ValidationError  # takes 0.1 s to import

        try:
            return TypeAdapter(cls).validate_python(document)
        except ValidationError:
            return None

    @classmethod
    def of_owner(cls, owner: Owner | None) -> RunStatus | None:
        """The status that the process on a root has written last; None without one that this version can read."""
        return None if owner is None or owner.status is None else cls.of_json(owner.status)


@dataclass(frozen=True)
class RunReport:
    """The report of a run.

    `files`, `rows` and `bytes` count committed epochs; `notes` are warnings in words; `publications` are the published
    tables as of the end of the run, and `paused_sources` the sources that were not read then, with the reason.
    """

    epochs: int
    files: int
    rows: int
    bytes: int
    requests: int
    seconds: float
    quarantined: int
    recoveries: int = 0
    notes: tuple[str, ...] = ()
    publications: tuple[PublicationStatus, ...] = ()
    paused_sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed_publications(self) -> tuple[PublicationStatus, ...]:
        """The published tables that are behind or have failed."""
        return tuple(each for each in self.publications if each.is_incomplete)

    @property
    def exit_code(self) -> int:
        """The exit code of `slackwater run` after a run without an error: 3 if a published table is behind or has
        failed, or a source is paused, else 0.
        """
        return INCOMPLETE if self.failed_publications or self.paused_sources else 0


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value
