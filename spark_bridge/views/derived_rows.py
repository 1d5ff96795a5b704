"""A row-by-row view over parents: each of its rows is made of one row of a parent, and leaves with it."""

from __future__ import annotations

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.arrow_frames import table_of_frame
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.datasets.result_rows import append_result, create_of_result
from spark_bridge.datasets.view_table import ViewTable, view_path
from spark_bridge.hand_over.epoch_rows import EpochRows
from spark_bridge.views.changes import ChangeLog, ChangeSet
from spark_bridge.views.parent_rows import ParentRows
from spark_bridge.views.row_query import RowQuery
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import ORIGIN_FIELD


class DerivedRows:
    """Maintains one such view.

    Its dataset has the origin of each row in a hidden column, by which the rows are found.

    Attributes:
        changes: of the view's rows, if other views read them.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        self.changes = ChangeLog()
        self._root, self._plan = root, plan
        self._query = RowQuery(catalyst, plan, ORIGIN_FIELD)
        self._path = ""
        self._table: ViewTable | None = None

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the dataset in the epoch that creates the view, with the result over these rows."""
        self._path = view_path(self._plan.name, epoch)
        location = self._root.child(self._path)
        self._table = create_of_result(location, self._query.frame(rows), self._query.schema, rows.nbytes)
        return self._version(self._table)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._path = version.path
        self._table = ViewTable.open(self._root.child(version.path), version.version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Adds the result over further rows of the parents; an empty result makes no new version.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        assert self._table is not None, "create or open comes first"
        append_result(self._table, self._query.frame(rows), self._query.schema, rows.nbytes)
        return self._version(self._table)

    def correct(self, rows: ParentRows) -> ViewVersion:
        """Exchanges the rows that are made of changed rows of the parents.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        assert self._table is not None, "create or open comes first"
        origins = rows.origins(self._plan)
        new = table_of_frame(self._query.frame(rows.new(self._plan)), self._query.schema)
        if self.changes.is_kept:
            names = [ORIGIN_FIELD.name, *self._plan.schema.names]
            self.changes.note(ChangeSet(origins, self._table.rows_of(origins, names), new.select(names)))
        self._table.exchange(origins, new)
        return self._version(self._table)

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""
        return 0 if self._table is None else self._table.num_rows

    def tidy(self) -> bool:
        """See `View.tidy`."""
        return self._table is not None and self._table.tidy()

    def _version(self, table: ViewTable) -> ViewVersion:
        return ViewVersion(self._plan.name, self._path, table.version)
