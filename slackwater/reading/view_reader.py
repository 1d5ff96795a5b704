"""Reader of one version of the dataset of a view, opened on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import lance
import pyarrow as pa

from slackwater.reading.selection import Selection
from state.errors import EpochExpiredError, NotFoundError
from state.lance.lance_access import open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.tables.records import ViewVersion
from state.tables.stored_rows import hidden


class ViewReader:
    """Reads a view's dataset at one version.

    Args:
        root: the root of the pipeline.
        version: the dataset and its version.
    """

    def __init__(self, root: Location, version: ViewVersion) -> None:
        self.version = version
        self.location = root.child(version.path)
        self._dataset: lance.LanceDataset | None = None

    @property
    def name(self) -> str:
        return self.version.name

    @property
    def dataset(self) -> lance.LanceDataset:
        """The dataset, checked out at the version.

        Raises:
            EpochExpiredError: the version is no longer retained.
            StorageError: the root cannot be read.
        """
        if self._dataset is None:
            try:
                self._dataset = open_dataset(self.location, self.version.version)
            except NotFoundError as error:
                raise self._expired() from error
        return self._dataset

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns of the dataset, with hidden ones; Lance makes them again at each call."""
        return self.dataset.schema

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the result, without hidden ones."""
        return pa.schema([field for field in self.stored_schema if not hidden(field.name)])

    def selection(self, columns: Sequence[str] | None = None, filter: str | None = None) -> Selection:
        """A checked selection; see `Selection.checked`."""
        with self.errors():
            return Selection.checked(self.name, self.dataset, columns, filter)

    def selected(self, selection: Selection) -> pa.Table:
        """The rows and columns of a selection.

        Raises:
            UsageError: the condition cannot be computed for a row.
            EpochExpiredError, StorageError: as `dataset`.
        """
        with self.errors():
            try:
                return self.dataset.to_table(columns=list(selection.columns), filter=selection.condition)
            except ValueError as error:
                raise (selection.refused(self.name, error) or error) from None

    def table(
        self,
        columns: Sequence[str],
        condition: str | None = None,
        limit: int | None = None,
        *,
        only_indexed: bool = False,
    ) -> pa.Table:
        """Rows of the dataset; hidden columns may be named.

        Args:
            condition: the condition of the rows, in Lance's SQL.
            limit: the largest number of rows.
            only_indexed: True to leave out the fragments that the index of the condition does not cover.

        Raises:
            EpochExpiredError, StorageError: as `dataset`.
        """
        with self.errors():
            return self.dataset.to_table(
                columns=list(columns), filter=condition, limit=limit, fast_search=only_indexed or None
            )

    def first_bytes(self, columns: Sequence[str], limit: int, max_bytes: int) -> pa.Table:
        """The first rows, up to the one that exceeds a number of bytes.

        Args:
            limit: the largest number of rows.
            max_bytes: the number of bytes, as Arrow counts them.

        Raises:
            EpochExpiredError, StorageError: as `dataset`.
        """
        rows: list[pa.RecordBatch] = []
        with self.errors():
            one_by_one = self.dataset.scanner(columns=list(columns), limit=limit, batch_size=1, batch_readahead=1)
            reader = one_by_one.to_reader()
            for row in reader:
                rows.append(row)
                max_bytes -= row.nbytes
                if max_bytes < 0:
                    break
        return pa.Table.from_batches(rows, reader.schema)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Converts an error of Lance into EpochExpiredError or StorageError."""
        try:
            yield
        except (OSError, ValueError) as error:
            reason = storage_error(error, self.location)
            raise (self._expired() if isinstance(reason, NotFoundError) else reason) from error

    def _expired(self) -> EpochExpiredError:
        return EpochExpiredError(
            f"version {self.version.version} of view {self.name!r} at {self.location} is no longer retained: take a "
            "new snapshot; a tag or a pin keeps an epoch, and a longer retention all of them"
        )
