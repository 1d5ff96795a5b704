"""The commit protocol, apart from where the rows are kept: every commit swaps the one head row.

A swap names the head that it replaces, so it is a compare-and-swap: of two swaps of one head exactly one is accepted.
A swap ends as done, refused, or not known; then a fresh handle decides, by the name of the transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from state.clock import Clock
from state.delta import Delta
from state.errors import CommitRefusedError, CommitUnknownError, FencedError, ProtocolError, StorageError
from state.record_rows import epoch_row, head_row, read_epochs
from state.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.resolve import resolve
from state.tables import state_rows


@dataclass(frozen=True)
class StagedSwap:
    """A commit that is durable but not visible.  `name` tells it apart from every other commit."""

    name: str
    head: Head
    content: Any


class HeadSwapStore(ABC):
    """A `StateStore` on top of a place that can swap a head; the contract is that of `state.store.StateStore`."""

    def __init__(self, clock: Clock, head: Head, version: int, *, read_only: bool = False) -> None:
        self._clock = clock
        self._head = head
        self._version = version
        self._read_only = read_only
        self._out_of_date = False

    @abstractmethod
    def _stage(self, rows: pa.Table | None, head: Head, head_rows: pa.Table) -> StagedSwap:
        """Makes the rows durable without showing them."""

    @abstractmethod
    def _swap(self, staged: StagedSwap) -> None:
        """Shows what was staged if the head is still this handle's, as version + 1, and moves this handle there.

        Raises:
            CommitRefusedError: the head is no longer this handle's.
            CommitUnknownError: anything else.
        """

    @abstractmethod
    def reopen(self, version: int | None = None) -> HeadSwapStore:
        """A fresh handle on what is committed now, or on an older version."""

    @abstractmethod
    def _adopt(self, fresh: Any) -> None:
        """Moves this handle to where a fresh one of the same class is."""

    @abstractmethod
    def _swap_name(self, version: int) -> str | None:
        """The name of the swap that made a version; None if there is no such version."""

    @abstractmethod
    def _stored(self, table: str, state_version: int | None) -> pa.Table:
        """Rows of one table as they were written: columns vnode, epoch, op, key, row."""

    @property
    def head(self) -> Head:
        return self._head

    @property
    def version(self) -> int:
        return self._version

    def take_over(self) -> Head:
        self._check_writable()
        head = replace(self._head, term=self._head.term + 1)
        self._commit(self._stage(None, head, state_rows([("head", head_row(head))], head.epoch)))
        return self._head

    def commit(
        self,
        *,
        epoch: int,
        delta: Delta,
        views: Mapping[str, ViewVersion],
        counts: EpochCounts,
        seconds: EpochSeconds,
    ) -> EpochRecord:
        self._check_writable()
        if epoch <= self._head.epoch:
            raise ProtocolError(f"epoch {epoch} does not follow the committed epoch {self._head.epoch}")
        record = EpochRecord(
            epoch=epoch,
            term=self._head.term,
            committed_at=self._clock.now(),
            state_version=self._version + 1,
            counts=counts,
            seconds=seconds,
            views=dict(views),
        )
        head = Head(self._head.term, epoch, record.views)
        rows = state_rows([*delta.tables.items(), ("epoch", epoch_row(record))], epoch)
        self._commit(self._stage(rows, head, state_rows([("head", head_row(head))], epoch)))
        return record

    def scan(self, table: str, *, state_version: int | None = None) -> pa.Table:
        return resolve(table, self._stored(table, state_version))

    def epochs(self) -> list[EpochRecord]:
        return read_epochs(self.scan("epoch"))

    def _check_writable(self) -> None:
        if self._read_only:
            raise ProtocolError("this handle was opened for reading: it cannot commit")
        if self._out_of_date:
            raise CommitRefusedError("a commit through this handle was refused before: open a new one and take over")

    def _commit(self, staged: StagedSwap) -> None:
        try:
            self._swap(staged)
        except (CommitRefusedError, CommitUnknownError) as error:
            self._out_of_date = True
            self._settle(staged, error)
            self._out_of_date = False

    def _settle(self, staged: StagedSwap, error: CommitRefusedError | CommitUnknownError) -> None:
        try:
            fresh = self.reopen()
            if fresh._swap_name(self._version + 1) == staged.name:
                self._adopt(self.reopen(self._version + 1))
                return
        except StorageError as unreadable:
            raise CommitUnknownError(
                f"it is not known whether epoch {staged.head.epoch} was committed, and the store does not answer "
                f"({unreadable}): start again when it does, what was committed is kept"
            ) from error
        if fresh.head.term != self._head.term:
            raise FencedError(
                f"another process has taken this root over (its term is {fresh.head.term}, ours was "
                f"{self._head.term}): this one stops; nothing of epoch {staged.head.epoch} was written"
            ) from error
        raise CommitRefusedError(
            f"the commit of epoch {staged.head.epoch} was refused and wrote nothing ({error}): recover from epoch "
            f"{fresh.head.epoch}"
        ) from error
