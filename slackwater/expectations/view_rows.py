"""The rows of a view at one version, as expectations see them: all rows, or the rows that two versions do not share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from slackwater.reading.changes.view_difference import candidates
from slackwater.reading.view_reader import ViewReader
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD

_Rows = TypeVar("_Rows")


class VersionRows(Protocol):
    """The rows of a view at one version.  Every method raises StorageError if they cannot be read."""

    @property
    def version(self) -> ViewVersion: ...

    @property
    def columns(self) -> pa.Schema:
        """The columns of the view, without hidden ones."""

    @property
    def origin(self) -> str | None:
        """The hidden column that says where a row is from: from which file, or in which group; None without one."""

    def count(self) -> int:
        """The number of rows."""

    def parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields all rows, with some columns."""

    def changed_since(self: _Rows, earlier: _Rows, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
        """Rows of an earlier version of the same dataset, and of this one: at least the rows that the two do not share.

        Raises:
            EpochExpiredError: the earlier version is no longer retained.
        """


OpenRows = Callable[[ViewVersion], VersionRows]
"""Opens the rows of a version."""


class StoredRows:
    """The rows of a view in its dataset.

    Args:
        root: the root of the pipeline.
    """

    def __init__(self, root: Location, version: ViewVersion) -> None:
        self._reader = ViewReader(root, version)

    @property
    def version(self) -> ViewVersion:
        return self._reader.version

    @property
    def columns(self) -> pa.Schema:
        with self._reader.errors():
            return self._reader.schema

    @property
    def origin(self) -> str | None:
        with self._reader.errors():
            names = self._reader.stored_schema.names
        return next((each for each in (FILE_FIELD.name, KEY_COLUMN) if each in names), None)

    def count(self) -> int:
        with self._reader.errors():
            return int(self._reader.dataset.count_rows())

    def parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        with self._reader.errors():
            for batch in self._reader.dataset.to_batches(columns=list(columns)):
                yield pa.Table.from_batches([batch])

    def changed_since(self, earlier: StoredRows, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
        return candidates(earlier._reader, self._reader, list(columns))
