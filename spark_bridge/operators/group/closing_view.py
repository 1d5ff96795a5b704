"""A view that shows a group of a window once, when the watermark has passed the end of the window.

    state   the partials of the open groups        an epoch's rows are merged into them; beside them, the values that
                                                   DISTINCT has seen in open groups
    rows    the closed groups                      a group moves here when its window closes, and stays as it is

The version of the view records the watermark up to which its windows are closed.  A row of a window that was closed
before its epoch is late: it changes nothing, and is handed out to be kept with its file.

A session may get longer as long as rows of its time may come.  So it closes when the watermark is after its end, and a
row is late if it happened before the watermark; no row in time then touches a closed session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from actors.schemas.metadata_columns import PATH, ROW
from actors.sources.event_time import event_times_us
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.datasets.view_table import ViewTable, time_in_sql
from spark_bridge.engine.catalyst.carried_column import columns_of_leaf
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression
from spark_bridge.engine.execution.frame_queries import FrameQueries
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.engine.execution.planned_once import PlannedOnce
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.ingest.followed_watermarks import closed_until
from spark_bridge.operators.group.aggregate_plan import AggregatePlan
from spark_bridge.operators.group.aggregate_view import AggregateView
from spark_bridge.operators.group.distinct_set import UNTIL_FIELD
from spark_bridge.operators.group.merge_plan import KEY_FIELD, EpochPartials, MergedGroups
from spark_bridge.operators.group.session_merge import together
from spark_bridge.operators.window.session_windows import with_all_sessions
from spark_bridge.plans.columns import aggregate_of
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.group_key import KEY_COLUMN, keys_of_rows
from state.tables.records import ViewVersion
from state.tables.row_selection import quoted_column

_CLOSED_FIELD = pa.field("__sw_closed", pa.int64())


class ClosingView(AggregateView):
    """Maintains one such view.

    Args:
        root: the directory of the pipeline.
    """

    _closes_at = "<="

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan)
        assert plan.closing is not None, "it groups by a window"
        self._source, self._position = plan.closing.source, plan.closing.position
        self._closed: int | None = None
        self._num_late = 0
        self._late: list[LateRows] = []

    @property
    def num_open(self) -> int:
        """Number of open groups."""
        state = self._tables.state
        return 0 if state is None else state.num_rows

    @property
    def num_late(self) -> int:
        """Number of late rows since the view was created; a row counts once for each window."""
        return self._num_late

    @property
    def computes_beside(self) -> bool:
        """No: whether a row is late, the watermark of the last epoch decides."""
        return False

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the datasets in the epoch that creates the view; no row of it is late."""
        super().create(epoch, rows)
        self._close(rows)
        return self._version

    def _first(self, merged: MergedGroups) -> MergedGroups:
        return MergedGroups(merged.result.schema.empty_table(), self._opened(merged))

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
        if rows.frames.get(self._source) is not None:
            self._merge_in_time(rows)
        self._close(rows)
        return self._version

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        late, self._late = self._late, []
        return late

    def _keep(self, late: LateRows) -> None:
        self._late.append(late)
        self._num_late += late.rows.num_rows

    def _columns_shown(self, plan: ViewPlan) -> dict[str, Expression]:
        """Name → attribute of the columns of the source that are shown of a late row: its place, and what is used."""
        found = columns_of_leaf(self._catalyst.trees, aggregate_of(plan.plan).child(), plan.leaves)
        return {name: found[name] for name in (PATH, ROW, *sorted(plan.columns[self._source])) if name in found}

    def _opened(self, merged: MergedGroups) -> pa.Table:
        """New groups as they are stored while they are open."""
        assert merged.state is not None, "open groups are stored apart"
        return merged.state

    def _shut(self, groups: pa.Table) -> pa.Table:
        """Stored groups that have closed, under their own keys."""
        return groups

    def _merge_in_time(self, rows: EpochRows) -> None:
        """Merges the rows of open groups into them; the others are late."""
        partials = self._on_time(self._partials(rows), rows)
        if partials.groups.num_rows:
            stored, _ = self._look_up(partials.groups.column(KEY_COLUMN))
            self._open_groups.upsert(self._opened(self._plan.merge(partials, stored)))
        # These include the values of late rows, which `_close` deletes when it next closes a window.
        self._tables.merge_values(partials.distinct, are_counted=False)

    def _on_time(self, partials: EpochPartials, rows: EpochRows) -> EpochPartials:
        """The partials of the groups that are open; the rows of the others are late."""
        if self._closed is None or partials.groups.num_rows == 0:
            return partials
        ends = pc.struct_field(partials.groups.column(1 + self._position), "end")
        is_late = pc.less_equal(event_times_us(ends), self._closed)
        late = partials.groups.filter(is_late)
        if late.num_rows:
            found = self._plan.rows.rows_of_groups(rows.frames, late, self._columns_shown(self._view))
            self._keep(LateRows(self._name, self._source, self._closed, found))
        return replace(partials, groups=partials.groups.filter(pc.invert(is_late)))

    def _close(self, rows: EpochRows) -> None:
        """Moves the groups whose windows end at the watermark, or before it, to the rows of the view."""
        watermark = rows.watermarks.get(self._source)
        if watermark is None or (self._closed is not None and watermark <= self._closed):
            return
        self._closed = watermark
        kind = self._open_groups.schema.field(self._window).type.field("end").type
        groups = self._open_groups.take_where(
            f"{quoted_column(self._window)}.`end` {self._closes_at} {time_in_sql(watermark, kind)}"
        )
        if groups.num_rows == 0:
            return
        groups = self._shut(groups)
        merged = self._plan.result_of(groups)
        keys = groups.column(KEY_COLUMN)
        if merged.num_rows:
            self._tables.table.append(merged)
        if self._tables.distinct is not None:
            self._tables.distinct.delete_where(f"{UNTIL_FIELD.name} <= {watermark}")
        if self.changes.is_kept:
            after = merged.select([KEY_COLUMN, *self._view.schema.names])
            self.changes.note(ChangeSet(keys.combine_chunks(), after.slice(0, 0), after))

    @property
    def _open_groups(self) -> ViewTable:
        state = self._tables.state
        assert state is not None, "open groups are stored apart"
        return state

    @property
    def _window(self) -> str:
        """The column of the state with the windows."""
        return self._plan.grouping_names[self._position]

    @property
    def _version(self) -> ViewVersion:
        return replace(super()._version, progress=json.dumps({"closed": self._closed, "late": self._num_late}))


