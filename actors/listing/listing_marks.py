"""Until which mark everything that was there has been handed on."""

from __future__ import annotations

from collections.abc import Set


class ListingMarks:
    """A mark is complete when a listing that began after it has ended, and what was too young in it is handed on.

    Attributes:
        last: the last mark that was made.
        complete: the last one that listings have completed.
    """

    def __init__(self) -> None:
        self.last, self.complete = 1, 0
        self._listing = self._pending = 0
        self._waits_for: Set[str] = frozenset()

    def on_mark(self, mark: int) -> None:
        """A mark was made."""
        self.last = max(self.last, mark)

    def begin_listing(self) -> None:
        """A listing begins."""
        self._listing = self.last

    def end_listing(self, young: Set[str], unsettled: Set[str]) -> None:
        """A listing has ended.

        Args:
            young: paths that were too young in it.
            unsettled: those of them that are worth waiting for once more.
        """
        if self._pending > self.complete:
            self._waits_for &= unsettled
        elif self._listing > self.complete:
            self._pending, self._waits_for = self._listing, young
        if not self._waits_for:
            self.complete = max(self.complete, self._pending)
