"""Rows of a view by their group keys, at the cost of the rows that are found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.view_reader import ViewReader
from state.lance.row_address import ADDRESS, at_addresses
from state.tables.group_key import KEY_COLUMN
from state.tables.row_selection import quoted

_MOST_KEY_BYTES = 8 << 20


@dataclass(frozen=True)
class KeyRange:
    """One group key, or a range of them in the order of UTF-8.

    Args:
        start: the key, or the first one of the range.
        end: the end of the range (exclusive); None for one key.
    """

    start: str
    end: str | None = None

    @property
    def condition(self) -> str:
        """The condition in Lance's SQL."""
        if self.end is None:
            return f"{KEY_COLUMN} = {quoted(self.start)}"
        return f"{KEY_COLUMN} >= {quoted(self.start)} AND {KEY_COLUMN} < {quoted(self.end)}"

    def contains(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        if self.end is None:
            return pc.equal(keys, self.start)
        return pc.and_(pc.greater_equal(keys, self.start), pc.less(keys, self.end))


class RowsByKey:
    """Finds rows of one version of a view.

    An index of Lance covers the fragments that existed when it was made.  The keys of the later fragments are read at
    the first look-up and kept, since Lance would read them all at each look-up.

    Args:
        reader: the reader of the version.
    """

    def __init__(self, reader: ViewReader) -> None:
        self._reader = reader

    def rows(self, columns: list[str], wanted: KeyRange) -> pa.Table:
        """The rows with these keys, in no order.

        Raises:
            EpochExpiredError, StorageError: as `ViewReader.dataset`.
        """
        with self._reader.errors():
            later = self._later
        if later is None or not later.num_rows:
            return self._reader.table(columns, wanted.condition)
        parts = []
        addresses = later.filter(wanted.contains(later[KEY_COLUMN]))[ADDRESS].to_pylist()
        if addresses:
            parts.append(self._reader.table(columns, at_addresses(addresses)))
        is_complete = bool(addresses) and wanted.end is None  # a group has one row
        if self._covered and not is_complete:
            parts.insert(0, self._reader.table(columns, wanted.condition, only_indexed=True))
        if parts:
            return pa.concat_tables(parts)
        return pa.schema([self._reader.stored_schema.field(name) for name in columns]).empty_table()

    @cached_property
    def _covered(self) -> set[int]:
        """The numbers of the fragments that the index covers."""
        indices = [each for each in self._reader.dataset.describe_indices() if each.field_names == [KEY_COLUMN]]
        covered = (each.fragment_ids for index in indices for each in index.segments)
        present = {each.fragment_id for each in self._reader.dataset.get_fragments()}
        return present.intersection(chain.from_iterable(covered))

    @cached_property
    def _later(self) -> pa.Table | None:
        """The keys and addresses of the rows that the index does not cover; None if they are too many to keep."""
        dataset = self._reader.dataset
        later = [each for each in dataset.get_fragments() if each.fragment_id not in self._covered]
        kept = pa.schema([(KEY_COLUMN, pa.string()), (ADDRESS, pa.uint64())]).empty_table()
        if not later:
            return kept
        batches: list[pa.RecordBatch] = []
        room = _MOST_KEY_BYTES
        for batch in dataset.scanner(columns=[KEY_COLUMN], fragments=later, with_row_address=True).to_batches():
            room -= batch.nbytes
            if room < 0:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches) if batches else kept
