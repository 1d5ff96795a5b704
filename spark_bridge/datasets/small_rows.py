"""All rows of a small dataset in the memory of the process that writes it, with their addresses.

A view of a thousand groups is looked up in every epoch, and Lance takes 6 CPU ms to read it: from each of its
fragments, and on S3 by requests.  So it is read once, and follows the changes that this process makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import lance
import numpy as np
import pyarrow as pa

from state.lance.row_address import ADDRESS, FRAGMENT_BITS, Addresses, fragments_of
from state.tables.lance_layout import with_schema

_MOST_ROWS = 4_096
_MOST_BYTES = 256 << 10
"""Of one dataset: hundreds of views have room."""
_MOST_FILE_BYTES = 4 << 20
"""Of the files that are read to see whether they have so few bytes; some rows in them are deleted."""
_BYTES_A_DELETION = 16 << 10
"""A file with deletions of one fragment, which is written and synced, or sent, takes as long as so many more rows."""


@dataclass(frozen=True)
class _Change:
    """A change whose commit may still run.

    Args:
        version: the version that it makes.
        before: the numbers of the fragments before it.
        kept: the rows that stay, with their addresses.
        new: the rows that come.
    """

    version: int
    before: frozenset[int]
    kept: pa.Table
    new: pa.Table


class SmallRows:
    """Holds the rows as of one version; a version that this process has not made by `follow` is read again.

    Rows that have turned out to be wide are not read again.
    """

    def __init__(self) -> None:
        self._version = 0
        self._rows: pa.Table | None = None
        self._change: _Change | None = None
        self._is_wide = False

    def read(self, dataset: lance.LanceDataset) -> pa.Table | None:
        """All rows of a dataset with their addresses, in the last column; None if it is not small.

        Args:
            dataset: at the last version.
        """
        rows = self._known(dataset)
        if rows is None and not self._is_wide and _may_be_small(dataset):
            rows = _if_small(dataset.to_table(with_row_address=True))
            self._is_wide = rows is None
            self._version, self._rows = int(dataset.version), rows
        return rows

    def rest(self, dataset: lance.LanceDataset, addresses: Addresses, new: pa.Table) -> pa.Table | None:
        """The rows that stay when others leave, without addresses, if they are to be written with those that come.

        So all rows are in one fragment again.  None if that is no cheaper than to delete the others.

        Args:
            dataset: at the last version.
            addresses: of the rows that leave.
            new: the rows that come.
        """
        rows = self._known(dataset)
        if rows is None or new.num_rows == 0 or {*new.schema.names} != {*rows.schema.names[:-1]}:
            return None
        fragments = len(np.unique(fragments_of(addresses)))
        if fragments < 2:
            return None
        rest = _without(rows, addresses).drop_columns(ADDRESS)
        return rest if rest.nbytes <= max(fragments * _BYTES_A_DELETION, new.nbytes) else None

    def follow(self, dataset: lance.LanceDataset, addresses: Addresses | None, new: pa.Table | None) -> None:
        """The next version has other rows.

        Args:
            dataset: at the version before.
            addresses: of the rows that leave; None for all.
            new: the rows that come; None if they are not in this process.
        """
        rows, self._change = self._known(dataset), None
        if rows is None or new is None or new.num_rows > _MOST_ROWS:
            return
        before = frozenset(each.fragment_id for each in dataset.get_fragments())
        kept = rows.slice(0, 0) if addresses is None else _without(rows, addresses)
        self._change = _Change(int(dataset.version) + 1, before, kept, new)

    def _known(self, dataset: lance.LanceDataset) -> pa.Table | None:
        """The rows, if they are in memory."""
        change, version = self._change, int(dataset.version)
        if change is not None and change.version == version:
            self._version, self._rows, self._change = version, _changed(dataset, change), None
        return self._rows if self._version == version else None


def _may_be_small(dataset: lance.LanceDataset) -> bool:
    # The values of a nested type may come back in another form than they were written.
    if dataset.count_rows() > _MOST_ROWS or any(map(_is_nested, dataset.schema.types)):
        return False
    metadata = (fragment.metadata for fragment in dataset.get_fragments())
    return sum(file.file_size_bytes or 0 for each in metadata for file in each.files) <= _MOST_FILE_BYTES


def _is_nested(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType)


def _if_small(rows: pa.Table) -> pa.Table | None:
    return rows.combine_chunks() if rows.num_rows <= _MOST_ROWS and rows.nbytes <= _MOST_BYTES else None


def _without(rows: pa.Table, addresses: Addresses) -> pa.Table:
    leaves = np.isin(rows.column(ADDRESS).to_numpy(), addresses)
    return rows.filter(pa.array(~leaves))


def _changed(dataset: lance.LanceDataset, change: _Change) -> pa.Table | None:
    """The rows after a change; None if they are too many, or not those of the dataset."""
    fragments = [each for each in dataset.get_fragments() if each.fragment_id not in change.before]
    addresses = _addresses({each.fragment_id: int(each.physical_rows) for each in fragments})
    if len(addresses) != change.new.num_rows or {*change.new.schema.names} != {*change.kept.schema.names[:-1]}:
        return None
    new = change.new.select(change.kept.schema.names[:-1]).append_column(ADDRESS, pa.array(addresses))
    rows = pa.concat_tables([change.kept, with_schema(new, change.kept.schema)])
    return _if_small(rows) if rows.num_rows == dataset.count_rows() else None


def _addresses(rows: dict[int, int]) -> Addresses:
    """The addresses of the rows of fragments: number → number of its rows."""
    parts = [
        (np.uint64(number) << np.uint64(FRAGMENT_BITS)) + np.arange(rows[number], dtype=np.uint64)
        for number in sorted(rows)
    ]
    return np.concatenate([np.empty(0, np.uint64), *parts])
