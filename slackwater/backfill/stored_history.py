"""The history of a backfill, read from the stored rows of its sources."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import lance
import pyarrow as pa

from slackwater.backfill.position import HistoryPosition
from spark_bridge.analysis.columns import columns_to_read
from spark_bridge.hand_over.history import HistoryPiece, gathered, slice_rows
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.fingerprint import path_fingerprints
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, PATH_COLUMN

_BATCH_ROWS = 65_536


class StoredHistory:
    """The stored rows of some sources at one epoch, fragment by fragment.

    Args:
        root: the directory of the pipeline.
        stored: source → the version of its stored rows; a source without rows is missing.
        schemas: source → its schema.
        columns: source → its used columns.
        progress: the position to continue from; None for the start.
    """

    def __init__(
        self,
        root: Location,
        stored: Mapping[str, ViewVersion],
        schemas: Mapping[str, pa.Schema],
        columns: Mapping[str, frozenset[str]],
        progress: str | None,
    ) -> None:
        self._datasets = {
            source: open_dataset(root.child(each.path), each.version) for source, each in sorted(stored.items())
        }
        self._fields = {source: _fields(schemas[source], columns[source]) for source in self._datasets}
        self._fragments = [(source, each) for source, data in self._datasets.items() for each in data.get_fragments()]
        self._at = HistoryPosition((each.count_rows() for _, each in self._fragments), progress)
        self._pieces = self._read()

    @property
    def fraction(self) -> float:
        """The share of the rows already taken, from 0 to 1."""
        return self._at.fraction

    @property
    def missing(self) -> tuple[str, ...]:
        """Empty: stored rows are never lost."""
        return ()

    def take(self, nbytes: int) -> HistoryPiece | None:
        """See `History.take`."""
        tables = gathered(self._pieces, nbytes)
        return HistoryPiece(tables, self._at.to_json()) if tables else None

    def close(self) -> None:
        """Stops reading."""
        self._pieces.close()

    def _read(self) -> Generator[tuple[str, pa.Table]]:
        """Yields source and rows; the position is then after these rows."""
        while not self._at.is_at_end:
            source, fragment = self._fragments[self._at.part]
            for batch in self._batches(source, fragment):
                rows = self._with_all_columns(source, pa.Table.from_batches([batch]))
                step = slice_rows(rows.nbytes, rows.num_rows)
                for start in range(0, rows.num_rows, step):
                    part = rows.slice(start, step)
                    self._at.go_to(self._at.row + part.num_rows)
                    yield source, part
            self._at.go_to_next_part()

    def _batches(self, source: str, fragment: lance.LanceFragment) -> Generator[pa.RecordBatch]:
        names = [each.name for each in self._fields[source] if each.name in self._datasets[source].schema.names]
        if FILE_FIELD in self._fields[source]:
            names.append(PATH_COLUMN)
        scanner = fragment.scanner(columns=names, offset=self._at.row, batch_size=_BATCH_ROWS)
        yield from scanner.to_batches()

    def _with_all_columns(self, source: str, rows: pa.Table) -> pa.Table:
        """The rows with all used columns: a missing column is null, and the path of a file gives its fingerprint."""
        columns = []
        for field in self._fields[source]:
            if field == FILE_FIELD:
                columns.append(_fingerprints(source, rows[PATH_COLUMN]))
            elif field.name in rows.column_names:
                columns.append(rows[field.name])
            else:
                columns.append(pa.nulls(rows.num_rows, field.type))
        return pa.Table.from_arrays(columns, schema=pa.schema(self._fields[source]))


def _fields(schema: pa.Schema, used: frozenset[str]) -> list[pa.Field]:
    schema = schema.append(FILE_FIELD)
    return [schema.field(name) for name in columns_to_read(schema, [used])]


def _fingerprints(source: str, paths: pa.ChunkedArray) -> pa.Array:
    encoded = paths.combine_chunks().dictionary_encode()
    return pa.array(path_fingerprints(source, encoded.dictionary), FILE_FIELD.type).take(encoded.indices)
