"""The Lance dataset of a view, or of its partials: one writer, one commit after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from lance import FragmentMetadata, LanceOperation, Transaction
from lance.fragment import write_fragments

from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.later_commits import Commit, begin_commit
from spark_bridge.datasets.row_deletions import RowDeletions
from spark_bridge.datasets.small_rows import SmallRows
from spark_bridge.work_cost import count
from state.errors import CommitRefusedError, CommitUnknownError, StorageUnavailableError
from state.lance.dataset_files import DatasetFiles
from state.lance.filtered_scan import filtered_scan
from state.lance.lance_access import create_dataset, create_of_fragments, open_dataset
from state.lance.row_address import ADDRESS
from state.location import Location
from state.objects.storage_error import storage_error
from state.tables.epoch_trace import WorkCost
from state.tables.group_key import KEY_COLUMN
from state.tables.lance_layout import with_schema
from state.tables.stored_rows import FILE_FIELD, HASH_FIELD, JOIN_FIELD, ORIGIN_FIELD, PATH_COLUMN
from state.upkeep.fold_plan import due_runs, newest_to_merge

_INDEX_FROM_ROWS = 10_000
_TIDY_EVERY_COMMITS = 16
_FRAGMENT_FACTOR = 8
_INDEX_FACTOR = 4
_FLOOR = 4_096
_FULL = 100_000
# A look-up of a thousand keys takes 3 ms for each piece of the index; a merge takes 1 s for a million rows.
_FULL_INDEX = 250_000
_MOST_INDEXES = 64
# To read these rows without an index takes as long as a look-up in one more piece.
_INDEX_PIECE = 65_536
_ROW_BYTES = 64
# A key that is looked up takes as long as a scan of a hundred rows; all rows of a large dataset take memory, too.
_SCAN_FROM_SHARE = 0.05
_SCAN_FROM_SHARE_OF_PART = 0.01
# The cache grows with the data read into it: the index of five million groups needs 150 MB.
_INDEX_CACHE_BYTES = 256 << 20
_PART_ROWS = 50_000
# Each of these columns has an index: `exchange` and `rows_of` take the first that a dataset has, corrections the file.
_KEYS = (KEY_COLUMN, ORIGIN_FIELD.name, HASH_FIELD.name, JOIN_FIELD.name, FILE_FIELD.name, PATH_COLUMN)


_log = structlog.get_logger(actor="materializer")

NewRows: TypeAlias = pa.Table | Sequence[FragmentMetadata]
"""Rows, or the staged fragments that have them."""


def view_path(name: str, epoch: int) -> str:
    """Path below the root of a view that an epoch creates; never used twice."""
    return f"views/{name}-{epoch}.lance"


def empty_path(name: str, epoch: int) -> str:
    """Path below the root of a view that fails in its first epoch."""
    return f"views/{name}-{epoch}-empty.lance"


def state_path(name: str, epoch: int) -> str:
    """Path below the root of a view's separately stored partials."""
    return f"view_state/{name}-{epoch}.lance"


def distinct_path(name: str, epoch: int) -> str:
    """Path below the root of the values that a view with DISTINCT has seen."""
    return f"view_state/{name}-{epoch}-distinct.lance"


def time_in_sql(us: int, kind: pa.DataType) -> str:
    """A time of microseconds since 1970 in the SQL of conditions, of the type of a column."""
    zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"arrow_cast({us}, 'Timestamp(Microsecond, {zone})')"


@dataclass(frozen=True)
class _Found:
    """The result of a look-up: the addresses of the rows with some keys, at one version."""

    version: int
    keys: pa.Array
    addresses: npt.NDArray[np.uint64]


