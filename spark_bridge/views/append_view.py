"""An append view: a row-by-row query, so an epoch's new rows give the rows to append."""

from __future__ import annotations

from spark_bridge.analysis.correctable import cannot_follow
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.datasets.result_rows import append_result, create_of_result
from spark_bridge.datasets.view_table import ViewTable, view_path
from spark_bridge.hand_over.epoch_rows import EpochRows
from spark_bridge.views.corrections import CorrectedRows
from spark_bridge.views.row_query import RowQuery
from state.errors import RunFailedError
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD


class AppendView:
    """Maintains one append view.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        self._catalyst = catalyst
        self._root = root
        self._plan = plan
        self._path = ""
        self._table: ViewTable | None = None
        self._follow_files(any(FILE_FIELD.name in columns for columns in plan.columns.values()))

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the dataset in the epoch that creates the view, with that epoch's rows."""
        self._path = view_path(self._plan.name, epoch)
        location = self._root.child(self._path)
        self._table = create_of_result(location, self._query.frame(rows), self._query.schema, rows.nbytes)
        return self._version(self._table)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._path = version.path
        self._table = ViewTable.open(self._root.child(version.path), version.version)
        self._follow_files(FILE_FIELD.name in self._table.schema.names)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Writes an epoch's rows; an empty result makes no new version.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        assert self._table is not None, "create or open comes first"
        append_result(self._table, self._query.frame(rows), self._query.schema, rows.nbytes)
        return self._version(self._table)

    def correct(self, rows: CorrectedRows) -> ViewVersion:
        """Removes the old rows of the corrected files, and appends their new rows.

        Raises:
            CommitRefusedError: another process has written to the view.
            RunFailedError: the rows of the view do not name their file.
        """
        assert self._table is not None, "create or open comes first"
        if not self._has_files:
            raise RunFailedError(cannot_follow(self._plan.name))
        for condition in rows.file_conditions(self._plan.sources):
            self._table.delete_where(condition)
        return self.apply(rows.new(self._plan))

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""
        return 0 if self._table is None else self._table.num_rows

    def tidy(self) -> bool:
        """See `View.tidy`."""
        return self._table is not None and self._table.tidy()

    def _follow_files(self, has_files: bool) -> None:
        """Adds the column of the file to the result if `has_files`: if each row names its file."""
        self._has_files = has_files
        self._query = RowQuery(self._catalyst, self._plan, FILE_FIELD if has_files else None)

    def _version(self, table: ViewTable) -> ViewVersion:
        return ViewVersion(self._plan.name, self._path, table.version)
