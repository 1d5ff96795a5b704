"""An append view: a projection view over sources, whose rows are deleted with their file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.changes.corrections import CorrectedRows
from spark_bridge.changes.view import Computed
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.dataset_writer import NewRows
from spark_bridge.datasets.result_rows import new_rows
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.maintenance.row_view import RowQuery, RowView
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.correctable import cannot_follow
from state.errors import ViewError
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD

_COPIED_AT_ONCE_BYTES = 64 << 20


class AppendView(RowView):
    """Maintains one append view.

    Attributes:
        lacks: empty, as a row has all columns; see `GroupedView`.

    Args:
        root: the directory of the pipeline.
    """

    lacks = ()

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        self._has_files = any(FILE_FIELD.name in columns for columns in plan.columns.values())
        super().__init__(catalyst, root, plan, FILE_FIELD if self._has_files else None)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; the rows of an old one may not name their file."""
        super().open(version)
        has_files = FILE_FIELD.name in self._table.schema.names
        if has_files != self._has_files:
            self._has_files = has_files
            self._query = RowQuery(self._catalyst, self._plan, FILE_FIELD if has_files else None)

    def take_over(self, epoch: int, before: ViewPlan, version: ViewVersion) -> ViewVersion:
        """Copies the rows of a stored version of the view.  Arguments as of `GroupedView.take_over`."""
        stored = ViewTable.open(self._root.child(version.path), version.version)
        path, copy = view_path(self._plan.name, epoch), None
        for rows in _together(stored.parts(stored.schema.names)):
            if copy is None:
                copy = ViewTable.create(self._root.child(path), rows)
            else:
                copy.append(rows)
        assert copy is not None, "there is a part, with or without rows"
        self.open(ViewVersion(self._plan.name, path, copy.version))
        return self._version()

    def apply(self, rows: EpochRows) -> ViewVersion:
        """See `RowView.apply`."""
        return self._follow(rows, pa.array([], FILE_FIELD.type), []) if self.changes.is_kept else super().apply(rows)

    @property
    def computes_beside(self) -> bool:
        """See `ComputesBeside`; the time of an epoch is in the plan, which pieces share with epochs."""
        return not self._plan.timestamps.are_used

    def computed(self, rows: EpochRows) -> Computed:
        """See `ComputesBeside`."""
        new = new_rows(self._table, self._query.over(rows))
        return Computed(partial(self._append, new))

    def _append(self, new: NewRows) -> ViewVersion:
        self._table.append(new)
        return self._version()

    def correct(self, rows: CorrectedRows) -> ViewVersion:
        """Removes the old rows of the corrected files, and appends their new rows.

        Raises:
            CommitRefusedError: another process has written to the view.
            ViewError: the rows of the view do not name their file.
        """
        if not self._has_files:
            raise ViewError(cannot_follow(self._plan.name))
        conditions = rows.file_conditions(self._plan.sources)
        return self._follow(rows.new(self._plan), rows.files(self._plan.sources), conditions)

    def _follow(self, rows: EpochRows, files: pa.Array, conditions: Iterable[str]) -> ViewVersion:
        """Removes the rows of some files, and appends others.

        Args:
            rows: those of which the others are made.
            files: the fingerprints of the files.
            conditions: SQL conditions that together select the rows of the files.
        """
        before = self._snapshot() if self.changes.is_kept else None
        if before is None:
            for condition in conditions:
                self._table.delete_where(condition)
            return super().apply(rows)
        new, begun = new_rows(self._table, self._query.over(rows)), self._table.version
        self._table.exchange_where(conditions, new)
        # The file, by which rows leave, comes first.
        names = [*([FILE_FIELD.name] if self._has_files else []), *self._plan.schema.names]
        self.changes.note(ChangeSet(files, None, self._added(new, before, names), before, begun))
        return self._version()


def _together(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields the rows of many tables in few larger ones: each makes a version of a dataset."""
    found = list[pa.Table]()
    for part in parts:
        found.append(part)
        if sum(each.nbytes for each in found) >= _COPIED_AT_ONCE_BYTES:
            yield pa.concat_tables(found)
            found = []
    if found:
        yield pa.concat_tables(found)
