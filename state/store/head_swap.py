"""The commit protocol, without the storage of rows: every commit swaps the one head row.

A swap names the head that it replaces, so it is a compare-and-swap: of two swaps of one head exactly one is accepted.
The outcome of a swap is done, refused or unknown; for an unknown one a fresh handle decides, by the name of the swap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from state.clock import Clock
from state.errors import (
    CommitRefusedError,
    CommitUnknownError,
    EpochNotFoundError,
    FencedError,
    NotFoundError,
    ProtocolError,
    SlackwaterError,
    StorageError,
)
from state.store.store import StagedFold
from state.tables.delta import Delta
from state.tables.expectations import PUBLISHED
from state.tables.keys import encode_key
from state.tables.record_rows import epoch_delta, read_epochs
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.tables.row_selection import Clue

_POLL_S = 0.1


@dataclass(frozen=True)
class StagedSwap:
    """A commit that is durable but not visible.

    Args:
        name: a name that no other commit has.
        head: the head that it makes visible.
        content: the commit, as the implementation of the store needs it.
    """

    name: str
    head: Head
    content: Any


class HeadSwapStore(ABC):
    """The part of a `StateStore` that does not depend on its storage; a subclass stages rows and swaps the head."""

    def __init__(self, clock: Clock, head: Head, version: int, *, read_only: bool = False) -> None:
        self._clock = clock
        self._head = head
        self._version = version
        self._read_only = read_only
        self._out_of_date = False

    @abstractmethod
    def _stage(self, delta: Delta | None, head: Head) -> StagedSwap:
        """Makes a head and the changes of its epoch durable, not visible."""

    @property
    @abstractmethod
    def fold_interval(self) -> int:
        """The number of commits after which a fold may be due again."""

    @abstractmethod
    def stage_fold(self) -> StagedFold | None:
        """Makes the next fold durable, not visible; None if no fold is due.  Commits may run at the same time."""

    @abstractmethod
    def _stage_fold_swap(self, fold: StagedFold, head: Head) -> StagedSwap:
        """The commit that makes a fold visible; the head keeps its content."""

    @abstractmethod
    def _swap(self, staged: StagedSwap) -> None:
        """Makes a staged commit visible as version + 1 if the head is still this handle's, and moves this handle there.

        Raises:
            CommitRefusedError: the head is no longer this handle's.
            CommitUnknownError: any other error.
        """

    @abstractmethod
    def _persist(self) -> None:
        """Makes this handle's version survive a power cut; only then is the commit acknowledged.

        Raises:
            StorageError: the disk refuses.
        """

    @abstractmethod
    def reopen(self, version: int | None = None) -> HeadSwapStore:
        """A fresh handle on the last version, or on an older one."""

    @abstractmethod
    def _adopt(self, fresh: Any) -> None:
        """Moves this handle to the version of a fresh one of the same class."""

    @abstractmethod
    def _swap_name(self, version: int) -> str | None:
        """The name of the swap that made a version; None if the version does not exist."""

    @abstractmethod
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
    ) -> pa.Table: ...

    @abstractmethod
    def slices(
        self,
        table: str,
        *,
        start: bytes | None = None,
        end: bytes | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> Iterator[pa.Table]: ...

    @abstractmethod
    def count_ledger(self, state_version: int | None = None) -> pa.Table: ...

    @abstractmethod
    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]: ...

    @abstractmethod
    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None: ...

    @property
    def head(self) -> Head:
        return self._head

    @property
    def version(self) -> int:
        return self._version

    def take_over(self, run: str = "") -> Head:
        self._check_writable()
        self._commit(self._stage(None, replace(self._head, term=self._head.term + 1, run=run)))
        return self._head

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
            trace=trace,
        )
        for staged in delta.staged:
            if staged.epoch != epoch:
                raise ProtocolError(f"{staged.rows} rows were staged for epoch {staged.epoch}, not for {epoch}")
        head = replace(self._head, epoch=epoch, views=record.views, tags=self._tags_with(published))
        self._commit(self._stage(Delta.merge([delta, epoch_delta(record)]), head))
        return record

    def epochs(
        self, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> list[EpochRecord]:
        # No epoch is outside of these bounds; a number far outside has no key.
        first, end = max(0, after or 0) + 1, self._head.epoch + 1
        end = end if before is None else min(end, before)
        if first >= end:
            return []
        if last is not None:
            numbers = self._epochs_within(first, end, ["state_version"])["epoch"]
            first = numbers[max(0, len(numbers) - last)].as_py() if len(numbers) else end
        return read_epochs(self._epochs_within(first, end).to_pylist())

    def epoch(self, epoch: int) -> EpochRecord | None:
        return next(iter(self.epochs(after=epoch - 1, before=epoch + 1)), None)

    def epoch_times(self) -> pa.Table:
        columns = ["committed_at", "state_version"]
        return self._epochs_within(1, self._head.epoch + 1, columns).select(["epoch", *columns])

    def _epochs_within(self, first: int, end: int, fields: Sequence[str] | None = None) -> pa.Table:
        """The rows of the epochs from `first` to before `end`, oldest first."""
        rows = self.scan("epoch", start=encode_key(first), end=encode_key(end), fields=fields)
        return rows.sort_by("epoch")

    def wait_epoch(self, epoch: int, timeout_s: float) -> HeadSwapStore:
        deadline = self._clock.monotonic() + timeout_s
        store = self
        while store.head.epoch < epoch:
            store = store.reopen()
            if store.head.epoch >= epoch:
                break
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                raise EpochNotFoundError(
                    f"epoch {epoch} was not committed within {timeout_s:g} s: the last epoch is {store.head.epoch}; "
                    "look at the status of the pipeline, or wait longer"
                )
            self._clock.sleep(min(_POLL_S, remaining_s))
        return store

    def amend(
        self,
        delta: Delta | None = None,
        *,
        tags: Mapping[str, int] | None = None,
        views: Mapping[str, ViewVersion] | None = None,
    ) -> None:
        self._check_writable()
        head = self._head if tags is None else replace(self._head, tags=dict(tags))
        head = head if views is None else replace(head, views=dict(views))
        self._commit(self._stage(delta, head))

    def commit_fold(self, fold: StagedFold) -> None:
        self._check_writable()
        if fold.term != self._head.term:
            raise ProtocolError(f"a fold of term {fold.term} is not valid in term {self._head.term}: stage another")
        self._commit(self._stage_fold_swap(fold, self._head))

    def _tags_with(self, published: int | None) -> Mapping[str, int]:
        """All tags, with the tag `published` at this epoch: 0 for none, None for the present one."""
        if published is None:
            return self._head.tags
        others = {name: at for name, at in self._head.tags.items() if name != PUBLISHED}
        return {**others, PUBLISHED: published} if published else others

    def _check_writable(self) -> None:
        if self._read_only:
            raise ProtocolError("this handle was opened for reading: it cannot commit")
        if self._out_of_date:
            raise CommitRefusedError("a commit through this handle was refused before: open a new handle and take over")

    def _commit(self, staged: StagedSwap) -> None:
        try:
            self._swap(staged)
        except (CommitRefusedError, CommitUnknownError) as error:
            self._out_of_date = True
            self._settle(staged, error)
            self._out_of_date = False
        try:
            self._persist()
        except StorageError as error:
            self._out_of_date = True
            with suppress(StorageError):
                # Another owner may have removed the version that was to be synced.
                self._check_term(self.reopen(), staged, f"epoch {staged.head.epoch} was committed before", error)
            raise CommitUnknownError(
                f"epoch {staged.head.epoch} is committed, and may not survive a power cut ({error}): start again when "
                "the disk answers; committed epochs are kept"
            ) from error

    def _settle(self, staged: StagedSwap, error: CommitRefusedError | CommitUnknownError) -> None:
        try:
            fresh = self.reopen()
            name = fresh._swap_name(self._version + 1)
            if name == staged.name:
                try:
                    self._adopt(self.reopen(self._version + 1))
                    return
                except NotFoundError:
                    pass  # another process has vacuumed it at this moment
        except StorageError as unreadable:
            raise CommitUnknownError(
                f"the outcome of the commit of epoch {staged.head.epoch} is not known, and the store does not answer "
                f"({unreadable}): start again when it answers; committed epochs are kept"
            ) from error
        epoch = staged.head.epoch
        written = {
            staged.name: f"epoch {epoch} was committed before",
            None: f"it is not known whether epoch {epoch} was committed before",  # its version was vacuumed
        }.get(name, f"nothing of epoch {epoch} was written")
        self._check_term(fresh, staged, written, error)
        raise CommitRefusedError(
            f"the commit of epoch {staged.head.epoch} was refused and wrote nothing ({error}): recover from epoch "
            f"{fresh.head.epoch}"
        ) from error

    def _check_term(self, fresh: HeadSwapStore, staged: StagedSwap, written: str, error: SlackwaterError) -> None:
        """Raises FencedError, with the text of `written`, if another process has taken the root over."""
        own_late_take_over = staged.head.run and fresh.head.run == staged.head.run
        if fresh.head.term != self._head.term and not own_late_take_over:
            raise FencedError(
                f"another process has taken this root over (its term is {fresh.head.term}, ours was "
                f"{self._head.term}): this process stops; {written}"
            ) from error
