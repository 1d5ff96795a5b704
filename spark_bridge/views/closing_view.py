"""A view that shows a group of a window once, when the watermark has passed the end of the window.

    state   the partials of the open groups        an epoch's rows are merged into them
    rows    the closed groups                      a group moves here when its window closes, and stays as it is

The version of the view records the watermark up to which its windows are closed.  A row of a window that was closed
before its epoch is late: it changes nothing, and is handed out to be kept with its file.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from actors.schemas.metadata_columns import PATH, ROW
from actors.sources.event_time import event_times_us
from spark_bridge.aggregation.merge_plan import EpochPartials
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.datasets.view_table import ViewTable, state_path, time_in_sql, view_path
from spark_bridge.hand_over.epoch_rows import EpochRows, LateRows
from spark_bridge.hand_over.followed_watermarks import closed_until
from spark_bridge.views.aggregate_view import AggregateView
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion


class ClosingView(AggregateView):
    """Maintains one such view.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan)
        assert plan.closing is not None, "it groups by a window"
        self._source, self._position = plan.closing.source, plan.closing.position
        self._used = sorted(plan.columns[self._source] - {PATH, ROW})
        self._closed: int | None = None
        self._num_late = 0
        self._late: list[LateRows] = []

    @property
    def num_open(self) -> int:
        """Number of open groups."""
        return 0 if self._state is None else self._state.num_rows

    @property
    def num_late(self) -> int:
        """Number of late rows since the view was created; a row counts once for each window."""
        return self._num_late

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the datasets in the epoch that creates the view; no row of it is late."""
        merged = self._plan.merge(self._partials(rows), None)
        assert merged.state is not None, "open groups are stored apart"
        self._path, self._state_path = view_path(self._name, epoch), state_path(self._name, epoch)
        self._table = ViewTable.create(self._root.child(self._path), merged.result.schema.empty_table())
        self._state = ViewTable.create(self._root.child(self._state_path), merged.state)
        self._close(rows)
        return self._version(self._table)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill has closed no window."""
        super().open(version)
        self._closed = closed_until(version)
        self._num_late = version.noted.get("late", 0)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Merges an epoch's rows into the open groups, and closes those whose windows the watermark has passed.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        assert self._table is not None and self._state is not None, "create or open comes first"
        if rows.frames.get(self._source) is not None:
            partials = self._on_time(self._partials(rows), rows)
            if partials.groups.num_rows:
                stored, _ = self._look_up(partials.groups.column(KEY_COLUMN))
                merged = self._plan.merge(partials, stored)
                assert merged.state is not None, "open groups are stored apart"
                self._state.upsert(merged.state)
        self._close(rows)
        return self._version(self._table)

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        late, self._late = self._late, []
        return late

    def _on_time(self, partials: EpochPartials, rows: EpochRows) -> EpochPartials:
        """The partials of the groups that are open; the rows of the others are late."""
        if self._closed is None or partials.groups.num_rows == 0:
            return partials
        window = partials.groups.column(1 + self._position).combine_chunks()
        is_late = pc.less_equal(event_times_us(pa.chunked_array([pc.struct_field(window, "end")])), self._closed)
        late = partials.groups.filter(is_late)
        if late.num_rows:
            found = self._plan.rows_of_groups(rows.frames, late, [PATH, ROW, *self._used])
            self._late.append(LateRows(self._name, self._source, self._closed, found))
            self._num_late += found.num_rows
        return replace(partials, groups=partials.groups.filter(pc.invert(is_late)))

    def _close(self, rows: EpochRows) -> None:
        """Moves the groups whose windows end at the watermark, or before it, to the rows of the view."""
        watermark = rows.watermarks.get(self._source)
        if watermark is None or (self._closed is not None and watermark <= self._closed):
            return
        assert self._table is not None and self._state is not None
        self._closed = watermark
        kind = self._state.schema.field(self._plan.grouping_names[self._position]).type.field("end").type
        end = time_in_sql(watermark, kind)
        groups = self._state.rows_where(f"`{self._plan.grouping_names[self._position]}`.`end` <= {end}")
        if groups.num_rows == 0:
            return
        merged = self._plan.result_of(groups)
        keys = groups.column(KEY_COLUMN)
        if merged.num_rows:
            self._table.append(merged)
        self._state.delete(keys.combine_chunks())
        if self.changes.is_kept:
            after = merged.select([KEY_COLUMN, *self._view.schema.names])
            self.changes.note(ChangeSet(keys.combine_chunks(), after.slice(0, 0), after))

    def _version(self, table: ViewTable) -> ViewVersion:
        return replace(super()._version(table), progress=json.dumps({"closed": self._closed, "late": self._num_late}))
