"""The store on Lance: `<root>/state.lance`, where one commit is one epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import FragmentMetadata, write_fragments

from state.clock import Clock
from state.errors import (
    CommitRefusedError,
    CommitUnknownError,
    EpochExpiredError,
    EpochNotFoundError,
    NotFoundError,
    ProtocolError,
    StorageError,
    StoreNotFoundError,
)
from state.lance.lance_access import create_dataset, open_dataset
from state.lance.store_format import check_format, stamped_schema
from state.location import Location
from state.objects.storage_error import storage_error
from state.store.head_swap import HeadSwapStore, StagedSwap
from state.store.store import StagedFold
from state.tables.delta import Delta
from state.tables.record_rows import head_delta, read_head
from state.tables.records import Head
from state.tables.resolve import resolve
from state.tables.row_selection import Clue, RowSelection
from state.tables.tables import PATCH, row_column, row_type, state_rows
from state.upkeep.fold import StateFolder
from state.upkeep.pin import Pin

_COMMIT_TIMEOUT = timedelta(seconds=60)


class LanceStateStore(HeadSwapStore):
    """A handle on `<root>/state.lance`.

    A commit stages the epoch's rows as one file and the new head as another, and makes both visible with one Lance
    `Update` that puts the new file into the fragment of the head.  Lance refuses it if any later version has changed
    the same fragment.  Every version does, so the last one alone is enough for a refusal, even after a vacuum.  (If
    each commit replaced the fragment of the head by a new one, only the very next version would conflict, and the
    commit of a process that slept until the vacuum of that version would be accepted.)

    The format is in the metadata of the dataset's schema, which opening reads anyway; a store of another format is
    refused there.
    """

    def __init__(self, root: Location, clock: Clock, dataset: lance.LanceDataset, *, read_only: bool = False) -> None:
        check_format(dataset.schema, root)
        fragment_id, head = _find_head(dataset, root)
        super().__init__(clock, head, dataset.version, read_only=read_only)
        self._root = root
        self._dataset = dataset
        self._head_fragment_id = fragment_id
        self._folder = StateFolder()

    @classmethod
    def create(cls, root: Location, clock: Clock) -> LanceStateStore:
        """A new store.

        Raises:
            CommitRefusedError: a store exists already; of two simultaneous creators one gets this.
            StorageError: the root cannot be written.
        """
        rows = state_rows(head_delta(Head(0, 0)).tables.items(), 0)
        return cls(root, clock, create_dataset(dataset_location(root), rows, stamped_schema()))

    @classmethod
    def open(cls, root: Location, clock: Clock, *, read_only: bool = False) -> LanceStateStore:
        """The store as it is now.

        Raises:
            StoreNotFoundError: the root has no store.
            RootMismatchError: the store has another format.
            StorageError: the root cannot be read.
        """
        try:
            dataset = open_dataset(dataset_location(root))
        except StoreNotFoundError:
            raise StoreNotFoundError(f"there is no Slackwater store at {root}: run a pipeline with this root") from None
        return cls(root, clock, dataset, read_only=read_only)

    @classmethod
    def create_or_open(cls, root: Location, clock: Clock) -> LanceStateStore:
        """The store, created if missing; of two first starts at once, one creates it and the other opens it."""
        try:
            return cls.open(root, clock)
        except StoreNotFoundError:
            pass
        try:
            return cls.create(root, clock)
        except CommitRefusedError:
            return cls.open(root, clock)

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
        selection = RowSelection(start, end, vnodes, keys)
        return resolve(table, self._stored(table, state_version, selection, fields))

    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.scan(table, state_version=state_version).to_pylist()
        return rows

    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None:
        found = resolve(table, self._stored(table, state_version, RowSelection.of_key(key))).to_pylist()
        return found[0] if found else None

    @contextmanager
    def pin(self, epoch: int) -> Iterator[None]:
        """Keeps an epoch from the vacuum while the context lasts.

        Raises:
            EpochNotFoundError: the epoch is not, or no longer, retained.
            StorageError: the root cannot be written; without write access an epoch stays by the retention only.
        """
        with Pin(self._root, self._clock, epoch):
            # The epoch may have expired before.  If the owner reads the pins just before this one is written, the
            # reader gets an EpochExpiredError; it never reads wrong rows.
            if all(record.epoch != epoch for record in self.reopen().epochs()):
                raise EpochNotFoundError(f"epoch {epoch} is not retained at {self._root}: choose a later one")
            yield

    def _stage(self, delta: Delta | None, head: Head) -> StagedSwap:
        try:
            operation = self._update(delta, head)
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._root) from None
        transaction = Transaction(self._version, operation, transaction_properties={"epoch": str(head.epoch)})
        return StagedSwap(transaction.uuid, head, transaction)

    def _update(self, delta: Delta | None, head: Head) -> LanceOperation.Update:
        new = []
        if delta is not None:
            new = [FragmentMetadata.from_json(staged.content) for staged in delta.staged]
            new += write_fragments(state_rows(delta.tables.items(), head.epoch), self._dataset, mode="append")
        return self._swap_of_head(head, new)

    def _swap_of_head(
        self, head: Head, new: Sequence[FragmentMetadata], removed: Sequence[int] = ()
    ) -> LanceOperation.Update:
        rows = state_rows(head_delta(head).tables.items(), head.epoch)
        [written] = write_fragments(rows, self._dataset, mode="append")
        return LanceOperation.Update(
            removed_fragment_ids=list(removed),
            updated_fragments=[replace(written, id=self._head_fragment_id)],
            new_fragments=list(new),
        )

    def stage_fold(self) -> StagedFold | None:
        head, dataset = self._head, self._dataset  # in this order: after a commit in between the dataset is newer
        try:
            return self._folder.stage(
                dataset, head_fragment_id=self._head_fragment_id, epoch=head.epoch, term=head.term
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._root) from None

    def _stage_fold_swap(self, fold: StagedFold, head: Head) -> StagedSwap:
        present = {fragment.fragment_id for fragment in self._dataset.get_fragments()}
        if not present.issuperset(fold.removed):
            raise ProtocolError(f"{self._root}: a fold replaces fragments that no longer exist: stage another")
        try:
            operation = self._swap_of_head(head, fold.new, fold.removed)
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._root) from None
        transaction = Transaction(self._version, operation, transaction_properties={"epoch": str(head.epoch)})
        return StagedSwap(transaction.uuid, head, transaction)

    def _swap(self, staged: StagedSwap) -> None:
        transaction: Transaction = staged.content
        try:
            dataset = lance.LanceDataset.commit(
                self._dataset, transaction, max_retries=0, commit_timeout=_COMMIT_TIMEOUT
            )
        except CommitConflictError as error:
            raise CommitRefusedError(f"version {self._version} is no longer the last version") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise CommitUnknownError(str(storage_error(error, self._root))) from None
        if dataset.version != self._version + 1:
            raise ProtocolError(
                f"{self._root}: the commit after version {self._version} became version {dataset.version}: something "
                "that is not Slackwater writes to state.lance; stop it and report this"
            )
        self._dataset = dataset
        self._version = dataset.version
        self._head = staged.head

    def reopen(self, version: int | None = None) -> LanceStateStore:
        dataset = open_dataset(dataset_location(self._root), version)
        return LanceStateStore(self._root, self._clock, dataset, read_only=self._read_only)

    def _adopt(self, fresh: LanceStateStore) -> None:
        self._dataset, self._head_fragment_id = fresh._dataset, fresh._head_fragment_id
        self._version, self._head = fresh._version, fresh._head

    def _swap_name(self, version: int) -> str | None:
        if version > self._version:
            return None
        try:
            transaction = self._dataset.read_transaction(version)
        except (OSError, ValueError) as error:
            reason = storage_error(error, self._root)
            if isinstance(reason, NotFoundError):
                return None  # vacuumed meanwhile
            raise reason from None
        return None if transaction is None else str(transaction.uuid)

    def find_keys(self, table: str, clues: Sequence[Clue], *, start: bytes, end: bytes) -> pa.ChunkedArray:
        """The keys of candidate rows, in no order, some twice: each clue fits the row as it was written at some time.

        Lance filters millions of rows without returning them.  The caller passes keys to `scan`, and checks the current
        rows.

        Args:
            table: a name of `TABLES`.
            clues: conditions on the written rows; none selects all.
            start: only keys of at least this.
            end: only keys of less than this.

        Raises:
            StorageError: the root cannot be read.
        """
        conditions = [clue.condition(table) for clue in clues]
        within = RowSelection(start, end).condition(table)
        found = self._keys_where(" AND ".join([within, *conditions]))
        if len(clues) < 2:
            return found
        # A row may fit one clue by a patch, and the others by an earlier write.
        patched = self._keys_where(f"{within} AND op = {PATCH} AND ({' OR '.join(conditions)})")
        for condition in conditions if len(patched) else ():
            patched = patched.filter(pc.is_in(patched, value_set=self._keys_where(f"{within} AND {condition}")))
        return pa.chunked_array([*found.chunks, *patched.chunks], pa.binary())

    def _keys_where(self, condition: str) -> pa.ChunkedArray:
        try:
            return self._dataset.to_table(columns=["key"], filter=condition)["key"]
        except (OSError, ValueError) as error:
            raise self._unreadable(error, self._version) from None

    def _stored(
        self, table: str, state_version: int | None, selection: RowSelection, fields: Sequence[str] | None = None
    ) -> pa.Table:
        dataset = self._at(state_version)
        columns = {name: name for name in ("vnode", "epoch", "op", "key")}
        if fields is None:
            columns["row"] = row_column(table)
        else:
            columns.update({f"row.{name}": f"{row_column(table)}.{name}" for name in fields})
        try:
            rows = dataset.to_table(columns=columns, filter=selection.condition(table))
        except (OSError, ValueError) as error:
            raise self._unreadable(error, dataset.version) from None
        return rows if fields is None else _with_row(table, fields, rows)

    def _at(self, state_version: int | None) -> lance.LanceDataset:
        if state_version is None or state_version == self._version:
            return self._dataset
        try:
            return self._dataset.checkout_version(state_version)
        except (OSError, ValueError) as error:
            raise self._unreadable(error, state_version) from None

    def _unreadable(self, error: Exception, state_version: int) -> StorageError | NotFoundError:
        """The error of a failed read; the files of a version also vanish during a read when its epoch expires."""
        reason = storage_error(error, self._root)
        if not isinstance(reason, NotFoundError):
            return reason
        return EpochExpiredError(
            f"version {state_version} of the store at {self._root} is not retained: choose a later epoch; a tag or a "
            "pin keeps an epoch"
        )


def dataset_location(root: Location) -> Location:
    """The location of the store of a root."""
    return root.child("state.lance")


def _with_row(table: str, fields: Sequence[str], rows: pa.Table) -> pa.Table:
    """The same rows with the columns `row.<field>` as one struct column `row`."""
    values = [rows[f"row.{name}"].combine_chunks() for name in fields]
    row = pa.StructArray.from_arrays(values, fields=list(row_type(table, fields)))
    return rows.select(["vnode", "epoch", "op", "key"]).append_column("row", row)


def _find_head(dataset: lance.LanceDataset, root: Location) -> tuple[int, Head]:
    for fragment in dataset.get_fragments():
        if fragment.count_rows() == 1:
            rows = fragment.to_table(columns=["table", row_column("head")])
            if rows["table"][0].as_py() == "head":
                return fragment.fragment_id, read_head(rows[row_column("head")][0].as_py())
    raise ProtocolError(f"the store at {root} has no head: restore the root from a copy, and report this")
