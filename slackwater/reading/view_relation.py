"""View as a relation of DuckDB, by Arrow's protocol of datasets: a scan names its columns and conditions."""

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
    """The columns of the result; a scan reads the ones that it names.

    Args:
        reader: the version of the view, which is opened here.

    Raises:
        EpochExpiredError: the version is no longer retained.
        StorageError: the root cannot be read.
    """

    def __init__(self, reader: ViewReader) -> None:
        # Arrow's own constructor is for datasets in C++ and is not called; Lance's dataset does the same.
        self._reader = reader
        self._schema = reader.schema
        self.failure: SlackwaterError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> pyarrow.dataset.Scanner:
        """One scan.  Its error is kept in `failure`, since DuckDB replaces it by an error of its own."""
        names = self.schema.names if columns is None else list(columns)
        with self._kept_errors():
            if filter is None:
                return self._scanner(names)
            try:
                return self._scanner(names, filter)
            except (SlackwaterError, NotImplementedError):
                # Lance refuses some conditions of Arrow, for example on a field of a struct.
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
