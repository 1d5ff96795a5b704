"""Internal views whose rows expire by watermarks: the sides of joins, and the rows below a time to live.

The rows of a join side are deleted when the watermarks exclude new partners.

An epoch uses the watermarks of the epoch before, which the version of the view records.  Rows of an epoch are in time
if they are not below these watermarks.  The join matches them with all rows that were stored before the epoch::

    late rows  ──→ returned, to be stored with their file
    new rows   ──→ appended, and reported to the join
    old rows   ──→ deleted, and not reported: the joined rows remain

The rows below a time to live are deleted one epoch after the view has retracted them itself: see
`spark_bridge.operators.temporal_filter.temporal_filter_rows`.  None of them is late.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.datasets.view_table import ViewTable, time_in_sql
from spark_bridge.engine.catalyst.carried_column import PLACE, with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.ingest.followed_watermarks import FollowedWatermarks
from spark_bridge.maintenance.append_view import AppendView
from spark_bridge.maintenance.row_view import RowQuery, RowView
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.row_selection import quoted_column
from state.tables.stored_rows import FILE_FIELD

_PATH, _ROW = PLACE


class ExpiringRows(RowView):
    """Maintains one such internal view.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan, None)
        assert plan.expiry is not None, "its rows expire"
        self._time, self._followed = plan.expiry.time, FollowedWatermarks(plan)
        with_path = replace(
            plan, plan=with_carried_column(catalyst, plan.plan, _PATH), schema=plan.schema.append(_PATH)
        )
        self._traced = RowQuery(catalyst, with_path, _ROW)

    @property
    def num_late(self) -> int:
        """Number of late rows since the view was created."""
        return self._followed.num_late

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill follows no watermark yet."""
        super().open(version)
        self._followed.open(version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Appends the rows of an epoch that are in time, and deletes those that have expired.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        if not self._followed.are_known and not rows.watermarks and not self.changes.is_kept:
            return super().apply(rows)  # a piece of a backfill
        if rows.frames.get(self._time.source) is not None:
            self._append(self._followed.in_time(self._traced.over(rows).table()))
        bound = self._followed.next_bound()
        if bound is not None:
            _expire(self._table, self._time.column, bound)
            self.changes.expire(self._time.column, bound)
        self._followed.advance(rows.watermarks)
        return self._version()

    def correct(self, rows: object) -> ViewVersion:
        """Nothing: rows of its source are never replaced."""
        return self._version()

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        return self._followed.take_late()

    def _append(self, new: pa.Table) -> None:
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        if new.num_rows:
            self._table.append(new)
            self.changes.note(ChangeSet(pa.array([], FILE_FIELD.type), None, new, before, begun))

    def _version(self) -> ViewVersion:
        return replace(super()._version(), progress=self._followed.progress)


class AgingRows(AppendView):
    """Maintains the rows below a time to live.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan)
        assert plan.expiry is not None, "its rows leave"
        self._time, self._followed = plan.expiry.time, FollowedWatermarks(plan)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill follows no watermark yet."""
        super().open(version)
        self._followed.open(version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Appends the rows of an epoch, and deletes those that were too old at the watermark of the epoch before.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        version = super().apply(rows)
        if not rows.watermarks:
            return version
        if (bound := self._followed.next_bound()) is not None:
            _expire(self._table, self._time.column, bound)
        self._followed.advance(rows.watermarks)
        return self._version()

    def _version(self) -> ViewVersion:
        return replace(super()._version(), progress=self._followed.progress)


def _expire(table: ViewTable, column: str, bound: int) -> None:
    """Deletes the rows before a time, in microseconds since 1970."""
    table.delete_where(f"{quoted_column(column)} < {time_in_sql(bound, table.schema.field(column).type)}")
