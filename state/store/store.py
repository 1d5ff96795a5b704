"""What the coordinator and the readers ask of a store, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion


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

    def take_over(self, run: str = "") -> Head:
        """Starts the next term: from here on no commit of an older term is accepted.

        Args:
            run: the name of the run that takes over, kept in the head: a later handle of the same run tells from it
                that a take-over whose outcome was not known was its own.

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
        trace: str | None = None,
    ) -> EpochRecord:
        """Makes one epoch visible: its delta, its record and the versions of all views, or nothing of it.

        Args:
            epoch: greater than that of the head.
            delta: the changes of all tables, merged.
            views: every view by name, the unchanged ones too.
            counts: what the epoch brought.
            seconds: how long its phases took.
            trace: and what took how long in them, see `EpochRecord`.

        Raises:
            FencedError: another process has taken over; nothing was written.
            CommitRefusedError: nothing was written; recover, which begins with a new handle and `take_over`.
            CommitUnknownError: the store does not answer; recover in the same way once it does.
            ProtocolError: the epoch is not greater than the last, or the handle cannot write.
        """
        ...

    def amend(self, delta: Delta | None = None, *, tags: Mapping[str, int] | None = None) -> None:
        """Commits what belongs to no epoch of the flow: a version, but no epoch record.

        Args:
            delta: changes of rows that no actor writes.
            tags: all tags from now on; None leaves them as they are.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError, ProtocolError: as `commit`.
        """
        ...

    def stage_fold(self) -> StagedFold | None:
        """Makes the next fold durable without showing it; None if nothing is due.

        It may run in a thread beside the commits of this handle; one fold at a time.

        Raises:
            StorageError: the store cannot be read or written.
        """
        ...

    def commit_fold(self, fold: StagedFold) -> None:
        """Shows a staged fold: no row that `scan` gives changes, and the version moves by one.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError: as `commit`; nothing is lost with a fold.
            ProtocolError: it was staged in another term, or what it replaces is no longer there.
        """
        ...

    def scan(
        self,
        table: str,
        *,
        start: bytes | None = None,
        end: bytes | None = None,
        vnodes: Collection[int] | None = None,
        keys: Collection[bytes] | None = None,
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> pa.Table:
        """The current rows of a table: columns key, vnode, epoch, and the fields of `TABLES[table]`.

        Args:
            table: a name of `TABLES`.
            start: only rows whose key is at least this.
            end: only rows whose key is less than this.
            vnodes: only rows of these.
            keys: only rows with one of these.
            fields: only these of the table's fields, in this order, where not all are wanted of many rows.
            state_version: an older version of the store, as an epoch record names it; otherwise this handle's.

        Raises:
            EpochNotFoundError: that version is not retained.
        """
        ...

    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]:
        """What `scan` returns, as a dictionary for each row."""
        ...

    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None:
        """The current row with this key, as `rows` has it; None if there is none."""
        ...

    def wait_epoch(self, epoch: int, timeout_s: float) -> StateStore:
        """A handle that sees this epoch, as soon as it is committed.

        Raises:
            EpochNotFoundError: it was not committed in time.
        """
        ...

    def epochs(self) -> list[EpochRecord]:
        """The retained epochs, oldest first."""
        ...

    def reopen(self) -> StateStore:
        """A fresh handle on what is committed now."""
        ...


@dataclass(frozen=True)
class StagedFold:
    """A fold that is durable but not visible.

    Args:
        term: the term in which it was staged; no other may commit it.
        removed: the fragments that it replaces, by id.
        new: what replaces them, as Lance takes it.
        rows_before: rows in the removed fragments.
        rows_after: rows in the new ones.
    """

    term: int
    removed: tuple[int, ...] = ()
    new: tuple[Any, ...] = ()
    rows_before: int = 0
    rows_after: int = 0
