"""Comparison of a scalar index of a Lance dataset with the rows: random keys, by the index and by a scan.

A wrong index returns other rows than the dataset has, without an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state.errors import DamagedStoreError
from state.lance.filtered_scan import filtered_scan
from state.lance.row_address import ADDRESS
from state.location import Location
from state.objects.storage_error import storage_error

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

KEYS = 16
"""Keys that one comparison looks up."""

FRAGMENTS = 2
"""Fragments of which one comparison scans some rows."""

_MOST_SCANNED = 32_768

# Of a column with few values one key has many rows.
_MOST_ROWS = 4_096


@dataclass(frozen=True)
class IndexDifference:
    """An index that returns other rows than the dataset has.

    Args:
        column: the column of the index.
        keys: the number of keys that were looked up.
        missing: rows with these keys that the index does not return.
        wrong: rows that the index returns for these keys, and that have other keys or are deleted.
    """

    column: str
    keys: int
    missing: int
    wrong: int

    def __str__(self) -> str:
        return (
            f"the index of {self.column} differs from the rows: of {self.keys} keys it lacks {self.missing} rows, and "
            f"returns {self.wrong} wrong ones"
        )


def indexed_columns(dataset: lance.LanceDataset) -> dict[str, str]:
    """Column → the name of its scalar index."""
    return {name: index.name for index in dataset.describe_indices() for name in index.field_names}


def index_difference(
    location: Location,
    dataset: lance.LanceDataset,
    column: str,
    random: Random,
    *,
    keys: int = KEYS,
    fragments: int = FRAGMENTS,
) -> IndexDifference | None:
    """Looks up random keys by the index and by a scan, and compares the rows.  None if they are equal.

    Each chosen fragment is scanned in part, and the keys come from random rows of these parts.  Rows that the index
    returns elsewhere are compared by their keys only.

    An index whose files are damaged lacks all rows.

    Args:
        dataset: at the version to check.
        column: the column of the index.
        random: chooses fragments and rows.
        keys: the number of rows whose keys are looked up.
        fragments: the number of fragments in which rows are scanned.

    Raises:
        OSError, ValueError, RuntimeError: as Lance.
    """
    present = [each for each in dataset.get_fragments() if each.count_rows()]
    chosen = random.sample(present, min(fragments, len(present)))
    if not chosen:
        return None
    pieces = [_piece(dataset, column, each, random) for each in chosen]
    scanned = pa.concat_tables(pieces)
    wanted = _keys(scanned.column(column), random, keys, _MOST_ROWS * scanned.num_rows // dataset.count_rows())
    if not len(wanted):
        return None
    expected = scanned.filter(pc.is_in(scanned.column(column), value_set=wanted)).column(ADDRESS).to_numpy()
    try:
        by_index = filtered_scan(dataset, pc.field(column).isin(wanted), [column], with_row_address=True).to_table()
    except (OSError, ValueError, RuntimeError) as error:
        # The scan has read the same rows, so the index is damaged.
        if not isinstance(storage_error(error, location), DamagedStoreError):
            raise
        return IndexDifference(column, len(wanted), len(expected), 0)
    has_key = pc.is_in(by_index.column(column), value_set=wanted).to_numpy()
    addresses = by_index.column(ADDRESS).to_numpy()
    is_scanned = np.zeros(len(addresses), np.bool_)
    for piece in pieces:
        first, last = piece.column(ADDRESS)[0].as_py(), piece.column(ADDRESS)[-1].as_py()
        is_scanned |= (addresses >= first) & (addresses <= last)
    missing = len(np.setdiff1d(expected, addresses))
    wrong = len(np.setdiff1d(addresses[is_scanned], expected)) + int((~has_key & ~is_scanned).sum())
    wrong += len(addresses) - len(np.unique(addresses))
    return IndexDifference(column, len(wanted), missing, wrong) if missing or wrong else None


def _piece(dataset: lance.LanceDataset, column: str, fragment: lance.LanceFragment, random: Random) -> pa.Table:
    """The column and the addresses of consecutive rows of a fragment, by a scan."""
    rows = int(fragment.count_rows())
    limit = min(rows, _MOST_SCANNED)
    scan = dataset.scanner(
        columns=[column],
        fragments=[fragment],
        limit=limit,
        offset=random.randrange(rows - limit + 1),
        with_row_address=True,
        use_scalar_index=False,
    )
    return scan.to_table()


def _keys(column: pa.ChunkedArray, random: Random, most: int, most_rows: int) -> pa.Array:
    """At most `most` keys of random rows, without null, which together have about `most_rows` rows."""
    rows = [random.randrange(len(column)) for _ in range(min(most, len(column)))]
    keys = pc.unique(column.take(pa.array(rows, pa.int64()))).drop_null()
    counted = pc.value_counts(column.filter(pc.is_in(column, value_set=keys)))
    ends = np.cumsum(counted.field("counts").to_numpy(zero_copy_only=False))
    return counted.field("values").slice(0, max(1, int((ends <= most_rows).sum())))
