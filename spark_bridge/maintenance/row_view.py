"""The dataset of a projection view, and its query: its new rows are the result over new rows of its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import lance
import pyarrow as pa
from lance import FragmentMetadata
from pyspark.sql import DataFrame

from spark_bridge.changes.change_set import ChangeLog
from spark_bridge.datasets.added_rows import AddedRows
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.dataset_writer import NewRows
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.result_rows import Result, StagedQuery, append_result, create_of_result
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.engine.catalyst.carried_column import with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.execution.planned_once import PlannedOnce
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, FILE_HALVES


class RowQuery:
    """Makes the rows of a view from rows of its leaves.

    Attributes:
        schema: of the result, with the origin at the end.

    Args:
        origin: the column with the origin of a row, which the leaves have too; None without it.
    """

    def __init__(self, catalyst: Catalyst, plan: ViewPlan, origin: pa.Field | None) -> None:
        self._catalyst, self._view, self._origin = catalyst, plan, origin
        self._plan = plan.plan if origin is None else with_carried_column(catalyst, plan.plan, origin)
        self.schema: pa.Schema = plan.schema if origin is None else plan.schema.append(origin)

    @cached_property
    def _query(self) -> PlannedOnce:
        return PlannedOnce(self._catalyst, self._plan, self._view.leaves)

    def over(self, rows: EpochRows) -> Result:
        """The result over these rows, not computed yet; call it next."""
        self._view.timestamps.set_time(rows.time_us)
        computed = partial(self._query.table, rows.frames, self.schema, rows.tasks)
        return Result(self.schema, rows.nbytes, partial(self._frame, rows), computed, partial(self._staged, rows))

    def _frame(self, rows: EpochRows) -> DataFrame:
        return self._query.rows(rows.frames, rows.tasks).frame

    def _staged(self, rows: EpochRows, location: Location) -> list[FragmentMetadata]:
        halved = {name: each.halved for name, each in rows.frames.items() if each is not None}
        if self._origin is None or self._origin.name != FILE_FIELD.name or None in halved.values():
            return self._written.staged(rows.frames, location, rows.tasks)
        return self._written_of_halves.staged(halved, location, rows.tasks)

    @cached_property
    def _written(self) -> StagedQuery:
        return StagedQuery(self._catalyst, self._plan, self._view.leaves, self.schema)

    @cached_property
    def _written_of_halves(self) -> StagedQuery:
        """The result with `FILE_HALVES` in place of the file, which tasks put together."""
        plan = self._view.plan
        for field in FILE_HALVES:
            plan = with_carried_column(self._catalyst, plan, field)
        return StagedQuery(self._catalyst, plan, self._view.leaves, self.schema)


class RowView:
    """Maintains one such view; the subclasses know how rows leave.

    Attributes:
        changes: of the view's rows, if other views read them.

    Args:
        root: the directory of the pipeline.
        origin: the hidden column that tells where a row comes from; None without it.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan, origin: pa.Field | None) -> None:
        self._catalyst, self._root, self._plan = catalyst, root, plan
        self._query = RowQuery(catalyst, plan, origin)
        self.changes = ChangeLog(self._snapshot)
        self._path = ""
        self._opened: ViewTable | None = None

    @property
    def _table(self) -> ViewTable:
        assert self._opened is not None, "create or open comes first"
        return self._opened

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the dataset in the epoch that creates the view, with the result over these rows."""
        self._path = view_path(self._plan.name, epoch)
        location = self._root.child(self._path)
        self._opened = create_of_result(location, self._query.over(rows))
        return self._version()

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._path = version.path
        self._opened = ViewTable.open(self._root.child(version.path), version.version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Adds the result over further rows; an empty result makes no new version.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        append_result(self._table, self._query.over(rows))
        return self._version()

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""
        return 0 if self._opened is None else self._opened.num_rows

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return self._opened is not None and self._opened.tidy(audit)

    def _snapshot(self) -> lance.LanceDataset:
        """A handle on the view's rows as they are now."""
        return self._table.snapshot()

    def _added(self, rows: NewRows, before: lance.LanceDataset, names: Sequence[str]) -> pa.Table | AddedRows:
        """Rows that the last commit has added, for those who follow the changes.

        Args:
            before: a handle on the rows before that commit.
        """
        if isinstance(rows, pa.Table):
            return rows.select(names)
        schema = pa.schema([self._query.schema.field(each) for each in names])
        return AddedRows(self._table.location, self._snapshot(), self._table.added_since(before), schema)

    def _version(self) -> ViewVersion:
        return ViewVersion(self._plan.name, self._path, self._table.version)
