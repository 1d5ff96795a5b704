"""The watermarks that the rows of a view follow, and the rows that are late by them.

The version of a view records them: those of the epoch before its next one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from actors.schemas.metadata_columns import PATH, ROW
from actors.sources.event_time import event_times_us
from spark_bridge.ingest.epoch_rows import LateRows
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from state.tables.stored_rows import declared_name, hidden


class FollowedWatermarks:
    """The watermarks of an internal view whose rows expire; they decide which rows are late, and which expire.

    Attributes:
        num_late: number of late rows since the view was created.
    """

    def __init__(self, plan: ViewPlan) -> None:
        assert plan.expiry is not None, "its rows expire"
        self._name, self._expiry = declared_name(plan.name), plan.expiry
        self._watermarks: Mapping[str, int] = {}
        self._expired: int | None = None
        self._late: list[LateRows] = []
        self.num_late = 0

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version; that of a backfill follows no watermark yet."""
        self._watermarks = followed_watermarks(version)
        self.num_late = version.noted.get("late", 0)

    @property
    def are_known(self) -> bool:
        """Whether there is one."""
        return bool(self._watermarks)

    def in_time(self, found: pa.Table) -> pa.Table:
        """The rows of an epoch that are not late, without their places; the others are kept for `take_late`.

        Args:
            found: with `_path` and `_row`.
        """
        new, source = found.drop_columns([PATH, ROW]), self._expiry.time.source
        if source not in self._watermarks:
            return new
        # The source takes no row without an event time.
        is_late = pc.less(event_times_us(new.column(self._expiry.time.column)), self._watermarks[source])
        late = found.filter(is_late)
        if late.num_rows:
            shown = late.select([PATH, ROW, *(name for name in new.column_names if not hidden(name))])
            what = "rows that it joins may have expired"
            self._late.append(LateRows(self._name, source, self._watermarks[source], shown, what))
            self.num_late += late.num_rows
        return new.filter(pc.invert(is_late))

    def next_bound(self) -> int | None:
        """The time before which rows leave in this epoch, in microseconds since 1970; None if it has not changed."""
        bound = self._expiry.bound(self._watermarks)
        if bound == self._expired:
            return None
        self._expired = bound
        return bound

    def advance(self, watermarks: Mapping[str, int]) -> None:
        """Takes the watermarks of an epoch, for the next one."""
        known = {source: us for source, us in watermarks.items() if source in self._expiry.sources}
        self._watermarks = {**self._watermarks, **known}

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        late, self._late = self._late, []
        return late

    @property
    def progress(self) -> str:
        """The record of them, for the version of the view."""
        return json.dumps({"watermarks": dict(self._watermarks), "late": self.num_late})


def followed_watermarks(version: ViewVersion) -> dict[str, int]:
    """Source → the watermark that the rows of a version follow, in microseconds since 1970."""
    watermarks: dict[str, int] = version.noted.get("watermarks", {})
    return watermarks


def closed_until(version: ViewVersion) -> int | None:
    """The watermark up to which the windows of a view are closed, in microseconds since 1970; None before the first."""
    closed: int | None = version.noted.get("closed")
    return closed


def follows_watermarks(plan: ViewPlan, waiting: Collection[str]) -> bool:
    """Whether a view follows watermarks now: rows do not expire before the view that joins them has all of them.

    Args:
        waiting: the declared views that lack rows of what they read.
    """
    return plan.closing is not None or (plan.expiry is not None and declared_name(plan.name) not in waiting)


def is_behind(plan: ViewPlan, version: ViewVersion | None, watermarks: Mapping[str, int]) -> bool:
    """Whether a watermark is higher than the one that a version follows; those of other views count for nothing."""
    if version is None or not watermarks:
        return False
    if plan.closing is not None:
        closed, sources = closed_until(version), {plan.closing.source}
        followed = {} if closed is None else {plan.closing.source: closed}
    elif plan.expiry is not None:
        followed, sources = followed_watermarks(version), plan.expiry.sources
    else:
        return False
    known = {source: watermarks[source] for source in sources if source in watermarks}
    return any(source not in followed or followed[source] < us for source, us in known.items())
