"""PublicationStates: the publications of a run, the last report of each, and their states for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from actors.protocol.run_state import RunState
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import unfinished_view
from slackwater.plugins.publish.publication_loop import PublicationReport
from slackwater.status.run_status import PublicationStatus

_MOST_REPORTED = 100_000


class PublicationStates:
    """Keeps the reports of the process that publishes, and the epochs that it has not looked at.  Not thread-safe.

    Attributes:
        publications: the views and their tables.
        epoch: the last committed epoch of the run; 0 before the first.
        death: the reason why the process that publishes has ended during the run; None while it lives.
    """

    def __init__(self, publications: Sequence[DeclaredPublication]) -> None:
        self.publications: tuple[DeclaredPublication, ...] = ()
        self.epoch = 0
        self.death: str | None = None
        self._end_reason: str | None = None
        self._reported = deque[tuple[int, datetime]](maxlen=_MOST_REPORTED)
        self._reports: dict[int, PublicationReport] = {}
        self.add(publications)

    def add(self, publications: Sequence[DeclaredPublication]) -> None:
        """Adds further publications, which have no report yet."""
        first = len(self.publications)
        self.publications = (*self.publications, *publications)
        self._reports |= {at: PublicationReport(at) for at in range(first, len(self.publications))}

    def notify(self, state: RunState) -> bool:
        """Takes a state of the run.  Returns whether an epoch is new."""
        last = self._reported[-1][0] if self._reported else self.epoch
        self._reported += [(each.epoch, each.committed_at) for each in state.recent if each.epoch > last]
        is_new = state.epoch > self.epoch
        self.epoch = max(self.epoch, state.epoch)
        return is_new

    def report(self, report: PublicationReport) -> PublicationReport:
        """Takes a report.  Returns the report before it."""
        before, self._reports[report.number] = self._reports[report.number], report
        self.death = None
        looked = min(each.looked for each in self._reports.values())
        while self._reported and self._reported[0][0] <= looked:
            self._reported.popleft()
        return before

    def end(self, reason: str) -> None:
        """The process has ended at the end of the run, for a reason that counts for the tables that lack an epoch."""
        self.death, self._end_reason = None, reason

    def end_in_time(self, seconds: float) -> None:
        """The process was ended since it needed longer than this for the last epoch."""
        self.end(f"the last epoch was not published within {seconds:.0f} s of the end of the run")

    def statuses(self, now: datetime) -> tuple[PublicationStatus, ...]:
        return tuple(
            self._status(publication, report, now)
            for publication, report in zip(self.publications, self._reports.values(), strict=True)
        )

    def _status(self, publication: DeclaredPublication, report: PublicationReport, now: datetime) -> PublicationStatus:
        since = [committed_at for epoch, committed_at in self._reported if epoch > report.looked]
        waits_since = report.later_since or (since[0] if since else None)
        behind = report.later + len(since)
        is_held = report.is_held and not since
        # A process that has not looked at the root since the run started has reported no epoch that its table lacks.
        may_lack = (behind > 0 or report.looked < self.epoch) and not is_held
        error = report.error or self.death or (self._end_reason if may_lack else None)
        state: Literal["current", "behind", "held", "retrying", "failed"] = "current"
        if error is not None:
            state = "failed" if report.is_failed else "retrying"
        elif report.is_building:
            state = "behind"
        elif behind:
            state = "held" if is_held else "behind"
        return PublicationStatus(
            view=publication.view,
            table=str(publication.target),
            epoch=report.epoch,
            behind_epochs=behind,
            behind_s=0.0 if waits_since is None else max(0.0, (now - waits_since).total_seconds()),
            commits=report.commits,
            rows=report.rows,
            failures=report.failures,
            error=error,
            state=state,
            waits_for=unfinished_view(publication.view) if report.is_building else "",
        )
