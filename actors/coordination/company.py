"""The sources whose files probably come within a moment: a barrier waits for them, since each epoch has its cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from actors.protocol.reports import ListProgress


@dataclass
class _Source:
    """A source, as its list actor reports it.

    Attributes:
        listed_s: the time when its last listing ended, of the monotonic clock.
        listings: the listings that had ended when the open epoch got its first news.
        has_come: whether files of it were handed on in the open epoch.
        came_before: the same, of an epoch that ended within an interval before the first news of the open epoch.
        is_company: whether its last files came with the files of other sources.
        in_vain: whether a barrier has waited for it in vain since its last files.
    """

    progress: ListProgress
    listed_s: float = float("-inf")
    listings: int = 0
    has_come: bool = False
    came_before: bool = False
    is_company: bool = False
    in_vain: bool = False

    def is_expected(self, until_s: float) -> bool:
        if self.has_come or self.came_before or self.in_vain:
            return False
        is_listed_until = self.listed_s + self.progress.period_s <= until_s
        return self.progress.unsettled > 0 or (
            self.is_company and is_listed_until and self.progress.listings == self.listings
        )


class Company:
    """Decides whether files of further sources are expected in the open epoch.

    Files that are written together are listed source by source, up to an interval apart.  A source is expected in two
    cases, until a barrier has waited for it in vain:

    * A listing has shown local files of it that the next listing hands on.
    * Its next listing is due, and its last files came with the files of other sources: in one epoch, or within an
      interval of their listings after its barrier.
    """

    def __init__(self, lists: Iterable[ListProgress]) -> None:
        self._sources = {each.actor: _Source(each) for each in lists}
        self._barrier_s = float("-inf")

    def on_progress(self, progress: ListProgress, now_s: float) -> None:
        """A list actor reports its progress."""
        source = self._sources[progress.actor]
        before, source.progress = source.progress, progress
        if progress.listings > before.listings:
            source.listed_s = now_s
        if progress.sent > before.sent:
            self._forget_before(now_s)
            if not source.has_come and not source.came_before:
                self._note_company([source, *(each for each in self._sources.values() if each.came_before)])
            source.has_come, source.in_vain = True, False

    def begin(self, now_s: float) -> None:
        """The open epoch has its first news."""
        self._forget_before(now_s)
        for each in self._sources.values():
            each.listings = each.progress.listings

    def is_expected(self, until_s: float, closed: Set[str]) -> bool:
        """True if a source is expected.

        Args:
            until_s: the latest time of the barrier, of the monotonic clock.
            closed: sources whose files are not read.
        """
        return any(each.is_expected(until_s) for each in self._sources.values() if each.progress.source not in closed)

    def on_barrier(self, now_s: float) -> None:
        """A barrier ends the open epoch."""
        self._barrier_s = now_s
        for each in self._sources.values():
            if not each.has_come and not each.came_before and (each.is_company or each.progress.unsettled):
                each.is_company, each.in_vain = False, True
        self._note_company([each for each in self._sources.values() if each.has_come])
        for each in self._sources.values():
            each.came_before, each.has_come = each.has_come, False

    def _forget_before(self, now_s: float) -> None:
        for each in self._sources.values():
            each.came_before = each.came_before and now_s - self._barrier_s <= each.progress.period_s

    def _note_company(self, sources: Sequence[_Source]) -> None:
        if len(sources) > 1:
            for each in sources:
                each.is_company = True
