"""Marks of one source: points in time, each complete when every file of the bucket at that time is handed on."""

from __future__ import annotations

from collections.abc import Set


class ListingMarks:
    """Completes a mark when a listing that began after it has ended, and its settling files are handed on.

    If that listing lacks names, the mark waits for the next listing, which confirms them.

    Attributes:
        last: the last mark that was made.
        awaited: the last mark that a caller waits for.
        complete: the last mark that listings have completed.
    """

    def __init__(self) -> None:
        self.last, self.complete, self.awaited = 1, 0, 0
        self._listing = self._pending = 0
        self._waits_for: Set[str] = frozenset()
        self._must_confirm = False

    def on_mark(self, mark: int, *, at_once: bool = False) -> None:
        """A mark was made.

        Args:
            at_once: whether a caller waits for it.
        """
        self.last = max(self.last, mark)
        if at_once:
            self.awaited = self.last

    @property
    def is_awaited(self) -> bool:
        """True while a caller waits for a mark."""
        return self.awaited > self.complete

    @property
    def needs_listing(self) -> bool:
        """True while a caller waits for a mark that is newer than the start of the last listing."""
        return self.is_awaited and self.awaited > self._listing

    def begin_listing(self) -> None:
        """A listing begins."""
        self._listing = self.last

    def end_listing(
        self, settling: Set[str], waited_for: Set[str], *, must_confirm: bool = False, is_doubtful: bool = False
    ) -> None:
        """A listing has ended.

        Args:
            settling: the paths of all settling files, see `SettlingFiles.end_listing`.
            waited_for: the paths of those that are waited for once more.
            must_confirm: whether it lacks names that the next listing must confirm.
            is_doubtful: whether it has passed a name over; it completes no mark then.
        """
        if is_doubtful:
            return
        if self._pending > self.complete:
            self._waits_for &= waited_for
            self._must_confirm = False
        elif self._listing > self.complete:
            self._pending, self._waits_for, self._must_confirm = self._listing, settling, must_confirm
        if not self._waits_for and not self._must_confirm:
            self.complete = max(self.complete, self._pending)


class FrameListing:
    """Decides whether a static table that came with the pipeline needs a listing for a wait.

    Only the run and `slackwater replace-table` replace its file, and have the run read it again by its name in the
    ledger.  Before the commit of the name, only listings find a replaced file.  So one listing begins after the commit.

    Args:
        is_frame: False for any other source, which needs a listing for every wait.

    Attributes:
        is_current: whether a wait needs no listing.
    """

    def __init__(self, *, is_frame: bool) -> None:
        self._is_frame = is_frame
        self._committed = 0
        self._is_after_commit = False
        self.is_current = False

    def on_committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        self._committed = epoch

    def begin_listing(self, last_epoch: int) -> None:
        """A listing begins.

        Args:
            last_epoch: the epoch in which the file was handed on; 0 if that was before the attempt, or never.
        """
        self._is_after_commit = last_epoch <= self._committed

    def end_listing(self, *, is_known: bool) -> None:
        """A listing has ended.

        Args:
            is_known: whether it has shown the file, in the version that was handed on.
        """
        self.is_current = self._is_frame and self._is_after_commit and is_known

    def on_vanished(self) -> None:
        """The version that was handed on was replaced before it was read."""
        self.is_current = False
