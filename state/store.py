"""What the coordinator and the readers ask of a store, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from state.delta import Delta
from state.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion


class StateStore(Protocol):
    """One handle on the store of a root.  It sees what was committed when it was opened, and what it commits itself.

    A handle whose commit was refused stays refused: open a new one and take over.
    """

    @property
    def head(self) -> Head:
        """The term, the last committed epoch and the views, as this handle sees them."""
        ...

    @property
    def version(self) -> int:
        """The version of the store that this handle sees; every commit makes exactly the next one."""
        ...

    def take_over(self) -> Head:
        """Starts the next term: from here on no commit of an older term is accepted.

        Raises:
            FencedError: another process took over since this handle was opened.
            CommitRefusedError: an older commit of the same term came in between: open a new handle and try again.
            CommitUnknownError: the store does not answer.
        """
        ...

    def commit(
        self,
        *,
        epoch: int,
        delta: Delta,
        views: Mapping[str, ViewVersion],
        counts: EpochCounts,
        seconds: EpochSeconds,
    ) -> EpochRecord:
        """Makes one epoch visible: its delta, its record and the versions of all views, or nothing of it.

        Args:
            epoch: greater than that of the head.
            delta: the changes of all tables, merged.
            views: every view by name, the unchanged ones too.
            counts: what the epoch brought.
            seconds: how long its phases took.

        Raises:
            FencedError: another process has taken over; nothing was written.
            CommitRefusedError: nothing was written; recover, which begins with a new handle and `take_over`.
            CommitUnknownError: the store does not answer; recover in the same way once it does.
            ProtocolError: the epoch is not greater than the last, or the handle cannot write.
        """
        ...

    def scan(self, table: str, *, state_version: int | None = None) -> pa.Table:
        """The current rows of a table: columns key, vnode, epoch, and the fields of `TABLES[table]`.

        Args:
            table: a name of `TABLES`.
            state_version: an older version of the store, as an epoch record names it; otherwise this handle's.

        Raises:
            EpochNotFoundError: that version is not retained.
        """
        ...

    def epochs(self) -> list[EpochRecord]:
        """The retained epochs, oldest first."""
        ...

    def reopen(self) -> StateStore:
        """A fresh handle on what is committed now."""
        ...
