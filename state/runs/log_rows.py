"""Rows of some fragments of the log, table by table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import lance
import pyarrow as pa
import pyarrow.compute as pc

from state.runs.directory import Directory
from state.runs.sources import COMMON, BlockIndexes, MemorySource, as_written
from state.runs.table_reader import TableReader
from state.tables.tables import row_column

_ROWS_AT_ONCE = 4_096


class LogRows:
    """Reads few rows with the fields of all tables at once: Lance takes as long for a scan as for a thousand rows.

    Of many rows it reads one table at a time: a row with the fields of all tables takes a kilobyte of memory.

    Args:
        fragments: fragments of its log, in the order in which they were committed.
        tables: the tables of their rows.
        indexes: the indexes of the pieces.
    """

    def __init__(
        self,
        dataset: lance.LanceDataset,
        fragments: Sequence[lance.LanceFragment],
        tables: Sequence[str],
        indexes: BlockIndexes,
    ) -> None:
        self._dataset, self._fragments, self.tables, self._indexes = dataset, list(fragments), tables, indexes
        self._are_few = sum(fragment.count_rows() for fragment in fragments) <= _ROWS_AT_ONCE

    def sources(self, table: str, fields: Sequence[str] | None = None) -> list[MemorySource]:
        """The rows of a table, oldest first.

        Args:
            fields: fields of the table; None for all.

        Raises:
            OSError, ValueError: an error of Lance.
        """
        if not self._are_few:
            reader = TableReader(self._dataset, Directory(), self._fragments, self._indexes, table, fields)
            return list(reader.log_sources())
        rows = self._every_row.select([*COMMON, row_column(table)])
        rows = rows.filter(pc.equal(self._every_row["table"], table)).combine_chunks()
        return [MemorySource(as_written(rows, table, fields))]

    @cached_property
    def _every_row(self) -> pa.Table:
        columns = ["table", *COMMON, *map(row_column, self.tables)]
        return self._indexes.recent.read(self._dataset, self._fragments, columns)
