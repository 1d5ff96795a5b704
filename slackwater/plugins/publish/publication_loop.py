"""Loop of one publication of a run: writes each reported epoch to the table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from actors.telemetry.logging import redact
from actors.telemetry.text import first_line
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import Publication, PublishedEpoch, failed_view
from slackwater.plugins.publish.publication_access import PublicationAccess, PublishedRoot, RealPublication
from slackwater.plugins.publish.published_table import OvertakenError
from slackwater.plugins.publish.publisher import epoch_of
from state.clock import Clock
from state.errors import CommitUnknownError, EpochNotFoundError, SlackwaterError, StorageUnavailableError
from state.location import Location
from state.tables.records import ViewVersion

_FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
_LONGEST_PAUSE_OF_FAILED_S = 600.0
# Errors that pass by themselves: of the store, of another writer, and of an epoch that expires while it is read.
_PASSING = (StorageUnavailableError, OvertakenError, CommitUnknownError, EpochNotFoundError, OSError)
_UPKEEP_EVERY_S = 600.0
_NOT_WATCHED = PlaceWatch((), ())
# Epochs without changes of the view make no commit, but the table must not name an old epoch for ever.
_NAMED_EVERY_S = 600.0


@dataclass(frozen=True)
class PublicationReport:
    """The report of a loop on its publication after each turn.

    Args:
        number: of the publication, from 0.
        epoch: the last epoch whose rows the table has; None before the first publication.
        looked: the last epoch of the root at that moment; 0 before the first.
        later: number of committed epochs that the table lacks, up to `looked`.
        later_since: the commit of the first of them; None without one.
        commits: commits to the table since the start of the process.
        rows: rows that they have written.
        failures: failed turns in a row.
        error: the reason of the last failure; None if the last turn succeeded.
        is_failed: the reason does not pass by itself: a person must change the view, the table or an access.
        is_held: the gate of the root holds later epochs back.
        is_building: the backfill of the view, or of its new definition, is not complete.
        upkeep_error: the reason why the last upkeep of the table failed; None if it did not.
    """

    number: int
    epoch: int | None = None
    looked: int = 0
    later: int = 0
    later_since: datetime | None = None
    commits: int = 0
    rows: int = 0
    failures: int = 0
    error: str | None = None
    is_failed: bool = False
    is_held: bool = False
    is_building: bool = False
    upkeep_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        since = None if self.later_since is None else self.later_since.isoformat()
        return {**asdict(self), "later_since": since}

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> PublicationReport:
        since = document["later_since"]
        return cls(**{**document, "later_since": None if since is None else datetime.fromisoformat(since)})


class EpochNews:
    """The last reported epoch, and whether it is the last epoch of the run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._epoch, self._is_last = 0, False

    def notify(self, epoch: int) -> None:
        with self._changed:
            self._epoch = max(self._epoch, epoch)
            self._changed.notify_all()

    def end(self) -> None:
        """No further epoch follows."""
        with self._changed:
            self._is_last = True
            self._changed.notify_all()

    def wait(self, after: int, pause_s: float) -> tuple[bool, bool]:
        """Waits for an epoch after one, and at least for a pause, which the end of the run cuts short.

        Returns:
            Whether there is such an epoch, and whether the run is over.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_last, max(0.0, pause_s))
            self._changed.wait_for(lambda: self._is_last or self._epoch > after)
            return self._epoch > after, self._is_last


class PublicationLoop:
    """Brings a view into a table, turn by turn.  Called by one thread.

    The epochs that the next turn reads are pinned: no vacuum takes them.

    Attributes:
        due_s: the monotonic time of the next turn.

    Args:
        root: the root of the run.
        number: of the publication, from 0.
        publication: the view and the table.
        clock: for pauses and ages.
        notify: is called with the report of each turn.
        access: the root and the table; None: as `root` and `publication` name them.
        places: checks the place of the table before each write.
    """

    def __init__(
        self,
        root: Location,
        number: int,
        publication: DeclaredPublication,
        clock: Clock,
        notify: Callable[[PublicationReport], None],
        access: PublicationAccess | None = None,
        places: PlaceWatch = _NOT_WATCHED,
    ) -> None:
        self._publication, self._clock, self._notify = publication, clock, notify
        self._access = access or RealPublication(root, publication, clock)
        self._places = places
        self._report = PublicationReport(number)
        self._opened_root: PublishedRoot | None = None
        self._pinned = ExitStack()
        self._done = 0
        self._named: int | None = None
        self._version: ViewVersion | None = None
        self._named_s = self.due_s = clock.monotonic()
        self._upkeep_s: float | None = None

    def run(self, news: EpochNews) -> None:
        """Publishes until the run is over; then the last epoch once more, if that is still to do.

        At the end a failure that may pass is tried again, until the run ends the process.
        """
        is_over = False
        while not is_over:
            is_new, is_over = news.wait(self._done, self.due_s - self._clock.monotonic())
            if is_new or (is_over and self._named != self._report.epoch):
                self.turn(is_last=is_over)
        while self._report.error is not None and not self._report.is_failed:
            self._clock.sleep(max(0.0, self.due_s - self._clock.monotonic()))
            self.turn(is_last=True)
        self._pinned.close()

    def turn(self, *, is_last: bool = False) -> None:
        """Publishes the last epoch.  A failure is in the report, and the next turn is due after a pause.

        Args:
            is_last: no turn follows: the table shall name the last epoch, even if no row has changed.
        """
        began_s = self._clock.monotonic()
        try:
            self._publish(is_last)
            self.due_s = began_s + self._publication.target.interval_s
        except Exception as error:
            # The flow and the other publications go on, and so does this one.
            failures = self._report.failures + 1
            is_failed = not isinstance(error, _PASSING)
            self._report = replace(self._report, failures=failures, error=_reason(error), is_failed=is_failed)
            self._note_lag()
            longest_s = _LONGEST_PAUSE_OF_FAILED_S if is_failed else LONGEST_PAUSE_S
            pause_s = min(longest_s, _FIRST_PAUSE_S * 2 ** min(failures - 1, 16))
            self.due_s, self._done = self._clock.monotonic() + pause_s, 0
        self._notify(self._report)

    def _publish(self, is_last: bool) -> None:
        root = self._opened_root or self._opened()
        # In this order: an epoch that is committed in between is not taken for one that the gate holds back.
        latest = root.latest_epoch()
        published = root.published_epoch()
        latest = max(published, latest)
        version = root.version_of(self._publication.view, published) if published else None
        failure = root.failure_of(self._publication.view, published) if published else None
        reached = replace(self._report, looked=latest, later=0, later_since=None, failures=0, error=None)
        is_building = latest > 0 and root.is_building(self._publication.view, latest)
        reached = replace(reached, is_failed=False, is_held=published < latest, is_building=is_building)
        if version is not None:
            is_due = self._clock.monotonic() >= self._named_s + _NAMED_EVERY_S
            if version != self._version or is_last or is_due:
                done = self._commit(root, published)
                self._version = version
                commits = reached.commits + (done.since != published)
                reached = replace(reached, commits=commits, rows=reached.rows + done.rows)
            self._report = replace(reached, epoch=published)
            self._keep_up(is_last)
        else:  # it has no schema yet, or its backfill is not complete
            self._report = reached
        if published < latest or (is_building and version is None):  # the gate is closed, or rows are still to come
            self._note_lag()
        self._done = latest
        if failure is not None:
            self._report = replace(self._report, error=failed_view(self._publication.view, failure), is_failed=True)

    def _commit(self, root: PublishedRoot, epoch: int) -> Publication:
        """Publishes an epoch, which is pinned before it is read, until the next epoch is published."""
        with ExitStack() as pins:
            pins.enter_context(self._access.pin(epoch))
            self._places.check()
            published = root.publish(epoch)
            self._named_s, self._named = self._clock.monotonic(), epoch
            self._pinned.close()
            self._pinned = pins.pop_all()
        return published

    def _opened(self) -> PublishedRoot:
        """The root; the epoch that the table names is pinned, so that the changes since then can be read."""
        root = self._access.open()
        view, target = self._publication.view, self._publication.target
        head = self._access.head()
        latest = root.latest_epoch()
        wanted = PublishedEpoch(root.root, view, latest, root.identity())
        named = None if head is None else epoch_of(target, head, wanted)
        self._pinned.close()
        if named is not None:
            self._pinned.enter_context(self._access.pin(named))
        self._named, self._report = named, replace(self._report, epoch=named)
        self._opened_root = root
        self._note_lag()
        self._notify(self._report)
        return root

    def _note_lag(self) -> None:
        """Notes the epochs that the table lacks, if the root can be read."""
        try:
            times = (self._opened_root or self._access.open()).epoch_times().to_pylist()
        except SlackwaterError:
            return
        later = [row for row in times if row["epoch"] > (self._report.epoch or 0)]
        since = later[0]["committed_at"] if later else None
        looked = times[-1]["epoch"] if times else 0
        self._report = replace(self._report, looked=looked, later=len(later), later_since=since)

    def _keep_up(self, is_last: bool) -> None:
        """The upkeep of the table, when it is due.  A failure is reported, and changes nothing."""
        now_s = self._clock.monotonic()
        if self._upkeep_s is not None and (is_last or now_s < self._upkeep_s + _UPKEEP_EVERY_S):
            return
        self._upkeep_s = now_s
        self._notify(self._report)
        try:
            self._places.check()
            self._access.maintain()
            reason = None
        except Exception as error:
            reason = _reason(error)
        self._report = replace(self._report, upkeep_error=reason)


def _reason(error: Exception) -> str:
    text = first_line(error)
    return str(redact(text if isinstance(error, SlackwaterError) else f"{type(error).__name__}: {text}"))
