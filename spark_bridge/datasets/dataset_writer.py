"""The versions of one dataset: one writer, one commit after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation, Transaction
from lance.fragment import write_fragments

from spark_bridge.datasets.later_commits import Commit, begin_commit
from spark_bridge.datasets.row_deletions import RowDeletions
from spark_bridge.work_cost import count
from state.errors import CommitRefusedError, CommitUnknownError, StorageUnavailableError
from state.lance.dataset_files import DatasetFiles
from state.location import Location
from state.objects.storage_error import storage_error
from state.tables.epoch_trace import WorkCost

NewRows: TypeAlias = pa.Table | Sequence[FragmentMetadata]
"""Rows, or the staged fragments that have them."""


class DatasetWriter:
    """Makes the versions of a dataset.

    Every commit must make exactly the next version.  Another version means that another process has written, and
    raises CommitRefusedError.

    In the work on an epoch a change begins a commit, and returns, see `LaterCommits`: an error of the commit is raised
    by the next call that needs the dataset, and at the end of the epoch.

    Args:
        dataset: a handle on the version to continue from.
    """

    def __init__(self, location: Location, dataset: lance.LanceDataset) -> None:
        self._location = location
        self._committed: Commit = lambda: dataset
        self._version = int(dataset.version)
        self._deletions = RowDeletions(location)
        self._files = DatasetFiles(location)

    @property
    def location(self) -> Location:
        return self._location

    @property
    def dataset(self) -> lance.LanceDataset:
        """The handle on the version that was written last, when its commit is over."""
        return self._committed()

    @property
    def version(self) -> int:
        """The version that changed rows last; `rewriting` makes later versions with the same rows."""
        return self._version

    def append(self, rows: NewRows) -> None:
        """Appends rows."""
        self._commit(
            lambda dataset: Transaction(dataset.version, LanceOperation.Append(self.staged(dataset, rows))), rows
        )

    def replace(self, rows: NewRows) -> None:
        """Replaces all rows."""
        before = [fragment.fragment_id for fragment in self.dataset.get_fragments()]

        def update(dataset: lance.LanceDataset) -> Transaction:
            new = self.staged(dataset, rows)
            # Lance would not refuse an Overwrite after a commit of another process.
            update = LanceOperation.Update(removed_fragment_ids=before, new_fragments=new)
            return Transaction(dataset.version, update)

        self._commit(update, rows)

    def exchange(self, addresses: npt.NDArray[np.uint64], rows: NewRows) -> None:
        """Deletes the rows at these addresses and appends others, in one version."""

        def update(dataset: lance.LanceDataset) -> Transaction:
            transaction = Transaction(dataset.version, LanceOperation.Update())
            new = self.staged(dataset, rows)
            try:
                changed, removed = self._deletions.stage(dataset, addresses, UUID(transaction.uuid))
            except (OSError, RuntimeError) as error:
                raise commit_error(self._location, error) from error
            update = LanceOperation.Update(removed_fragment_ids=removed, updated_fragments=changed, new_fragments=new)
            return replace(transaction, operation=update)

        self._commit(update, rows)

    def add_columns(self, columns: pa.Schema) -> None:
        """Adds columns at the end, null in all present rows; `version` stays."""
        expected = self.dataset.version + 1
        try:
            with self._files.rewriting(self.dataset):
                self.dataset.add_columns(columns)
        except (OSError, RuntimeError) as error:
            raise commit_error(self._location, error) from error
        self._check(expected, self.dataset.version)

    def rewrite(self, change: Callable[[], object]) -> bool:
        """Calls a function of Lance that may make the next version.  Returns whether it has."""
        before = self.dataset.version
        try:
            with self._files.rewriting(self.dataset):
                change()
        except (OSError, RuntimeError) as error:
            raise commit_error(self._location, error) from error
        if self.dataset.version == before:
            return False
        self._deletions.forget()
        self._check(before + 1, self.dataset.version)
        self._version = int(self.dataset.version)
        return True

    @contextmanager
    def rewriting(self) -> Iterator[lance.LanceDataset]:
        """Yields the handle for any number of versions with the same rows; `version` stays."""
        self._deletions.forget()
        with self._files.rewriting(self.dataset):
            yield self.dataset

    def staged(self, dataset: lance.LanceDataset, rows: NewRows) -> list[FragmentMetadata]:
        """Writes rows as fragments that no version names yet, if they are not written."""
        if not isinstance(rows, pa.Table):
            return [*rows]
        try:
            return write_fragments(rows, dataset, mode="append") if rows.num_rows else []
        except (OSError, RuntimeError, pa.ArrowException) as error:
            if is_of_rows(error, self._location):
                raise
            raise commit_error(self._location, error) from error

    def _commit(self, change: Callable[[lance.LanceDataset], Transaction], rows: NewRows) -> None:
        """Makes the next version.

        Args:
            change: stages files, and returns the transaction that commits them.
            rows: the inserts.
        """
        dataset = self.dataset
        expected = int(dataset.version) + 1
        nbytes = rows.nbytes if isinstance(rows, pa.Table) else 0
        self._committed = begin_commit(
            self._location, lambda: self._changed(dataset, change(dataset), expected), nbytes
        )
        self._version = expected

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
            raise commit_error(self._location, error) from error
        self._check(expected, committed.version)
        self._files.sync_version(committed.version)
        count(written_cost(new))
        return committed

    def _check(self, expected: int, written: int) -> None:
        if written != expected:
            raise CommitRefusedError(
                f"{self._location}: version {expected} was due and {written} was written, so another process has "
                "written to this view; recover from the last commit"
            )


def has_rows(rows: NewRows) -> bool:
    """True if there is at least one row."""
    return bool(rows.num_rows if isinstance(rows, pa.Table) else rows)


def num_rows_of(rows: NewRows) -> int:
    """The number of rows."""
    return int(rows.num_rows) if isinstance(rows, pa.Table) else written_cost(rows).written


def written_cost(fragments: Sequence[FragmentMetadata]) -> WorkCost:
    """The rows and bytes of fragments."""
    sizes = (file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    return WorkCost(written=sum(int(each.physical_rows) for each in fragments), written_bytes=sum(sizes))


def is_of_rows(error: Exception, location: Location) -> bool:
    """True if rows could not be written or indexed, although the store works and no other process has written."""
    if isinstance(error, OSError) or isinstance(commit_error(location, error), CommitRefusedError):
        return False
    return type(storage_error(error, location)) is StorageUnavailableError


def commit_error(location: Location, error: Exception) -> CommitRefusedError | CommitUnknownError:
    """Refused if Lance reports a conflict with another commit; otherwise the outcome is unknown."""
    if any(
        word in str(error).lower() for word in ("incompatible", "conflict", "already exists", "too many concurrent")
    ):
        return CommitRefusedError(f"{location}: another process has written to this view; recover from the last commit")
    return CommitUnknownError(f"{storage_error(error, location)}; the outcome of the commit is not known")
