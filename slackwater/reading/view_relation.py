"""A view as DuckDB scans it: through Arrow's protocol of datasets, with the columns and conditions that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from slackwater.reading.view_reader import ViewReader
from state.errors import SlackwaterError


class ViewRelation(pyarrow.dataset.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Has the columns of the result, and reads of them what a scan names.

    Args:
        reader: the version of the view; it is opened.

    Raises:
        EpochExpiredError: the version is no longer retained.
        StorageError: the root cannot be read.
    """

    def __init__(self, reader: ViewReader) -> None:
        # Without Arrow's own beginning, which is for datasets in C++, as Lance's dataset does it.
        self._reader = reader
        self._schema = reader.schema
        self.failure: SlackwaterError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> pyarrow.dataset.Scanner:
        """One reading.  What it raises is kept in `failure`: DuckDB makes errors of its own of it."""
        names = self.schema.names if columns is None else list(columns)
        with self._kept_errors():
            if filter is None:
                return self._scanner(names)
            try:
                return self._scanner(names, filter)
            except (SlackwaterError, NotImplementedError):
                # Lance does not take every condition of Arrow's, for one those on a field of a struct.
                whole = self._batches(self.schema.names)
                return pyarrow.dataset.Scanner.from_batches(whole, schema=self.schema, columns=names, filter=filter)

    def _scanner(self, columns: list[str], filter: pc.Expression | None = None) -> pyarrow.dataset.Scanner:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pyarrow.dataset.Scanner.from_batches(self._batches(columns, filter), schema=schema)

    def _batches(self, columns: list[str], filter: pc.Expression | None = None) -> Iterator[pa.RecordBatch]:
        with self._reader.errors():
            reader = self._reader.dataset.scanner(columns=columns, filter=filter).to_reader()
        return self._read(reader)

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._kept_errors(), self._reader.errors():
            yield from reader

    @contextmanager
    def _kept_errors(self) -> Iterator[None]:
        try:
            yield
        except SlackwaterError as error:
            self.failure = error
            raise
