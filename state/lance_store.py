"""The store on Lance: `<root>/state.lance`, where one commit is one epoch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
from lance import LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import FragmentMetadata, write_fragments

from state.clock import Clock
from state.errors import (
    CommitRefusedError,
    CommitUnknownError,
    EpochNotFoundError,
    NotFoundError,
    ProtocolError,
    StoreNotFoundError,
)
from state.head_swap import HeadSwapStore, StagedSwap
from state.lance_access import create_dataset, open_dataset
from state.location import Location
from state.record_rows import head_row, read_head
from state.records import Head
from state.storage_error import storage_error
from state.tables import STATE_SCHEMA, row_column, state_rows

_COMMIT_TIMEOUT = timedelta(seconds=60)


class LanceStateStore(HeadSwapStore):
    """A handle on `<root>/state.lance`.

    A commit stages the epoch's rows as one file and the new head as another, and shows both with one Lance `Update`
    that removes the fragment of the old head; Lance refuses it if that fragment is gone.  The handle remembers which
    fragment its head is, so that no commit searches for it.
    """

    def __init__(self, root: Location, clock: Clock, dataset: lance.LanceDataset, *, read_only: bool = False) -> None:
        fragment_id, head = _find_head(dataset, root)
        super().__init__(clock, head, dataset.version, read_only=read_only)
        self._root = root
        self._dataset = dataset
        self._head_fragment_id = fragment_id

    @classmethod
    def create(cls, root: Location, clock: Clock) -> LanceStateStore:
        """A new store.

        Raises:
            CommitRefusedError: there is one already; of two that create it at once, one gets this.
            StorageError: the root cannot be written.
        """
        rows = state_rows([("head", head_row(Head(0, 0)))], 0)
        return cls(root, clock, create_dataset(_dataset_location(root), rows, STATE_SCHEMA))

    @classmethod
    def open(cls, root: Location, clock: Clock, *, read_only: bool = False) -> LanceStateStore:
        """The store as it is now.

        Raises:
            StoreNotFoundError: there is none at this root.
            StorageError: the root cannot be read.
        """
        try:
            dataset = open_dataset(_dataset_location(root))
        except StoreNotFoundError:
            raise StoreNotFoundError(f"there is no Slackwater store at {root}: run a pipeline with this root") from None
        return cls(root, clock, dataset, read_only=read_only)

    @classmethod
    def create_or_open(cls, root: Location, clock: Clock) -> LanceStateStore:
        """The store, made if there is none; of two first starts at once, one creates it and the other opens it."""
        try:
            return cls.open(root, clock)
        except StoreNotFoundError:
            pass
        try:
            return cls.create(root, clock)
        except CommitRefusedError:
            return cls.open(root, clock)

    def _stage(self, rows: pa.Table | None, head: Head, head_rows: pa.Table) -> StagedSwap:
        try:
            new = [] if rows is None else write_fragments(rows, self._dataset, mode="append")
            new += write_fragments(head_rows, self._dataset, mode="append")
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._root) from None
        update = LanceOperation.Update(removed_fragment_ids=[self._head_fragment_id], new_fragments=new)
        transaction = Transaction(self._version, update, transaction_properties={"epoch": str(head.epoch)})
        return StagedSwap(transaction.uuid, head, transaction)

    def _swap(self, staged: StagedSwap) -> None:
        transaction: Transaction = staged.content
        try:
            dataset = lance.LanceDataset.commit(
                self._dataset, transaction, max_retries=0, commit_timeout=_COMMIT_TIMEOUT
            )
        except CommitConflictError as error:
            raise CommitRefusedError(f"the head of version {self._version} is no longer the last") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise CommitUnknownError(str(storage_error(error, self._root))) from None
        if dataset.version != self._version + 1:
            raise ProtocolError(
                f"{self._root}: the commit after version {self._version} became version {dataset.version}: something "
                "that is not Slackwater writes into state.lance; stop it and report this"
            )
        self._head_fragment_id = _fragment_after_commit(dataset, self._head_fragment_id, transaction)
        self._dataset = dataset
        self._version = dataset.version
        self._head = staged.head

    def reopen(self, version: int | None = None) -> LanceStateStore:
        dataset = open_dataset(_dataset_location(self._root), version)
        return LanceStateStore(self._root, self._clock, dataset, read_only=self._read_only)

    def _adopt(self, fresh: LanceStateStore) -> None:
        self._dataset, self._head_fragment_id = fresh._dataset, fresh._head_fragment_id
        self._version, self._head = fresh._version, fresh._head

    def _swap_name(self, version: int) -> str | None:
        if version > self._version:
            return None
        transaction = self._dataset.read_transaction(version)
        return None if transaction is None else str(transaction.uuid)

    def _stored(self, table: str, state_version: int | None) -> pa.Table:
        dataset = self._at(state_version)
        columns = ["vnode", "epoch", "op", "key", row_column(table)]
        try:
            rows = dataset.to_table(columns=columns, filter=f"`table` = '{table}'")
        except (OSError, ValueError) as error:
            raise storage_error(error, self._root) from None
        return rows.rename_columns(["vnode", "epoch", "op", "key", "row"])

    def _at(self, state_version: int | None) -> lance.LanceDataset:
        if state_version is None or state_version == self._version:
            return self._dataset
        try:
            return self._dataset.checkout_version(state_version)
        except (OSError, ValueError) as error:
            reason = storage_error(error, self._root)
            if isinstance(reason, NotFoundError):
                raise EpochNotFoundError(
                    f"version {state_version} of the store at {self._root} is not retained: choose a later epoch"
                ) from None
            raise reason from None


def _dataset_location(root: Location) -> Location:
    return root.child("state.lance")


def _find_head(dataset: lance.LanceDataset, root: Location) -> tuple[int, Head]:
    for fragment in reversed(dataset.get_fragments()):
        if fragment.count_rows() == 1:
            rows = fragment.to_table(columns=["table", row_column("head")])
            if rows["table"][0].as_py() == "head":
                return fragment.fragment_id, read_head(rows[row_column("head")][0].as_py())
    raise ProtocolError(f"the store at {root} has no head: restore it from a copy, and report this")


def _fragment_after_commit(dataset: lance.LanceDataset, old_head_id: int, transaction: Transaction) -> int:
    """The id that the commit gave to the head: new fragments are numbered in order, and the head is the last."""
    new: list[FragmentMetadata] = transaction.operation.new_fragments
    file_of_head = new[-1].files[0].path
    guess: Any = dataset.get_fragment(old_head_id + len(new))
    if guess is not None and guess.metadata.files[0].path == file_of_head:
        return old_head_id + len(new)
    for fragment in reversed(dataset.get_fragments()):
        if fragment.metadata.files[0].path == file_of_head:
            return int(fragment.fragment_id)
    raise ProtocolError(f"the head {file_of_head} is not in version {dataset.version} that committed it: report this")