class ViewTable:
    """A handle on a dataset, always at the version that it wrote last.

    Every commit must make exactly the next version.  Another version means that another process has written, and
    raises CommitRefusedError.  Slackwater's readers see a version after an epoch record names it.

    In the work on an epoch a change begins a commit, and returns, see `LaterCommits`: an error of the commit is raised
    by the next call that needs the dataset, and at the end of the epoch.

    Args:
        dataset: a handle on the version to continue from.
    """

    def __init__(self, location: Location, dataset: lance.LanceDataset) -> None:
        self._location = location
        self._committed: Commit = lambda: dataset
        self._version = int(dataset.version)
        self._commits = 0
        self._deletions = RowDeletions(location)
        self._files = DatasetFiles(location)
        self._small = SmallRows()
        self._found: _Found | None = None
        self._can_tidy = True
        # Columns whose index was wrong, and wrong again when it was rebuilt.
        self._scanned = set[str]()
        self._keys = [name for name in _KEYS if name in dataset.schema.names]
        self._indexed = bool(self._keys) and self._indices().keys() >= {*self._keys}
        self._unindexed = 0 if self._indexed else int(dataset.count_rows())

    @classmethod
    def create(cls, location: Location, rows: pa.Table) -> ViewTable:
        """Creates the dataset with its first rows.

        Raises:
            CommitRefusedError: it exists already.
        """
        table = cls.open(location, create_dataset(location, rows).version)
        count(_written([each.metadata for each in table._dataset.get_fragments()]))
        return table

    @classmethod
    def create_of_fragments(
        cls, location: Location, schema: pa.Schema, fragments: Sequence[FragmentMetadata]
    ) -> ViewTable:
        """Creates the dataset from staged fragments.

        Raises:
            CommitRefusedError: it exists already.
        """
        return cls.open(location, create_of_fragments(location, schema, fragments).version)

    @classmethod
    def open(cls, location: Location, version: int) -> ViewTable:
        """Opens one version; only the latest version can be written to."""
        return cls(location, open_dataset(location, version, index_cache_bytes=_INDEX_CACHE_BYTES))

    @property
    def _dataset(self) -> lance.LanceDataset:
        """The handle on the version that was written last, when its commit is over."""
        return self._committed()

    @property
    def location(self) -> Location:
        return self._location

    @property
    def version(self) -> int:
        """The version that changed rows last; tidying makes later versions with the same rows."""
        return self._version

    @property
    def num_rows(self) -> int:
        """Number of rows, known without reading them."""
        return int(self._dataset.count_rows())

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @property
    def _by(self) -> str:
        """The column of the keys by which rows are exchanged."""
        assert self._keys, "rows without a key are not looked up"
        return self._keys[0]

    def added_since(self, before: lance.LanceDataset) -> tuple[int, ...]:
        """The numbers of the fragments that an earlier version of the rows lacks."""
        known = {each.fragment_id for each in before.get_fragments()}
        return tuple(each.fragment_id for each in self._dataset.get_fragments() if each.fragment_id not in known)

    def snapshot(self) -> lance.LanceDataset:
        """A handle on the rows as they are now, with their indexes; later changes do not show in it."""
        return self._dataset.checkout_version(self._dataset.version)

    def parts(self, columns: Collection[str]) -> Iterator[pa.Table]:
        """Yields all rows, in tables of some ten thousand; one without rows if there are none."""
        names, batches = [*dict.fromkeys(columns)], list[pa.RecordBatch]()
        if self.num_rows == 0:
            yield self._dataset.to_table(columns=names, limit=0)
        for batch in self._dataset.to_batches(columns=names, batch_size=_PART_ROWS):
            batches.append(batch)
            if sum(each.num_rows for each in batches) >= _PART_ROWS:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)

    def append(self, rows: NewRows) -> None:
        """Appends rows; none make no new version."""
        if has_rows(rows):
            self._follow(np.empty(0, np.uint64), rows)
            self._commit(
                lambda dataset: Transaction(dataset.version, LanceOperation.Append(self._staged(dataset, rows))), rows
            )

    def add_columns(self, columns: pa.Schema) -> None:
        """Adds columns at the end, null in all present rows.  Append rows next: only rows change `version`."""
        expected = self._dataset.version + 1
        try:
            with self._files.rewriting(self._dataset):
                self._dataset.add_columns(columns)
        except (OSError, RuntimeError) as error:
            raise _commit_error(self._location, error) from error
        self._check(expected, self._dataset.version)

    def upsert(self, rows: pa.Table) -> None:
        """Inserts rows, and replaces the rows with the same keys.

        It is cheap after `rows_of` with the same keys, which finds their addresses.

        Args:
            rows: one row for each key.
        """
        self._update(self._addresses(rows.column(self._by).combine_chunks()), rows)

    def replace(self, rows: NewRows) -> None:
        """Replaces all rows."""
        before = [fragment.fragment_id for fragment in self._dataset.get_fragments()]

        def update(dataset: lance.LanceDataset) -> Transaction:
            new = self._staged(dataset, rows)
            # Lance would not refuse an Overwrite after a commit of another process.
            update = LanceOperation.Update(removed_fragment_ids=before, new_fragments=new)
            return Transaction(dataset.version, update)

        self._follow(None, rows)
        self._commit(update, rows)

    def exchange(self, keys: pa.Array, rows: NewRows) -> None:
        """Makes the dataset hold, of the rows with these keys, exactly the given ones; no change makes no new version.

        Args:
            keys: each once.
            rows: any number of them for each of the keys.
        """
        addresses = self._addresses(keys)
        if len(addresses) or has_rows(rows):
            self._update(addresses, rows)

    def delete(self, keys: pa.Array) -> None:
        """Deletes the rows with these keys."""
        self._update(self._addresses(keys), [])

    def delete_where(self, condition: str) -> None:
        """Deletes the rows that fulfil a SQL condition; no such row makes no new version."""
        self.exchange_where([condition], self._dataset.schema.empty_table())

    def exchange_where(self, conditions: Iterable[str], rows: NewRows) -> None:
        """Deletes the rows that fulfil a condition of SQL, and appends others; no change makes no new version."""
        try:
            found = [self._dataset.to_table(columns=[], filter=each, with_row_address=True) for each in conditions]
        except (OSError, RuntimeError) as error:
            raise _commit_error(self._location, error) from error
        addresses = np.concatenate([np.empty(0, np.uint64), *(each.column(ADDRESS).to_numpy() for each in found)])
        if len(addresses):
            self._update(np.unique(addresses), rows)
        else:
            self.append(rows)

    def update_where(self, values: Mapping[str, str], condition: str) -> None:
        """Sets columns of the rows that fulfil a condition.  Values and condition are SQL."""
        self._rewrite(lambda: self._dataset.update(dict(values), condition))

    def _rewrite(self, change: Callable[[], object]) -> None:
        before = self._dataset.version
        try:
            with self._files.rewriting(self._dataset):
                change()
        except (OSError, RuntimeError) as error:
            raise _commit_error(self._location, error) from error
        if self._dataset.version != before:
            self._deletions.forget()
            self._check(before + 1, self._dataset.version)
            self._version = int(self._dataset.version)
            self._commits += 1

    def rows_of(self, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The stored rows with these keys, in any order; a key without a row is left out."""
        wanted = [self._by, *[column for column in columns if column != self._by]]
        rows = self._look_up(keys, wanted)
        count(WorkCost(found=rows.num_rows))
        addresses = rows.column(ADDRESS).to_numpy()
        self._found = _Found(self._dataset.version, keys, addresses)
        return rows.drop_columns(ADDRESS)

    def count_of(self, keys: pa.Array) -> int:
        """The number of the stored rows with these keys, which are not read; `exchange` of these keys is cheap next."""
        addresses = self._addresses(keys)
        count(WorkCost(found=len(addresses)))
        self._found = _Found(self._dataset.version, keys, addresses)
        return len(addresses)

    def take_where(self, condition: str) -> pa.Table:
        """Deletes the rows that fulfil a condition of SQL, and returns them; no such row makes no new version."""
        rows = self._dataset.to_table(filter=condition, with_row_address=True)
        count(WorkCost(found=rows.num_rows))
        if rows.num_rows:
            self._update(rows.column(ADDRESS).to_numpy(), [])
        return rows.drop_columns(ADDRESS)

    def _look_up(self, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The stored rows with these keys, and their addresses."""
        small = self._small.read(self._dataset) if len(keys) else None
        if small is None:
            return look_up(self._dataset, self._by, keys, columns)
        return small.filter(pc.is_in(small.column(self._by), value_set=keys)).select([*columns, ADDRESS])

    def _addresses(self, keys: pa.Array) -> npt.NDArray[np.uint64]:
        """The addresses of the stored rows with these keys."""
        if not len(keys):
            return np.empty(0, np.uint64)
        found = self._found
        if found is not None and found.version == self._dataset.version and found.keys.equals(keys):
            return found.addresses
        addresses: npt.NDArray[np.uint64] = self._look_up(keys, []).column(ADDRESS).to_numpy()
        return addresses

    def staged(self, rows: NewRows) -> list[FragmentMetadata]:
        """Writes rows as fragments that no version names yet, if they are not written."""
        return self._staged(self._dataset, rows)

    def _staged(self, dataset: lance.LanceDataset, rows: NewRows) -> list[FragmentMetadata]:
        if not isinstance(rows, pa.Table):
            return [*rows]
        try:
            return write_fragments(rows, dataset, mode="append") if rows.num_rows else []
        except (OSError, RuntimeError, pa.ArrowException) as error:
            if _is_of_rows(error, self._location):
                raise
            raise _commit_error(self._location, error) from error

    def _update(self, addresses: npt.NDArray[np.uint64], rows: NewRows) -> None:
        """Deletes the rows at these addresses and appends others, in one version."""
        rest = self._small.rest(self._dataset, addresses, rows) if isinstance(rows, pa.Table) else None
        if rest is not None:
            assert isinstance(rows, pa.Table), "there is a rest"
            self.replace(pa.concat_tables([rest, with_schema(rows.select(rest.schema.names), rest.schema)]))
            return

        def update(dataset: lance.LanceDataset) -> Transaction:
            transaction = Transaction(dataset.version, LanceOperation.Update())
            new = self._staged(dataset, rows)
            try:
                changed, removed = self._deletions.stage(dataset, addresses, UUID(transaction.uuid))
            except (OSError, RuntimeError) as error:
                raise _commit_error(self._location, error) from error
            update = LanceOperation.Update(removed_fragment_ids=removed, updated_fragments=changed, new_fragments=new)
            return replace(transaction, operation=update)

        self._follow(addresses, rows)
        self._commit(update, rows)

    def _follow(self, addresses: npt.NDArray[np.uint64] | None, rows: NewRows) -> None:
        """Notes a change before its commit, see `SmallRows.follow`."""
        new = rows if isinstance(rows, pa.Table) else None if rows else self._dataset.schema.empty_table()
        self._small.follow(self._dataset, addresses, new)

    def tidy(self, audit: IndexAudit | None = None) -> bool:
        """Does one bounded task that keeps look-ups and commits fast, due after 16 commits or after many new rows.

        It merges pieces of the index first and then the fragments that they cover: Lance does not merge fragments of
        different pieces.  Both merge in tiers, and large ones stay as they are, so that each task is small.  After a
        take-over has restored the view, Lance refuses these commits like all others.

        Args:
            audit: checks the indexes afterwards; None for no check.

        Returns:
            Whether a task was due.

        Raises:
            CommitRefusedError, CommitUnknownError: as for any commit; the run recovers.
        """
        # Each look-up reads all rows that the index does not cover.
        is_long = bool(self._keys) and self._unindexed >= (_FULL if self._indexed else _INDEX_FROM_ROWS)
        has_pieces = self._commits >= _TIDY_EVERY_COMMITS
        if not self._can_tidy or (not is_long and not has_pieces):
            return False
        self._unindexed = 0
        self._deletions.forget()
        try:
            with self._files.rewriting(self._dataset):
                if self._keys:
                    self._index()
                if has_pieces:
                    self._commits = 0
                    self._compact()
                if audit is not None:
                    self._scanned |= audit.check(self._location, self._dataset, self._keys)
        except (OSError, RuntimeError, ValueError, NotImplementedError) as error:
            if not _is_of_rows(error, self._location):
                raise _commit_error(self._location, error) from error
            # The rows are as before, and right.  The run must not end with each attempt to make them faster.
            self._can_tidy = False
            _log.warning("a dataset is no longer compacted", dataset=str(self._location), error=str(error))
        return True

    def _index(self) -> None:
        names = self._indices()
        if self._indexed:
            for name in names.values():
                stats = self._dataset.stats.index_stats(name)
                if stats["num_unindexed_rows"] < _INDEX_PIECE:
                    self._unindexed = max(self._unindexed, stats["num_unindexed_rows"])
                    continue
                sizes = stats["num_indexed_rows_per_delta"]
                merged = newest_to_merge(sizes, full=_FULL_INDEX, factor=_INDEX_FACTOR, most=_MOST_INDEXES)
                self._dataset.optimize.optimize_indices(num_indices_to_merge=merged, index_names=[name])
        elif self._dataset.count_rows() >= _INDEX_FROM_ROWS:
            for key in self._keys:
                if key not in names and key not in self._scanned:
                    self._dataset.create_scalar_index(key, "BTREE")
            self._indexed = True

    def _indices(self) -> dict[str, str]:
        """Key column → the name of its index, of those that have one."""
        indices = self._dataset.describe_indices()
        return {key: index.name for index in indices for key in self._keys if key in index.field_names}

    def _compact(self) -> None:
        fragments = self._dataset.get_fragments()
        own = [each for each in fragments if not _is_shared(each)]
        runs = due_runs([_size(each) for each in own], floor=_FLOOR, full=_FULL, factor=_FRAGMENT_FACTOR)
        if runs:
            merged = {own[at].fragment_id for run in runs for at in run}
            others = [each.fragment_id for each in fragments if each.fragment_id not in merged]
            self._dataset.optimize.compact_files(target_rows_per_fragment=_FULL, excluded_fragment_ids=others)

    def _commit(self, change: Callable[[lance.LanceDataset], Transaction], rows: NewRows) -> None:
        """Makes the next version.

        Args:
            change: stages files, and tells what the commit does with them.
            rows: those that come.
        """
        dataset = self._dataset
        expected = int(dataset.version) + 1
        nbytes = rows.nbytes if isinstance(rows, pa.Table) else 0
        self._committed = begin_commit(
            self._location, lambda: self._changed(dataset, change(dataset), expected), nbytes
        )
        self._version = expected
        self._commits += 1
        self._unindexed += rows.num_rows if isinstance(rows, pa.Table) else _written(rows).written
        self._found = None

    def _changed(self, dataset: lance.LanceDataset, transaction: Transaction, expected: int) -> lance.LanceDataset:
        operation = transaction.operation
        if isinstance(operation, LanceOperation.Append):
            new = operation.fragments
            self._files.sync_fragments(new)
        else:
            new = operation.new_fragments
            self._files.sync_fragments(new, operation.updated_fragments)
        try:
            committed = lance.LanceDataset.commit(dataset, transaction, max_retries=0)
        except (OSError, RuntimeError) as error:
            raise _commit_error(self._location, error) from error
        self._check(expected, committed.version)
        self._files.sync_version(committed.version)
        count(_written(new))
        return committed

    def _check(self, expected: int, written: int) -> None:
        if written != expected:
            raise CommitRefusedError(
                f"{self._location}: version {expected} was due and {written} was written, so another process has "
                "written to this view; recover from the last commit"
            )


def look_up(dataset: lance.LanceDataset, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
    """The rows of a dataset with some keys, in any order, and their addresses in the column `_rowaddr`.

    Args:
        dataset: at the version to read.
        by: the column of the keys.
        keys: those that are wanted; a key may have no row, or many.
        columns: the columns to read; none of them if only the addresses are wanted, which is half the work.
    """
    stored = dataset.count_rows()
    if stored == 0 or len(keys) == 0:
        return dataset.to_table(columns=columns, limit=0, with_row_address=True)
    if len(keys) >= stored * (_SCAN_FROM_SHARE_OF_PART if stored <= _PART_ROWS else _SCAN_FROM_SHARE):
        rows = dataset.to_table(columns=list(dict.fromkeys([by, *columns])), with_row_address=True)
        found = rows.filter(pc.is_in(rows.column(by), value_set=keys))
        return found if by in columns else found.drop_columns(by)
    return filtered_scan(dataset, pc.field(by).isin(keys), columns, with_row_address=True).to_table()


def has_rows(rows: NewRows) -> bool:
    """Whether there is a row."""
    return bool(rows.num_rows if isinstance(rows, pa.Table) else rows)


def _written(fragments: Sequence[FragmentMetadata]) -> WorkCost:
    sizes = (file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    return WorkCost(written=sum(int(each.physical_rows) for each in fragments), written_bytes=sum(sizes))


def _size(fragment: lance.LanceFragment) -> int:
    """The costs of rewriting a fragment, in rows; a wide row counts as several."""
    metadata = fragment.metadata
    written_bytes = sum(file.file_size_bytes or 0 for file in metadata.files)
    rows = int(fragment.count_rows())
    return max(rows, written_bytes * rows // (max(1, int(metadata.physical_rows)) * _ROW_BYTES))


def _is_shared(fragment: lance.LanceFragment) -> bool:
    """True if the rows are in the files of another dataset, as those that a branch begins with.

    They stay as they are: a compaction would copy them, and Lance 14 then looks for the index that it has changed in
    the other dataset.
    """
    return any(file.base_id is not None for file in fragment.metadata.files)


def _is_of_rows(error: Exception, location: Location) -> bool:
    """True if rows could not be written or indexed, although the store works and no other process has written."""
    if isinstance(error, OSError) or isinstance(_commit_error(location, error), CommitRefusedError):
        return False
    return type(storage_error(error, location)) is StorageUnavailableError


def _commit_error(location: Location, error: Exception) -> CommitRefusedError | CommitUnknownError:
    """Refused if Lance reports a conflict with another commit; otherwise the outcome is unknown."""
    if any(
        word in str(error).lower() for word in ("incompatible", "conflict", "already exists", "too many concurrent")
    ):
        return CommitRefusedError(f"{location}: another process has written to this view; recover from the last commit")
    return CommitUnknownError(f"{storage_error(error, location)}; the outcome of the commit is not known")
