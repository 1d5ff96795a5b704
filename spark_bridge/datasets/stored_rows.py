"""The stored rows of one materialized source: a dataset of fragments that the fetch actors stage, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from actors.protocol.blocks import StoredBlock
from actors.schemas.metadata_columns import EPOCH
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.view_table import ViewTable
from state.lance.fragment_stager import staged_fragments
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.row_selection import quoted
from state.tables.stored_rows import PATH_COLUMN, stored_rows_name

_PATHS_AT_ONCE = 500


class StoredRows:
    """Maintains the stored rows of one source, like a view whose rows are written already.

    Args:
        root: the directory of the pipeline.
        source: the name of the source.
    """

    def __init__(self, root: Location, source: str) -> None:
        self._root = root
        self._name = stored_rows_name(source)
        self._path = ""
        self._corrected: str | None = None
        self._table: ViewTable | None = None

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._path, self._corrected = version.path, version.progress
        self._table = ViewTable.open(self._root.child(version.path), version.version)

    def apply(self, blocks: Sequence[StoredBlock]) -> ViewVersion:
        """Makes an epoch's rows visible; the first ones create the dataset.

        Raises:
            CommitRefusedError: another process has written to the dataset.
        """
        # New columns of a source come last, and earlier blocks lack them: they are null there.
        schema = max((block.schema for block in blocks), key=len)
        fragments = staged_fragments(tuple(each for block in blocks for each in block.fragments))
        if self._table is None:
            self._path = blocks[0].path
            self._table = ViewTable.create_of_fragments(self._root.child(self._path), schema, fragments)
        else:
            new = [field for field in schema if field.name not in self._table.schema.names]
            if new:
                self._table.add_columns(pa.schema(new))
            self._table.append(fragments)
        return self._recorded(self._table)

    def correct(self, paths: Collection[str], blocks: Sequence[StoredBlock], epoch: int) -> ViewVersion | None:
        """Replaces the rows of files.

        Args:
            paths: of the files, relative to the source.
            blocks: the new rows; rows that an earlier epoch staged have that epoch in `_epoch`.
            epoch: the epoch of the correction.

        Returns:
            The new version; None if the source never had rows.

        Raises:
            CommitRefusedError: another process has written to the dataset.
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
        # A correction may keep the number of rows: `progress` is the epoch of the last one.
        return ViewVersion(self._name, self._path, table.version, progress=self._corrected)

    def tidy(self, audit: IndexAudit | None = None) -> bool:
        """Does one bounded task that keeps the dataset fast.  Returns whether one was due."""
        return self._table is not None and self._table.tidy(audit)


def in_condition(column: str, values: Sequence[str | bytes]) -> str:
    """The SQL condition of Lance that a column has one of these values."""
    texts = [f"X'{each.hex()}'" if isinstance(each, bytes) else quoted(each) for each in values]
    return f"{column} IN ({', '.join(texts)})"


def _parts(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _PATHS_AT_ONCE):
        yield paths[start : start + _PATHS_AT_ONCE]
