"""View as a relation of DuckDB; Lance reads its columns and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.relation import Relation
from slackwater.reading.view_reader import ViewReader
from state.lance.filtered_scan import filtered_scan


class ViewRelation(Relation):
    """The columns of the result of a view.

    Args:
        reader: the version of the view, which is opened here.

    Raises:
        EpochExpiredError: the version is no longer retained.
        StorageError: the root cannot be read.
    """

    def __init__(self, reader: ViewReader) -> None:
        super().__init__(reader.schema)
        self._reader = reader

    def batches(self, columns: Sequence[str], filter: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        with self._reader.errors():
            reader = filtered_scan(self._reader.dataset, filter, list(columns)).to_reader()
        return self._rows(reader)

    def _rows(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._reader.errors():
            yield from reader
