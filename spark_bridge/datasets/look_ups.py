"""Look-ups of rows of a dataset by their keys."""

from __future__ import annotations

from dataclasses import dataclass

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.datasets.dataset_writer import DatasetWriter, NewRows
from spark_bridge.datasets.small_rows import SmallRows
from state.lance.filtered_scan import filtered_scan
from state.lance.row_address import ADDRESS

# A key that is looked up takes as long as a scan of a hundred rows; all rows of a large dataset take memory, too.
_SCAN_FROM_SHARE = 0.05
_SCAN_FROM_SHARE_OF_PART = 0.01
PART_ROWS = 50_000
"""Of a table of some rows of a dataset."""


@dataclass(frozen=True)
class _Found:
    """The result of a look-up: the addresses of the rows with some keys, at one version."""

    version: int
    keys: pa.Array
    addresses: npt.NDArray[np.uint64]


class LookUps:
    """Finds rows of the last version by their keys: all rows of a small dataset in memory, others by an index.

    Args:
        writer: makes the versions of the dataset.
        by: the column of the keys; None if rows are not looked up.
    """

    def __init__(self, writer: DatasetWriter, by: str | None) -> None:
        self._writer, self._key = writer, by
        self._small = SmallRows()
        self._found: _Found | None = None

    @property
    def by(self) -> str:
        """The column of the keys by which rows are exchanged."""
        assert self._key is not None, "rows without a key are not looked up"
        return self._key

    def rows(self, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The stored rows with these keys; `addresses` of the same keys has no cost next."""
        wanted = [self.by, *[column for column in columns if column != self.by]]
        rows = self._look_up(keys, wanted)
        self._found = _Found(self._writer.dataset.version, keys, rows.column(ADDRESS).to_numpy())
        return rows.drop_columns(ADDRESS)

    def addresses(self, keys: pa.Array) -> npt.NDArray[np.uint64]:
        """The addresses of the stored rows with these keys."""
        if not len(keys):
            return np.empty(0, np.uint64)
        version, found = self._writer.dataset.version, self._found
        if found is None or found.version != version or not found.keys.equals(keys):
            found = self._found = _Found(version, keys, self._look_up(keys, []).column(ADDRESS).to_numpy())
        return found.addresses

    def rest(self, addresses: npt.NDArray[np.uint64], new: pa.Table) -> pa.Table | None:
        """See `SmallRows.rest`."""
        return self._small.rest(self._writer.dataset, addresses, new)

    def follow(self, addresses: npt.NDArray[np.uint64] | None, rows: NewRows) -> None:
        """Stores a change before its commit, see `SmallRows.follow`."""
        dataset = self._writer.dataset
        new = rows if isinstance(rows, pa.Table) else None if rows else dataset.schema.empty_table()
        self._small.follow(dataset, addresses, new)
        self._found = None

    def _look_up(self, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The stored rows with these keys, and their addresses."""
        small = self._small.read(self._writer.dataset) if len(keys) else None
        if small is None:
            return look_up(self._writer.dataset, self.by, keys, columns)
        return small.filter(pc.is_in(small.column(self.by), value_set=keys)).select([*columns, ADDRESS])


def look_up(dataset: lance.LanceDataset, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
    """The rows of a dataset with some keys, in any order, and their addresses in the column `_rowaddr`.

    Args:
        dataset: at the version to read.
        by: the column of the keys.
        keys: the keys to look up; a key may have no row, or many.
        columns: the columns to read; none of them if only the addresses are wanted, which is half the work.
    """
    stored = dataset.count_rows()
    if stored == 0 or len(keys) == 0:
        return dataset.to_table(columns=columns, limit=0, with_row_address=True)
    if len(keys) >= stored * (_SCAN_FROM_SHARE_OF_PART if stored <= PART_ROWS else _SCAN_FROM_SHARE):
        rows = dataset.to_table(columns=list(dict.fromkeys([by, *columns])), with_row_address=True)
        found = rows.filter(pc.is_in(rows.column(by), value_set=keys))
        return found if by in columns else found.drop_columns(by)
    return filtered_scan(dataset, pc.field(by).isin(keys), columns, with_row_address=True).to_table()
