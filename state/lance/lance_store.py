"""The store on Lance: `<root>/state.lance`, where one commit is one epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

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
    DamagedStoreError,
    EpochExpiredError,
    EpochNotFoundError,
    NotFoundError,
    ProtocolError,
    StorageError,
    StoreNotFoundError,
)
from state.lance.dataset_files import DatasetFiles, disk_threads
from state.lance.fragment_stager import staged_fragments
from state.lance.lance_access import create_dataset, open_dataset
from state.lance.store_format import check_format, stamped_schema
from state.location import Location
from state.objects.storage_error import storage_error
from state.runs.directory import Directory
from state.runs.fragments import data_file
from state.runs.ledger_recount import recounted
from state.runs.sources import BlockIndexes
from state.runs.table_reader import TableReader, merged
from state.store.head_swap import HeadSwapStore, StagedSwap
from state.store.store import StagedFold
from state.tables.delta import Delta
from state.tables.keys import encode_key
from state.tables.ledger_counts import COUNTED, of_rows
from state.tables.record_rows import head_delta, read_head
from state.tables.records import Head
from state.tables.resolve import current_rows
from state.tables.row_selection import Clue, RowSelection
from state.tables.tables import FORMAT_VERSION, row_column, state_rows
from state.upkeep.fold import FoldSizes, StateFolder
from state.upkeep.pin import Pin

_METADATA_BYTES = 8 << 20
"""Lance caches some 200 KB for each version: a larger cache fills up with manifests of former versions."""
_COMMIT_TIMEOUT = timedelta(seconds=60)
_LOOKED_UP = 10_000
_COLUMNS = ("key", "vnode", "epoch")


class LanceStateStore(HeadSwapStore):
    """A handle on `<root>/state.lance`.

    A commit stages the epoch's rows as one file and the new head as another, and makes both visible with one Lance
    `Update` that puts the new file into the fragment of the head.  Lance refuses it if any later version has changed
    the same fragment.  Every version does, so the latest version alone is enough for a refusal, even after a vacuum.
    If each commit replaced the fragment of the head by a new one, only the very next version would conflict.  Then the
    commit of a process that slept until the vacuum of that version would be accepted.

    The format is in the metadata of the dataset's schema, which opening reads anyway; a store of another format is
    refused there.
    """

    fold_sizes: ClassVar[FoldSizes] = FoldSizes()

    def __init__(self, root: Location, clock: Clock, dataset: lance.LanceDataset, *, read_only: bool = False) -> None:
        check_format(dataset.schema, root)
        try:
            fixed, head = _find_fixed(dataset, root)
        except (OSError, ValueError) as error:
            raise storage_error(error, root) from None
        super().__init__(clock, head, dataset.version, read_only=read_only)
        self._root = root
        self._dataset = dataset
        self._files = DatasetFiles(dataset_location(root))
        self._fixed = fixed
        self._directory: tuple[str, Directory] = ("", Directory())
        self._indexes = BlockIndexes()
        self._folder = StateFolder(self._indexes, self.fold_sizes)

    @property
    def location(self) -> Location:
        return self._root

    @property
    def is_branch(self) -> bool:
        """True if the root is a branch, see `state.lance.branch_files`."""
        return bool(self._dataset.base_paths())

    @classmethod
    def create(cls, root: Location, clock: Clock) -> LanceStateStore:
        """A new store.

        Raises:
            CommitRefusedError: a store exists already; of two simultaneous creators one gets this.
            StorageError: the root cannot be written.
        """
        rows = Delta.merge([head_delta(Head(0, 0)), Directory().to_delta()])
        # One row in a fragment: the head and the directory, each in a fragment of its own for ever.
        created = create_dataset(dataset_location(root), state_rows(rows.tables.items(), 0), stamped_schema(), 1)
        return cls(root, clock, _open_version(dataset_location(root), created.version))

    @classmethod
    def open(cls, root: Location, clock: Clock, *, read_only: bool = False) -> LanceStateStore:
        """The store as it is now.  The owner's handle drops versions that a power cut has torn; readers skip them.

        Raises:
            StoreNotFoundError: the root has no store.
            RootMismatchError: the store has another format.
            StorageError: the root cannot be read, or is damaged.
        """
        if not read_only:
            DatasetFiles(dataset_location(root)).settle()
        return cls(root, clock, _open_latest(root), read_only=read_only)

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
        prefixes: Collection[bytes] | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> pa.Table:
        reader, version = self._reader(table, _read_fields(fields, where), state_version)
        selection = RowSelection(start, end, vnodes, keys, prefixes)
        with self._reading(version):
            parts = [_fitting(part, vnodes, where) for part in self._selected(reader, selection, where)]
        rows = pa.concat_tables(parts) if parts else current_rows(reader.empty())
        return rows if fields is None else rows.select([*_COLUMNS, *fields])

    def _selected(self, reader: TableReader, selection: RowSelection, where: Sequence[Clue]) -> Iterator[pa.Table]:
        """The latest rows, as written, that may be selected."""
        ranges = selection.ranges
        if ranges is None and where:
            candidates = reader.keys_where([clue.condition(reader.table) for clue in where], at_most=_LOOKED_UP + 1)
            if len(candidates) <= _LOOKED_UP:
                within = RowSelection(selection.start, selection.end, keys=candidates.to_pylist())
                ranges = within.ranges
        if ranges is not None:
            yield reader.of_ranges(ranges)
            return
        yield from reader.slices(selection.start, selection.end)

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
        reader, version = self._reader(table, _read_fields(fields, where), state_version)
        with self._reading(version):
            for part in self._selected(reader, RowSelection(start, end), where):
                rows = _fitting(part, None, where)
                rows = rows.sort_by("key") if where else rows
                yield rows if fields is None else rows.select([*_COLUMNS, *fields])

    def count_ledger(self, state_version: int | None = None) -> pa.Table:
        dataset = self._at(state_version)
        with self._reading(dataset.version):
            _, directory = self._directory_of(dataset)
            log = self._log_of(dataset, directory)
            read = partial(TableReader, dataset, indexes=self._indexes, table="ledger", fields=COUNTED)
            changes = merged("ledger", list(read(directory=Directory(), log=log).log_sources()))
            return recounted(of_rows(directory.counts), read(directory=directory, log=[]), changes)

    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.scan(table, state_version=state_version).to_pylist()
        return rows

    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None:
        found = self.scan(table, keys=[key], state_version=state_version).to_pylist()
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
            if self.reopen().get("epoch", encode_key(epoch)) is None:
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
        # At the same time as the rows of the epoch: writing a small file is mostly waiting.
        written = disk_threads().submit(self._write, _head_rows(head))
        try:
            new = [] if delta is None else self._written(delta, head.epoch)
        finally:
            wait([written])
        return self._swap_of_head(written.result(), new)

    def _written(self, delta: Delta, epoch: int) -> list[FragmentMetadata]:
        new = staged_fragments([staged.content for staged in delta.staged], self._clock)
        rows = state_rows(delta.tables.items(), epoch)
        written = self._write(rows)
        if len(written) == 1:
            self._indexes.recent.keep(written[0].files[0].path, rows)
        return new + written

    def _write(self, rows: pa.Table) -> list[FragmentMetadata]:
        written = write_fragments(rows, self._dataset, mode="append")
        assert isinstance(written, list)
        return written

    def _swap_of_head(
        self,
        head: Sequence[FragmentMetadata],
        new: Sequence[FragmentMetadata],
        removed: Sequence[int] = (),
        directory: FragmentMetadata | None = None,
    ) -> LanceOperation.Update:
        [written] = head
        updated = [replace(written, id=self._fixed.head)]
        if directory is not None:
            updated.append(replace(directory, id=self._fixed.directory))
        self._files.sync_fragments([*updated, *new])
        return LanceOperation.Update(
            removed_fragment_ids=list(removed), updated_fragments=updated, new_fragments=list(new)
        )

    @property
    def fold_interval(self) -> int:
        return self.fold_sizes.log_fragments

    def stage_fold(self) -> StagedFold | None:
        head, dataset = self._head, self._dataset  # in this order: after a commit in between the dataset is newer
        try:
            path, directory = self._directory_of(dataset)
            log = self._log_of(dataset, directory)
            fold = self._folder.stage(dataset, directory, log, directory_path=path, epoch=head.epoch, term=head.term)
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._root) from None
        if fold is not None:
            # Here, while commits continue: the commit of the fold then finds the files synced.
            self._files.sync_fragments([*fold.new, *([] if fold.directory is None else [fold.directory])])
        return fold

    def _stage_fold_swap(self, fold: StagedFold, head: Head) -> StagedSwap:
        present = {fragment.fragment_id for fragment in self._dataset.get_fragments()}
        directory = data_file(self._dataset.get_fragment(self._fixed.directory))
        if directory != fold.directory_before or not present.issuperset(fold.removed):
            raise ProtocolError(f"{self._root}: a fold replaces fragments that no longer exist: stage another")
        try:
            operation = self._swap_of_head(self._write(_head_rows(head)), fold.new, fold.removed, fold.directory)
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

    def _persist(self) -> None:
        self._files.sync_version(self._version)

    def reopen(self, version: int | None = None) -> LanceStateStore:
        if version is None:
            dataset = _open_latest(self._root)
        else:
            dataset = _open_version(dataset_location(self._root), version)
        return type(self)(self._root, self._clock, dataset, read_only=self._read_only)

    def _adopt(self, fresh: LanceStateStore) -> None:
        self._dataset, self._fixed = fresh._dataset, fresh._fixed
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
        reader, version = self._reader(table, None, None)
        within = ["true"]
        within += [] if start is None else [f"key >= X'{start.hex()}'"]
        within += [] if end is None else [f"key < X'{end.hex()}'"]
        with self._reading(version):
            return reader.keys_where([clue.condition(table) for clue in clues], " AND ".join(within))

    def _reader(self, table: str, fields: Sequence[str] | None, state_version: int | None) -> tuple[TableReader, int]:
        dataset = self._at(state_version)
        with self._reading(dataset.version):
            _, directory = self._directory_of(dataset)
            log = self._log_of(dataset, directory)
            return TableReader(dataset, directory, log, self._indexes, table, fields), dataset.version

    def _directory_of(self, dataset: lance.LanceDataset) -> tuple[str, Directory]:
        """The data file of the directory at a version, and its content."""
        fragment = dataset.get_fragment(self._fixed.directory)
        path = data_file(fragment)
        if self._directory[0] != path:
            [row] = fragment.to_table(columns=[row_column("directory")])[0].to_pylist()
            self._directory = path, Directory.of_row(row)
        return path, self._directory[1]

    def _log_of(self, dataset: lance.LanceDataset, directory: Directory) -> list[lance.LanceFragment]:
        """The fragments with rows that are not folded, in the order in which they were committed."""
        log = [
            fragment
            for path, fragment in self._indexes.fragments.of(dataset).by_path.items()
            if fragment.fragment_id not in (self._fixed.head, self._fixed.directory) and path not in directory.paths
        ]
        return sorted(log, key=lambda fragment: int(fragment.fragment_id))

    @contextmanager
    def _reading(self, version: int) -> Iterator[None]:
        """Turns errors of Lance into errors of the store."""
        try:
            yield
        except (OSError, ValueError) as error:
            raise self._unreadable(error, version) from None

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


def _open_latest(root: Location) -> lance.LanceDataset:
    """The last version; after a power cut the last whole one, since a torn one was never acknowledged."""
    location = dataset_location(root)
    files = DatasetFiles(location)
    no_store = f"there is no Slackwater store at {root}: run a pipeline with this root"
    try:
        dataset = _open_version(location, None)
        if files.is_whole(dataset.version):
            return dataset
    except StoreNotFoundError:
        raise StoreNotFoundError(no_store) from None
    except StorageError:
        if not location.is_local:
            raise
    whole = files.last_whole_version()
    if whole is None:
        raise StoreNotFoundError(no_store)
    return _open_version(location, whole)


def _open_version(location: Location, version: int | None) -> lance.LanceDataset:
    return open_dataset(location, version, metadata_cache_bytes=_METADATA_BYTES)


def _head_rows(head: Head) -> pa.Table:
    """A head as the one row of its fragment."""
    return state_rows(head_delta(head).tables.items(), head.epoch)


def _read_fields(fields: Sequence[str] | None, where: Sequence[Clue]) -> list[str] | None:
    return None if fields is None else list(dict.fromkeys([*fields, *(clue.field for clue in where)]))


def _fitting(latest: pa.Table, vnodes: Collection[int] | None, where: Sequence[Clue]) -> pa.Table:
    """The current rows of these vnodes that fit the clues."""
    rows = current_rows(latest)
    if vnodes is not None:
        rows = rows.filter(pc.is_in(rows["vnode"], value_set=pa.array(list(vnodes), pa.uint8())))
    for clue in where:
        rows = rows.filter(clue.fits(rows))
    return rows


@dataclass(frozen=True)
class _Fixed:
    """The ids of the fragments of the head and of the directory, which never change."""

    head: int
    directory: int


def _find_fixed(dataset: lance.LanceDataset, root: Location) -> tuple[_Fixed, Head]:
    found: dict[str, int] = {}
    for fragment in dataset.get_fragments():
        if fragment.count_rows() == 1:
            table = fragment.to_table(columns=["table"])["table"][0].as_py()
            found.setdefault(table, fragment.fragment_id)
            if {"head", "directory"} <= found.keys():
                rows = dataset.get_fragment(found["head"]).to_table(columns=[row_column("head")])
                return _Fixed(found["head"], found["directory"]), read_head(rows[0][0].as_py())
    raise DamagedStoreError(
        f"the root at {root} has format {FORMAT_VERSION}, but its state.lance has no head: the dataset is damaged, or "
        "another program writes to it; restore the root from a copy, or let the pipeline read its files into a new root"
    )
