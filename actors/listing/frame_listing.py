"""A wait needs no listing of a static table that came with the pipeline, once its file is in the ledger."""

from __future__ import annotations


class FrameListing:
    """Decides whether the views will have the present rows of such a table without a further listing.

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
