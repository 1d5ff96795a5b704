"""Knows whether everything that was in the buckets at some moment is finished and committed.

A *mark* is such a moment, numbered from 1, which is the start of the run.  It is judged on epochs that are over, never
on what actors say in between: in one epoch every list actor has handed on what it found; in that one or a later one no
fetch actor has anything unfinished that was listed up to the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from actors.protocol.reports import CollectReport


class CaughtUp:
    """The highest mark that is reached.

    Args:
        lists: name of each list actor → its source.
    """

    def __init__(self, lists: Mapping[str, str]) -> None:
        self._lists = lists
        self._listed_mark = 0
        self._listed_epoch = 0
        self.reached = 0

    def on_epoch_over(self, epoch: int, reports: Mapping[str, CollectReport], closed: Set[str]) -> None:
        """An epoch was committed, or had nothing to commit.

        Args:
            epoch: which one.
            reports: those of every actor.
            closed: sources that wait for another source's schema; nobody waits for their files.
        """
        marks = [reports[actor].complete_mark for actor, source in self._lists.items() if source not in closed]
        listed_mark = min(marks, default=self._listed_mark)
        if listed_mark != self._listed_mark:
            # It falls when a source is opened: then that one's listing counts, too.
            self._listed_mark, self._listed_epoch = listed_mark, epoch
        since = [
            listed
            for report in reports.values()
            for source, listed in report.unfinished_since.items()
            if source not in closed
        ]
        if min(since, default=self._listed_epoch + 1) > self._listed_epoch:
            self.reached = max(self.reached, self._listed_mark)
