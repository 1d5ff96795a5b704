"""A release that outlives the attempt it was asked of."""

from __future__ import annotations


class Release:
    """The release of violating rows that waits, and the epoch that has accepted them.

    An attempt that ends before this epoch is committed has accepted nothing; the next attempt begins with the release.
    """

    def __init__(self) -> None:
        self._is_due = False
        self._epoch: int | None = None

    @property
    def is_due(self) -> bool:
        """True if the next epoch must accept the rows."""
        return self._is_due

    def ask(self) -> None:
        """The next epoch accepts the rows that violate now."""
        self._is_due = True

    def take(self, epoch: int) -> bool:
        """True if this epoch must accept the rows; the call records it as the accepting epoch."""
        is_taken, self._is_due = self._is_due, False
        if is_taken:
            self._epoch = epoch
        return is_taken

    def recover(self, epoch: int) -> None:
        """An attempt begins after the last committed epoch."""
        if self._epoch is not None and self._epoch > epoch:
            self._is_due, self._epoch = True, None

    def is_committed(self, epoch: int) -> bool:
        """True if all requested releases are committed, if the attempt that runs has committed this epoch."""
        return not self._is_due and self._epoch is not None and self._epoch <= epoch
