"""The rows of a materialized source: staged by the fetch actors, made visible here, never touched by Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from actors.protocol.blocks import StoredBlock
from actors.schemas.metadata_columns import EPOCH
from spark_bridge.datasets.view_table import ViewTable
from state.lance.fragment_stager import staged_fragments
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import PATH_COLUMN, stored_rows_name

_PATHS_AT_ONCE = 500


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
        self._corrected: str | None = None
        self._table: ViewTable | None = None

    def open(self, version: ViewVersion) -> None:
        """Goes on from a recorded version."""
        self._path, self._corrected = version.path, version.progress
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
        return self._recorded(self._table)

    def correct(self, paths: Collection[str], blocks: Sequence[StoredBlock], epoch: int) -> ViewVersion | None:
        """Takes the rows of files out, and puts others in their place.

        Args:
            paths: of the files, relative to the source.
            blocks: the rows that come; those of an epoch before say so in their column `_epoch`.
            epoch: this one.

        Returns:
            The version; None if there never was a row.

        Raises:
            CommitRefusedError: somebody else has written to the dataset.
        """
        conditions = [in_condition(PATH_COLUMN, some) for some in _parts(sorted(paths))]
        if self._table is not None:
            for condition in conditions:
                self._table.delete_where(condition)
        if blocks:
            self.apply(blocks)
        if self._table is None:
            return None
        if blocks and EPOCH in self._table.schema.names:
            for condition in conditions:
                self._table.update_where({EPOCH: str(epoch)}, condition)
        self._corrected = str(epoch)
        return self._recorded(self._table)

    def _recorded(self, table: ViewTable) -> ViewVersion:
        # As many rows may be others: `progress` says since when.
        return ViewVersion(self._name, self._path, table.version, progress=self._corrected)

    def tidy(self) -> bool:
        """Does one bounded task that keeps the dataset fast; whether one was due."""
        return self._table is not None and self._table.tidy()


def in_condition(column: str, values: Sequence[str | int]) -> str:
    """That a column has one of some values, as Lance is asked."""
    texts = [str(each) if isinstance(each, int) else "'" + each.replace("'", "''") + "'" for each in values]
    return f"{column} IN ({', '.join(texts)})"


def _parts(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _PATHS_AT_ONCE):
        yield paths[start : start + _PATHS_AT_ONCE]