class ClosingSessions(ClosingView):
    """Maintains a view of sessions that close.

    Open sessions are stored by the text of their other keys: an epoch looks up those that its rows may touch.  Few rows
    are sessions by themselves, which need no job, until they are put together with the open ones; many are put together
    by Spark first.

    Args:
        root: the directory of the pipeline.
        plan: of the view; each row has the session of itself alone.
    """

    _closes_at = "<"

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, replace(plan, plan=with_all_sessions(catalyst, plan.plan)))
        assert plan.closing is not None and plan.closing.session_time is not None, "it groups by sessions"
        self._time, self._frames = plan.closing.session_time, FrameQueries()
        self._alone = AggregatePlan(catalyst, plan, subtracts=False, counts=False)
        shown = [catalyst.expressions.alias(each, name) for name, each in self._columns_shown(plan).items()]
        self._late_rows = catalyst.queries.analyse(catalyst.plans.project(shown, aggregate_of(plan.plan).child()))

    @cached_property
    def _late_query(self) -> PlannedOnce:
        return PlannedOnce(self._catalyst, self._late_rows, self._view.leaves)

    def _opened(self, merged: MergedGroups) -> pa.Table:
        """New sessions as they are stored while they are open."""
        sessions = super()._opened(merged)
        return _keyed(sessions, [name for name in self._plan.grouping_names if name != self._window])

    def _shut(self, groups: pa.Table) -> pa.Table:
        return _keyed(groups, self._plan.grouping_names)

    def _merge_in_time(self, rows: EpochRows) -> None:
        """Puts the sessions of rows that are in time together with open ones; the other rows are late."""
        rows = self._without_late(rows)
        leaf = rows.frames[self._source]
        plan = self._plan if leaf is None or leaf.few is None else self._alone
        new = self._opened(plan.merge(self._partials(rows, plan), None))
        if new.num_rows == 0:
            return
        keys = new.column(KEY_COLUMN).combine_chunks().unique()
        stored = self._open_groups.rows_of(keys, new.schema.names).select(new.schema.names).cast(new.schema)
        whole = together(pa.concat_tables([stored, new]), self._window, self._plan.merge_groups)
        self._open_groups.exchange(keys, whole)

    def _without_late(self, rows: EpochRows) -> EpochRows:
        """The rows that are in time; those that the view would count of the others are kept for `take_late`."""
        leaf = rows.frames[self._source]
        if self._closed is None or leaf is None:
            return rows
        late, in_time = self._parted(leaf, self._closed)
        if late is not None:
            self._view.timestamps.set_time(rows.time_us)
            schema = self._catalyst.schemas.arrow_schema(self._late_rows)
            found = self._late_query.table({self._source: late}, schema)
            if found.num_rows:
                what = "sessions of its time may be closed"
                self._keep(LateRows(self._name, self._source, self._closed, found, what))
        return replace(rows, frames={**rows.frames, self._source: in_time})

    def _parted(self, rows: LeafRows, closed: int) -> tuple[LeafRows | None, LeafRows]:
        """The rows before a watermark, or None without such rows, and the other rows."""
        if rows.few is not None:
            is_late = pc.less(event_times_us(rows.few.column(self._time)), closed)
            if not pc.any(is_late).as_py():
                return None, rows
            halves = (rows.few.filter(each) for each in (is_late, pc.invert(is_late)))
            late, in_time = (LeafRows.of_table(self._catalyst.spark, each) for each in halves)
            return late, in_time
        time, watermark = self._time, F.col(_CLOSED_FIELD.name)
        one = pa.table([pa.array([closed], _CLOSED_FIELD.type)], schema=pa.schema([_CLOSED_FIELD]))
        given = rows, LeafRows.of_table(self._catalyst.spark, one)

        def timed(rows: DataFrame, closed: DataFrame) -> DataFrame:
            return rows.crossJoin(F.broadcast(closed))

        late = self._frames.rows(
            self._catalyst, ("late", time), lambda *both: timed(*both).where(_micros(time) < watermark), *given
        )
        in_time = self._frames.rows(
            self._catalyst, ("in time", time), lambda *both: timed(*both).where(_micros(time) >= watermark), *given
        )
        return late, in_time


def _micros(column: str) -> Column:
    """The event time in microseconds since 1970; a time without a zone counts as UTC."""
    return F.unix_micros(F.col(quoted_name(column)).cast("timestamp"))


def _keyed(groups: pa.Table, by: Sequence[str]) -> pa.Table:
    """The groups with the texts of these columns as their keys."""
    keys = keys_of_rows([groups.column(name) for name in by], groups.num_rows)
    return groups.set_column(groups.schema.get_field_index(KEY_COLUMN), KEY_FIELD, keys)
