"""The ledger and the queue of an epoch as a relation of DuckDB, read slice by slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.relation import Relation
from slackwater.reading.tables.file_table import FILE_SCHEMA, file_batches
from state.store.store import StateStore
from state.tables.catalog import Catalog


class FileRelation(Relation):
    """The columns of `Ledger.files`.

    Args:
        store: a handle on the store.
        state_version: the version of the store.
    """

    def __init__(self, store: StateStore, catalog: Catalog, state_version: int) -> None:
        super().__init__(FILE_SCHEMA)
        self._store, self._catalog, self._version = store, catalog, state_version

    def batches(self, columns: Sequence[str], filter: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        if filter is not None:
            raise NotImplementedError("the condition is for rows after the changes that overlay them")
        return file_batches(self._store, self._catalog, self._version, columns=columns)
