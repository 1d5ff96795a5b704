"""A view that looks at one row at a time: an epoch's rows give an epoch's rows."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.arrow_frames import table_of_frame
from spark_bridge.catalyst import Catalyst
from spark_bridge.epoch_rows import EpochRows
from spark_bridge.leaves import graft
from spark_bridge.view_plan import ViewPlan
from spark_bridge.view_table import ViewTable, view_path
from state.location import Location
from state.records import ViewVersion


class AppendView:
    """Maintains one append view.

    Args:
        catalyst: of the session.
        root: where the pipeline writes.
        plan: the analysed view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        self._catalyst = catalyst
        self._root = root
        self._plan = plan
        self._path = ""
        self._table: ViewTable | None = None

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the dataset in the epoch that creates the view, with that epoch's rows."""
        self._path = view_path(self._plan.name, epoch)
        self._table = ViewTable.create(self._root.child(self._path), self._result(rows))
        return self._version(self._table)

    def open(self, version: ViewVersion) -> None:
        """Goes on from a recorded version."""
        self._path = version.path
        self._table = ViewTable.open(self._root.child(version.path), version.version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Writes an epoch's rows; without any in the result there is no new version.

        Raises:
            CommitRefusedError: somebody else has written to the view.
        """
        assert self._table is not None, "create or open comes first"
        result = self._result(rows)
        if result.num_rows:
            self._table.append(result)
        return self._version(self._table)

    def tidy(self) -> bool:
        """Does one bounded task that keeps the dataset fast; whether one was due."""
        return self._table is not None and self._table.tidy()

    def _result(self, rows: EpochRows) -> pa.Table:
        self._plan.moment.set_time(rows.time_us)
        plan = graft(self._catalyst, self._plan.plan, self._plan.leaves, rows.frames)
        if rows.one_partition:
            plan = self._catalyst.one_partition(plan)
        return table_of_frame(self._catalyst.frame(plan), self._plan.schema)

    def _version(self, table: ViewTable) -> ViewVersion:
        return ViewVersion(self._plan.name, self._path, table.version)
