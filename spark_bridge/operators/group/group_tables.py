"""The datasets of an aggregate view."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.datasets.dataset_paths import distinct_path, state_path, view_path
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.operators.group.distinct_set import COUNT_FIELD
from spark_bridge.operators.group.merge_plan import KEY_FIELD, MergedGroups
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion


class GroupTables:
    """Up to three datasets, which `create` or `open` makes.

    Usually the view's dataset has one row per group, with the buffers that the result does not contain as `__sw_*`
    columns.  The buffers of all groups have a dataset of their own in two cases:

    * The plan has a filter above the aggregation (HAVING): the view's dataset has only the groups that pass.
    * A buffer is an object.

    A view with DISTINCT has a third dataset: the texts of the values that each group has seen.

    Attributes:
        state: the dataset of the buffers; None if the view's dataset has them.
        distinct: the dataset of the values; None without DISTINCT.

    Args:
        root: the directory of the pipeline.
        name: of the view.
    """

    def __init__(self, root: Location, name: str) -> None:
        self._root, self._name = root, name
        self._path = ""
        self._state_path: str | None = None
        self._distinct_path: str | None = None
        self._table: ViewTable | None = None
        self.state: ViewTable | None = None
        self.distinct: ViewTable | None = None

    @property
    def table(self) -> ViewTable:
        """The view's dataset."""
        assert self._table is not None, "create or open comes first"
        return self._table

    @property
    def stored(self) -> ViewTable:
        """The dataset that has the buffers."""
        return self.state or self.table

    @property
    def version(self) -> ViewVersion:
        """The versions that were written last."""
        return ViewVersion(
            self._name,
            self._path,
            self.table.version,
            self._state_path,
            None if self.state is None else self.state.version,
            self._distinct_path,
            None if self.distinct is None else self.distinct.version,
        )

    @property
    def num_rows(self) -> int:
        """Number of rows of the view; 0 before there are datasets."""
        return 0 if self._table is None else self._table.num_rows

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._path, self._state_path, self._distinct_path = version.path, version.state_path, version.distinct_path
        self._table = ViewTable.open(self._root.child(version.path), version.version)
        if version.state_path is not None and version.state_version is not None:
            self.state = ViewTable.open(self._root.child(version.state_path), version.state_version)
        if version.distinct_path is not None and version.distinct_version is not None:
            self.distinct = ViewTable.open(self._root.child(version.distinct_path), version.distinct_version)

    def add(self, epoch: int, merged: MergedGroups) -> None:
        """Adds groups in the epoch that creates the view; the first call creates the datasets."""
        self._path = view_path(self._name, epoch)
        self._table = self._with(self._table, self._path, merged.result)
        if merged.state is not None:
            self._state_path = state_path(self._name, epoch)
            self.state = self._with(self.state, self._state_path, merged.state)

    def add_values(self, epoch: int, values: pa.Table) -> None:
        """Adds values of DISTINCT in the epoch that creates the view; the first call creates the dataset."""
        self._distinct_path = distinct_path(self._name, epoch)
        self.distinct = self._with(self.distinct, self._distinct_path, values)

    def merge_values(self, values: pa.Table, *, are_counted: bool) -> None:
        """Stores values of new rows, with the number of their rows if they are counted."""
        if self.distinct is None or not values.num_rows:
            return
        if are_counted:
            self.distinct.upsert(values)
        else:
            self.distinct.append(values)

    def exchange_values(self, keys: pa.Array, values: pa.Table) -> None:
        """Makes the dataset hold, of counted values with these keys, exactly the given ones."""
        if self.distinct is not None:
            self.distinct.exchange(keys, values)

    def replace_values(self, keys: pa.Array, present: pa.Array) -> None:
        """Makes the dataset hold, of these values without counts, exactly the present ones."""
        if self.distinct is None:
            return
        is_present = pc.is_in(keys, value_set=present)
        _delete(self.distinct, keys.filter(pc.invert(is_present)))
        wanted = keys.filter(is_present)
        if len(wanted):
            known = self.distinct.rows_of(wanted, []).column(KEY_COLUMN).combine_chunks()
            new = wanted.filter(pc.invert(pc.is_in(wanted, value_set=known)))
            if len(new):
                self.distinct.append(pa.table([new], schema=pa.schema([KEY_FIELD])))

    def counts_of(self, keys: pa.Array, *, are_counted: bool) -> pa.Array:
        """See `spark_bridge.operators.group.grouped_rows.Counts`."""
        if self.distinct is None or len(keys) == 0:
            return pa.repeat(0, len(keys))
        seen = self.distinct.rows_of(keys, [COUNT_FIELD.name] if are_counted else [])
        at = pc.index_in(keys, value_set=seen.column(KEY_COLUMN).combine_chunks())
        counts = seen.column(COUNT_FIELD.name) if are_counted else pa.repeat(1, seen.num_rows)
        found = counts.take(at)
        return pc.fill_null(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, 0)

    def merge(self, merged: MergedGroups) -> None:
        """Stores merged groups; each replaces the stored group with the same key."""
        if merged.state is not None:
            assert self.state is not None, "buffers that are stored apart have a dataset"
            self.state.upsert(merged.state)
        if merged.result.num_rows:
            self.table.upsert(merged.result)

    def exchange(self, keys: pa.Array, merged: MergedGroups) -> None:
        """Makes the datasets hold, of the groups with these keys, exactly the merged ones."""
        if merged.state is not None:
            assert self.state is not None, "buffers that are stored apart have a dataset"
            self.state.exchange(keys, merged.state)
        self.table.exchange(keys, merged.result)

    def delete_failing(self, stored: pa.ChunkedArray, passing: pa.ChunkedArray) -> None:
        """Deletes the groups that passed the filter before and fail it now."""
        _delete(self.table, stored.filter(pc.invert(pc.is_in(stored, value_set=passing.combine_chunks()))))

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return any(table.tidy(audit) for table in (self._table, self.state, self.distinct) if table is not None)

    def _with(self, table: ViewTable | None, path: str, rows: pa.Table) -> ViewTable:
        """Appends rows to a dataset, and returns it; without a dataset, creates one with the rows."""
        if table is None:
            return ViewTable.create(self._root.child(path), rows)
        if rows.num_rows:
            table.append(rows)
        return table


def _delete(table: ViewTable, keys: pa.Array | pa.ChunkedArray) -> None:
    if len(keys) == 0:
        return
    keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    present = table.rows_of(keys, []).column(KEY_COLUMN)
    if len(present):
        table.delete(present.combine_chunks())
