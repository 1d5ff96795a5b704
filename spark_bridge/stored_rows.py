"""The rows of a materialized source: staged by the fetch actors, made visible here, never touched by Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from actors.messages import StoredBlock
from spark_bridge.view_table import ViewTable
from state.fragment_stager import staged_fragments
from state.location import Location
from state.records import ViewVersion
from state.stored_rows import stored_rows_name


class StoredRows:
    """Maintains the stored rows of one source, as one more view of which the rows are there already.

    Args:
        root: where the pipeline writes.
        source: its name.
    """

    def __init__(self, root: Location, source: str) -> None:
        self._root = root
        self._name = stored_rows_name(source)
        self._path = ""
        self._table: ViewTable | None = None

    def open(self, version: ViewVersion) -> None:
        """Goes on from a recorded version."""
        self._path = version.path
        self._table = ViewTable.open(self._root.child(version.path), version.version)

    def apply(self, blocks: Sequence[StoredBlock]) -> ViewVersion:
        """Makes an epoch's rows visible; the first ones create the dataset.

        Raises:
            CommitRefusedError: somebody else has written to the dataset.
        """
        # Columns come to the end of a source, and some blocks may be of before: theirs are null there.
        schema = max((block.schema for block in blocks), key=len)
        fragments = staged_fragments(tuple(each for block in blocks for each in block.fragments))
        if self._table is None:
            self._path = blocks[0].path
            self._table = ViewTable.create_of_fragments(self._root.child(self._path), schema, fragments)
        else:
            new = [field for field in schema if field.name not in self._table.schema.names]
            if new:
                self._table.add_columns(pa.schema(new))
            self._table.append_fragments(fragments)
        return ViewVersion(self._name, self._path, self._table.version)

    def tidy(self) -> bool:
        """Does one bounded task that keeps the dataset fast; whether one was due."""
        return self._table is not None and self._table.tidy()
