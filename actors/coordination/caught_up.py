"""The marks that a run has reached: everything that was in the buckets at a mark is finished and committed.

A *mark* is a moment, numbered from 1, the start of the run.  Only epochs that are over decide, never progress between
barriers.  A mark is reached in two steps:

1. In one epoch, every list actor has handed on all files that were in its bucket at the mark.
2. In this epoch or later, no fetch actor has an unfinished file that was listed up to the first step.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from actors.protocol.reports import CollectReport

FIRST_MARK = 1


class CaughtUp:
    """The highest mark that is reached, and the number of marks.

    Args:
        lists: name of each list actor → its source.
    """

    def __init__(self, lists: Mapping[str, str]) -> None:
        self._lists = lists
        self._listed_mark = 0
        self._listed_epoch = 0
        self.reached = 0
        self.marks = FIRST_MARK

    def make_mark(self) -> int:
        self.marks += 1
        return self.marks

    def refused(self, reports: Mapping[str, CollectReport]) -> frozenset[str]:
        """The sources whose list actors report that their requests are refused."""
        return frozenset(source for actor, source in self._lists.items() if reports[actor].is_refused)

    def on_epoch_over(self, epoch: int, reports: Mapping[str, CollectReport], closed: Set[str]) -> None:
        """An epoch was committed, or had nothing to commit.

        Args:
            reports: actor → its report.
            closed: sources whose files do not count: they wait for the schema of another source, or are refused.
        """
        marks = [reports[actor].complete_mark for actor, source in self._lists.items() if source not in closed]
        listed_mark = min(marks, default=self.marks if self._lists else self._listed_mark)
        if listed_mark != self._listed_mark:
            # It falls when a source is opened, whose listing counts from then on.
            self._listed_mark, self._listed_epoch = listed_mark, epoch
        since = [
            listed
            for report in reports.values()
            for source, listed in report.unfinished_since.items()
            if source not in closed
        ]
        if min(since, default=self._listed_epoch + 1) > self._listed_epoch:
            self.reached = max(self.reached, self._listed_mark)


class DeclaredViews:
    """The views that the materializer has analysed; until all of them are there, no mark is published."""

    def __init__(self) -> None:
        self._sources: frozenset[str] | None = None
        self._due_epoch = 0
        self._backfilling = False
        self._last_over = 0

    def on_declared(
        self, sources: frozenset[str], new_in_epoch: int | None, *, backfilling: bool, in_flight: int = 0
    ) -> None:
        """The materializer has analysed every view that the schemas of these sources allow.

        Args:
            new_in_epoch: the epoch that creates new views; None if no view is new.
            backfilling: whether a view lacks rows that were ingested before: a backfill, or a full view.
            in_flight: the last epoch that is not over, without the open one; 0 without one.
        """
        if self._backfilling and not backfilling:
            # The view is as wanted from an epoch that the materializer has done, and that may wait for its commit.
            self._due_epoch = max(self._due_epoch, in_flight)
        self._sources, self._backfilling = sources, backfilling
        self._due_epoch = self._due_epoch if new_in_epoch is None else max(self._due_epoch, new_in_epoch)

    def on_epoch_over(self, epoch: int) -> None:
        """An epoch was committed, or had nothing to commit."""
        self._last_over = epoch

    def are_complete(self, decided: Set[str]) -> bool:
        """True if every view is created, and none is backfilling.

        Args:
            decided: the sources that have a schema.
        """
        return self._sources == decided and self._last_over >= self._due_epoch and not self._backfilling
