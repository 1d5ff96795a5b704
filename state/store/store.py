"""The contract of the store, for the coordinator and for readers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.tables.row_selection import Clue


class StateStore(Protocol):
    """A handle on the store of a root.  It sees the version that it opened, and its own commits.

    After a refused commit the handle refuses all others: open a new one and take over.
    """

    @property
    def head(self) -> Head:
        """The head that this handle sees: the term, the last committed epoch, the views."""
        ...

    @property
    def version(self) -> int:
        """The version of the store that this handle sees; every commit makes exactly the next version."""
        ...

    def take_over(self, run: str = "") -> Head:
        """Starts the next term: from then on a commit of an older term is refused.

        Args:
            run: the name of the run that takes over, kept in the head: by it a later handle of the same run recognizes
                its own take-over after an unknown outcome.

        Raises:
            FencedError: another process has taken over since this handle was opened.
            CommitRefusedError: a commit of the same term came first: open a new handle and try again.
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
        published: int | None = None,
    ) -> EpochRecord:
        """Makes one epoch visible: its delta, its record and the versions of all views, or nothing.

        Args:
            epoch: greater than the epoch of the head.
            delta: the changes of all tables, merged.
            views: all views by name, including the unchanged ones.
            counts: the counts of the epoch.
            seconds: the durations of its phases.
            trace: the spans of its phases, see `EpochRecord`.
            published: the epoch of the tag `published` from now on; 0 deletes the tag, None keeps it.

        Raises:
            FencedError: another process has taken over; the message says whether the epoch was written, if
                known.
            CommitRefusedError: nothing was written; recover, which begins with a new handle and `take_over`.
            CommitUnknownError: the store does not answer; recover in the same way when it answers.
            ProtocolError: the epoch is not greater than the last epoch, or the handle is read-only.
        """
        ...

    def amend(
        self,
        delta: Delta | None = None,
        *,
        tags: Mapping[str, int] | None = None,
        views: Mapping[str, ViewVersion] | None = None,
    ) -> None:
        """Commits changes that belong to no epoch: a new version without an epoch record.

        Args:
            delta: changes of rows that no actor writes.
            tags: all tags from now on; None keeps the present ones.
            views: all views by name from now on; None keeps the present ones.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError, ProtocolError: as `commit`.
        """
        ...

    @property
    def fold_interval(self) -> int:
        """The number of commits after which a fold may be due again."""
        ...

    def stage_fold(self) -> StagedFold | None:
        """Makes the next fold durable, not visible; None if no fold is due.

        It may run in a thread while this handle commits; one fold at a time.

        Raises:
            StorageError: the store cannot be read or written.
        """
        ...

    def commit_fold(self, fold: StagedFold) -> None:
        """Makes a staged fold visible, as the next version; `scan` returns the same rows as before.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError: as `commit`; a lost fold loses no row.
            ProtocolError: it was staged in another term, or the fragments that it replaces no longer exist.
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
        prefixes: Collection[bytes] | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> pa.Table:
        """The current rows of a table: columns key, vnode, epoch, and the fields of `TABLES[table]`.

        Keys and prefixes are looked up: their cost does not grow with the table.  All rows of a large table are better
        read by `slices`.

        Args:
            table: a name of `TABLES`.
            start: only rows whose key is at least this.
            end: only rows whose key is less than this.
            vnodes: only rows of these vnodes.
            keys: only rows with one of these keys.
            prefixes: only rows whose key begins with one of these; no prefix may begin with another.
            where: only rows that fit all of these; Lance compares the fields of rows that nothing else reads.
            fields: only these fields of the table, in this order: cheaper for many rows.
            state_version: an older version of the store, from an epoch record; None for this handle's version.

        Raises:
            EpochNotFoundError: that version is not retained.
        """
        ...

    def slices(
        self,
        table: str,
        *,
        start: bytes | None = None,
        end: bytes | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> Iterator[pa.Table]:
        """The rows of `scan` in the order of their keys, some 100,000 at a time, each read when it is needed."""
        ...

    def count_ledger(self, state_version: int | None = None) -> pa.Table:
        """The counts of the ledger, see `ledger_counts`; only rows that are not folded yet are read."""
        ...

    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]:
        """The rows of `scan`, each as a dictionary."""
        ...

    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None:
        """The current row with this key as a dictionary; None if it does not exist."""
        ...

    def wait_epoch(self, epoch: int, timeout_s: float) -> StateStore:
        """Waits for the commit of an epoch, and returns a handle that sees it.

        Raises:
            EpochNotFoundError: the epoch was not committed in time.
        """
        ...

    def epochs(
        self, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> list[EpochRecord]:
        """The retained epochs, oldest first; of the others nothing but their numbers is read.

        Args:
            after: only epochs greater than this one.
            before: only epochs less than this one.
            last: at most this number of epochs, counted from the latest.
        """
        ...

    def epoch(self, epoch: int) -> EpochRecord | None:
        """The record of one epoch, by the index; None if it is not retained."""
        ...

    def epoch_times(self) -> pa.Table:
        """The retained epochs, oldest first, without their records: `epoch`, `committed_at` and `state_version`."""
        ...

    def reopen(self, version: int | None = None) -> StateStore:
        """A fresh handle on the last version, or on an older one."""
        ...


@dataclass(frozen=True)
class StagedFold:
    """A fold that is durable but not visible.

    Args:
        term: the term in which it was staged; no other may commit it.
        removed: the ids of the fragments that it replaces.
        new: the fragments that replace them, in Lance's form.
        directory: the fragment of the directory that names them, in Lance's form.
        directory_before: the data file of the directory that it replaces.
        rows_before: rows in the removed fragments.
        rows_after: rows in the new ones.
    """

    term: int
    removed: tuple[int, ...] = ()
    new: tuple[Any, ...] = ()
    directory: Any = None
    directory_before: str = ""
    rows_before: int = 0
    rows_after: int = 0
