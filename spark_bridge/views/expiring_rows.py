"""Hidden views whose rows leave by watermarks: the sides of joins, and the rows below a time to live.

The rows of a side of a join leave when the watermarks tell that no partner can come.

The watermarks that an epoch follows are those of the epoch before, which the version of the view records: the rows of
an epoch are in time if they are not below them, and meet all rows that were there before the epoch::

    late rows  ──→ handed out, to be kept with their file
    new rows   ──→ appended, and told to the join
    old rows   ──→ deleted, and not told: the join has made of them what it makes

The rows below a time to live leave one epoch after they have left the view, which takes them out itself: see
`spark_bridge.changes.timed_rows`.  None of them is late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from actors.schemas.metadata_columns import PATH, ROW, metadata_fields
from actors.sources.event_time import event_times_us
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.carried_column import with_carried_column
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.datasets.view_table import time_in_sql
from spark_bridge.hand_over.epoch_rows import EpochRows, LateRows
from spark_bridge.views.append_view import AppendView
from spark_bridge.views.row_query import RowQuery
from spark_bridge.views.row_view import RowView
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, declared_name, hidden

_PATH, _ROW = metadata_fields(["path", "row"])


class ExpiringRows(RowView):
    """Maintains one such hidden view.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan, None)
        assert plan.expiry is not None, "its rows expire"
        self._expiry = plan.expiry
        with_path = replace(
            plan, plan=with_carried_column(catalyst, plan.plan, _PATH), schema=plan.schema.append(_PATH)
        )
        self._traced = RowQuery(catalyst, with_path, _ROW)
        self._watermarks: Mapping[str, int] = {}
        self._expired: int | None = None
        self._num_late = 0
        self._late: list[LateRows] = []

    @property
    def num_late(self) -> int:
        """Number of late rows since the view was created."""
        return self._num_late

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill follows no watermark yet."""
        super().open(version)
        self._watermarks = followed_watermarks(version)
        self._num_late = version.noted.get("late", 0)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Appends the rows of an epoch that are in time, and deletes those that have expired.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        if not self._watermarks and not rows.watermarks and not self.changes.is_kept:
            return super().apply(rows)  # a piece of a backfill
        if rows.frames.get(self._expiry.time.source) is not None:
            self._append(self._in_time(self._traced.over(rows).table()))
        bound = self._expiry.bound(self._watermarks)
        if bound is not None and bound != self._expired:
            self._expired = bound
            column = self._expiry.time.column
            kind = self._plan.schema.field(column).type
            self._table.delete_where(f"`{column}` < {time_in_sql(bound, kind)}")
            self.changes.expire(column, bound)
        known = {source: us for source, us in rows.watermarks.items() if source in self._expiry.sources}
        self._watermarks = {**self._watermarks, **known}
        return self._version()

    def correct(self, rows: object) -> ViewVersion:
        """Nothing: rows of its source are never replaced."""
        return self._version()

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        late, self._late = self._late, []
        return late

    def _append(self, new: pa.Table) -> None:
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        if new.num_rows:
            self._table.append(new)
            self.changes.note(ChangeSet(pa.array([], FILE_FIELD.type), None, new, before, begun))

    def _in_time(self, found: pa.Table) -> pa.Table:
        """The rows that are not late, without their places."""
        new, source = found.drop_columns([PATH, ROW]), self._expiry.time.source
        if source not in self._watermarks:
            return new
        # The source takes no row without an event time.
        is_late = pc.less(event_times_us(new.column(self._expiry.time.column)), self._watermarks[source])
        late = found.filter(is_late)
        if late.num_rows:
            shown = late.select([PATH, ROW, *(name for name in new.column_names if not hidden(name))])
            view, what = declared_name(self._plan.name), "rows that it joins may have expired"
            self._late.append(LateRows(view, source, self._watermarks[source], shown, what))
            self._num_late += late.num_rows
        return new.filter(pc.invert(is_late))

    def _version(self) -> ViewVersion:
        progress = {"watermarks": dict(self._watermarks), "late": self._num_late}
        return replace(super()._version(), progress=json.dumps(progress))


class AgingRows(AppendView):
    """Maintains the rows below a time to live.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan)
        assert plan.expiry is not None, "its rows leave"
        self._expiry = plan.expiry
        self._watermarks: Mapping[str, int] = {}

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill follows no watermark yet."""
        super().open(version)
        self._watermarks = followed_watermarks(version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Appends the rows of an epoch, and deletes those that were too old at the watermark of the epoch before.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        version = super().apply(rows)
        source = self._expiry.time.source
        watermark = rows.watermarks.get(source)
        if watermark is None or watermark <= self._watermarks.get(source, watermark - 1):
            return version
        if (bound := self._expiry.bound(self._watermarks)) is not None:
            column = self._expiry.time.column
            self._table.delete_where(f"`{column}` < {time_in_sql(bound, self._plan.schema.field(column).type)}")
        self._watermarks = {source: watermark}
        return self._version()

    def _version(self) -> ViewVersion:
        return replace(super()._version(), progress=json.dumps({"watermarks": dict(self._watermarks)}))


def followed_watermarks(version: ViewVersion) -> dict[str, int]:
    """Source → the watermark that the rows of a version follow, in microseconds since 1970."""
    watermarks: dict[str, int] = version.noted.get("watermarks", {})
    return watermarks
