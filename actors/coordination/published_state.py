"""The state of an attempt that the coordinator publishes to the process that runs the pipeline."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from actors.coordination.epoch_collector import CollectedEpoch
from actors.protocol.run_state import CommittedEpoch, RunPhase, RunState, Unfinished
from actors.recovery.attempt_plan import RunTotals
from state.tables.records import EpochCounts, EpochRecord


class PublishedState:
    """The `RunState` of one attempt: a value with a new version for every reading that follows a change.

    Args:
        term: the head's term, won by this attempt.
        totals: epochs that earlier attempts of the run have committed.
        num_unfinished: files that were unfinished at the last commit.
    """

    def __init__(self, *, term: int, epoch: int, totals: RunTotals, num_unfinished: int) -> None:
        self._latest = RunState(
            version=0, phase="running", term=term, epoch=epoch, epochs=totals.epochs, totals=totals.counts
        )
        self._num_unfinished = num_unfinished
        self._num_finished = 0
        self._committed_epochs: list[int] = []
        self._unfinished_since: dict[str, int] = {}
        self.is_due = True

    @property
    def latest(self) -> RunState:
        """The state as of the last reading, with all changes since."""
        return self._latest

    @property
    def phase(self) -> RunPhase:
        return self._latest.phase

    def change(self, **changes: object) -> None:
        """Notes that something has happened: the next reading gets a new version.

        Args:
            changes: fields of `RunState`.
        """
        if changes:
            self._latest = replace(self._latest, **changes)  # type: ignore[arg-type]
        self.is_due = True

    def read(self, *, sent: int, **parts: object) -> RunState:
        """A new version.

        Args:
            sent: files that the list actors have sent, in this attempt.
            parts: fields of `RunState` that are read from the parts of the executor.
        """
        self.is_due = False
        self._latest = replace(
            self._latest,
            version=self._latest.version + 1,
            files_in_flight=self._num_unfinished + sent - self._num_finished,
            unfinished=self._oldest_unfinished(),
            **parts,  # type: ignore[arg-type]
        )
        return self._latest

    def on_queued_again(self, num_files: int) -> None:
        """Files were put back into the queue by a request."""
        self._num_unfinished += num_files

    def on_committed(self, record: EpochRecord, committed: CommittedEpoch) -> None:
        """An epoch was committed."""
        before = self._latest
        totals = added(RunTotals(0, before.epochs, before.totals), [record])
        self._num_finished += record.counts.files
        self._committed_epochs.append(record.epoch)
        news = replace(before, recent=(committed,), traces={record.epoch: record.trace or ""}).after(before)
        self.change(
            epoch=record.epoch, epochs=totals.epochs, totals=totals.counts, recent=news.recent, traces=news.traces
        )

    def on_epoch_over(self, epoch: CollectedEpoch) -> None:
        """An epoch was committed, or had nothing to commit: its reports have the age of unfinished files."""
        self._unfinished_since = {}
        for report in epoch.reports.values():
            for source, listed in report.unfinished_since.items():
                self._unfinished_since[source] = min(listed, self._unfinished_since.get(source, listed))
        oldest = min(self._unfinished_since.values(), default=epoch.epoch)
        del self._committed_epochs[: bisect_right(self._committed_epochs, oldest)]

    def _oldest_unfinished(self) -> dict[str, Unfinished]:
        epochs = self._committed_epochs
        return {
            source: Unfinished(listed, len(epochs) - bisect_right(epochs, listed))
            for source, listed in self._unfinished_since.items()
        }


def added(totals: RunTotals, records: Sequence[EpochRecord]) -> RunTotals:
    """Totals of a run with further epochs."""
    counts = [totals.counts, *(record.counts for record in records)]
    return RunTotals(
        records[-1].epoch if records else totals.epoch,
        totals.epochs + len(records),
        EpochCounts(
            files=sum(each.files for each in counts),
            rows=sum(each.rows for each in counts),
            bytes=sum(each.bytes for each in counts),
            requests=sum(each.requests for each in counts),
        ),
    )
