"""Rows of a root as a relation of DuckDB, by Arrow's protocol of datasets: a scan names its columns and conditions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from state.errors import SlackwaterError


class Relation(pyarrow.dataset.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Columns with a schema; a scan reads the ones that it names."""

    def __init__(self, schema: pa.Schema) -> None:
        # Arrow's own constructor is for datasets in C++ and is not called; Lance's dataset does the same.
        self._schema = schema
        self.failure: SlackwaterError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @abstractmethod
    def batches(self, columns: Sequence[str], filter: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        """The rows of one scan.

        Raises:
            SlackwaterError: the rows cannot be read, or not with this condition.
            NotImplementedError: the condition cannot be applied.
        """

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
                whole = self._read(self.batches(self.schema.names, None))
                return pyarrow.dataset.Scanner.from_batches(whole, schema=self.schema, columns=names, filter=filter)

    def _scanner(self, columns: list[str], filter: pc.Expression | None = None) -> pyarrow.dataset.Scanner:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pyarrow.dataset.Scanner.from_batches(self._read(self.batches(columns, filter)), schema=schema)

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._kept_errors():
            yield from batches

    @contextmanager
    def _kept_errors(self) -> Iterator[None]:
        try:
            yield
        except SlackwaterError as error:
            self.failure = error
            raise
