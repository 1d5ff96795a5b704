"""Records that lack a value which every row of their source must have, or have an event time far ahead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from actors.formats.salvage import set_aside
from actors.rows import Rows
from actors.schemas.metadata_columns import row_positions
from actors.sources.event_time import EventTime, event_times_us

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""A time that Python and Spark can show; later ones are bad whatever the source allows."""


def with_values(rows: Rows, needs: Mapping[str, str]) -> Rows:
    """The rows, of which those with a null in one of these columns are bad records.

    Args:
        rows: with all columns of the source that are wanted; a column that is not among them is not looked at.
        needs: column → the part of the source's definition that needs it.
    """
    there = [name for name in needs if name in rows.table.column_names]
    if not any(rows.table.column(name).null_count for name in there):
        return rows
    nulls = {name: np.asarray(pc.is_null(rows.table.column(name))) for name in there}

    def reason(at: int) -> str:
        lacks = next(name for name in there if nulls[name][at])
        return f"column {lacks} is null, and the {needs[lacks]} of the source needs it"

    return set_aside(rows, rows.table, np.logical_or.reduce(list(nulls.values())), reason)


def with_event_times(rows: Rows, event_time: EventTime, now: Callable[[], datetime] | None) -> Rows:
    """The rows with their highest event time, of which those too far ahead of the clock are bad records.

    Args:
        rows: without nulls in the column.
        event_time: the event time of the source.
        now: the wall time; None if the rows were read before, and the clock says nothing about them.
    """
    times = event_times_us(rows.table.column(event_time.column))
    high = pc.max(times).as_py()
    if high is not None and now is not None:
        latest_us = min((now() - _EPOCH) // _MICROSECOND + event_time.max_ahead_us, _LAST_US)
        if high > latest_us:
            latest, is_ahead = _EPOCH + timedelta(microseconds=latest_us), np.asarray(pc.greater(times, latest_us))
            reason = f"{event_time.column} is after {latest:%Y-%m-%d %H:%M:%S} UTC, the limit max_ahead of the source"
            rows = set_aside(rows, rows.table, is_ahead, lambda at: reason)
            high = pc.max(pc.filter(times, pa.array(~is_ahead))).as_py()
    return replace(rows, event_high=high)


def without(rows: Rows, positions: Collection[int]) -> Rows:
    """The rows, of which those at these positions of the file are bad records: they were when it was read first."""
    there: npt.NDArray[np.int64] = row_positions(rows).to_numpy()
    is_bad = np.isin(there, np.fromiter(positions, np.int64))
    return set_aside(rows, rows.table, is_bad, lambda at: "it was set aside before") if is_bad.any() else rows
