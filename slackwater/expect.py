"""Expectations over a view as a whole, for `Pipeline.view(..., expect={...})`.

    pipeline.view(
        "orders_of_today",
        "SELECT id, at FROM orders",
        expect={
            "the day has begun": sw.expect.row_count(at_least=1),
            "orders arrive": sw.expect.freshness("at", within="2 hours"),
            "files can be read": sw.expect.share_of_bad_records(at_most=0.01),
            "amount is positive": "amount > 0",
        },
        on_violation="hold",
    )

They are computed in each epoch, in its commit.  A condition over each row is a text of SQL instead.
"""

from __future__ import annotations

from actors.sources.event_time import Duration
from spark_bridge.plans.view_conditions import Freshness, RowCount, ShareOfBadRecords

__all__ = ["freshness", "row_count", "share_of_bad_records"]


def row_count(*, at_least: int = 0, at_most: int | None = None) -> RowCount:
    """Expects a number of rows.

    Args:
        at_least: the least number.
        at_most: the largest number; None for any.

    Raises:
        SettingsError: no view can have such a number, or every view has.
    """
    return RowCount(at_least, at_most)


def freshness(column: str, *, within: Duration) -> Freshness:
    """Expects that the newest row is young.

    Args:
        column: a date or a timestamp of the view; one without a time zone is in UTC.
        within: the largest time from the newest value of the column to the epoch, such as `"2 hours"`.

    Raises:
        SettingsError: `within` is not a duration above 0.
    """
    return Freshness(column, within)


def share_of_bad_records(*, at_most: float) -> ShareOfBadRecords:
    """Expects that most records of the files can be read.

    It is about the records that came in an epoch from all sources of the view; `on_bad_record="quarantine"` keeps the
    bad ones.  The bad records of an epoch with too many of them violate until a release accepts them.

    Args:
        at_most: the largest share of bad records, from 0 to below 1.

    Raises:
        SettingsError: it is no such share.
    """
    return ShareOfBadRecords(at_most)
