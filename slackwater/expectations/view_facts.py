"""Facts about a view as a whole, epoch after epoch: its number of rows, the newest time, and the records that came."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from actors.sources.event_time import event_times_us
from slackwater.expectations.view_rows import VersionRows
from slackwater.status.text import counted
from spark_bridge.plans.view_conditions import RowCount, ShareOfBadRecords, ViewCondition
from state.epoch import epoch_time_us
from state.errors import EpochExpiredError
from state.tables.expectations import Expectation


@dataclass(frozen=True)
class Records:
    """The records that came in an epoch, and those among them that could not be read."""

    came: int = 0
    bad: int = 0


class ViewFacts:
    """Judges the conditions over one view.

    The newest time follows the changed rows; all of them are read when it leaves, and at the first epoch of an attempt.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int | None]] = {}

    def judged(
        self,
        condition: ViewCondition,
        known: Expectation | None,
        before: VersionRows | None,
        after: VersionRows,
        epoch: int,
        records: Records,
    ) -> Expectation:
        """A condition over a version of the view.

        Args:
            known: as of the version before; None if it was not expected.
            before: that version, if the rows are in the same dataset.
            records: the records that came in it from the sources of the view.

        Raises:
            StorageError: the view cannot be read.
        """
        if known is None or known.condition != condition.text:
            known = Expectation(condition.text)
        known = replace(known, error=None)  # it can be judged, for any note of a merge
        if isinstance(condition, ShareOfBadRecords):
            return _with_records(condition, known, records)
        if isinstance(condition, RowCount):
            rows = after.count()
            is_fulfilled, found = condition.is_fulfilled(rows), counted(rows, "row")
        else:
            newest = self._newest_time(condition.column, before, after)
            is_fulfilled = condition.is_fulfilled(newest, epoch_time_us(epoch))
            found = "no time" if newest is None else f"newest {_shown(newest)}"
        violations = 0 if is_fulfilled else 1
        return replace(
            known,
            rows=violations,
            accepted=min(known.accepted, violations),
            came=known.came + max(0, violations - known.rows),
            found=found,
        )

    def _newest_time(self, column: str, before: VersionRows | None, after: VersionRows) -> int | None:
        """The largest time of a column, in microseconds since 1970; None without one."""
        version, newest = self._newest.get(column, (None, None))
        is_known = before is after and before.version.version == version
        if before is not None and before is not after and before.version.version == version:
            newest, is_known = _followed(newest, column, before, after)
        if not is_known:
            newest = max(
                (at for rows in after.parts([column]) if (at := _largest(rows, column)) is not None), default=None
            )
        self._newest[column] = after.version.version, newest
        return newest


def _with_records(condition: ShareOfBadRecords, known: Expectation, records: Records) -> Expectation:
    """The bad records of all epochs with too many of them, of which a release accepts those that came before."""
    found = f"{records.bad:,} of {counted(records.came, 'record')}"
    if not condition.is_fulfilled(records.came, records.bad):
        bad = known.rows + records.bad
        return replace(known, rows=bad, came=bad, found=found)
    # The last value stays while no record arrives.
    is_news = known.found is None or (records.came and not known.is_violated)
    return replace(known, found=found) if is_news else known


def _followed(newest: int | None, column: str, before: VersionRows, after: VersionRows) -> tuple[int | None, bool]:
    """The largest time after a change, and whether the changed rows tell it."""
    try:
        gone, new = (_largest(rows, column) for rows in after.changed_since(before, [column]))
    except EpochExpiredError:
        return None, False
    if new is not None and (newest is None or new >= newest):
        return new, True
    return newest, gone is None or (newest is not None and gone < newest)


def _largest(rows: pa.Table, column: str) -> int | None:
    largest: int | None = pc.max(event_times_us(rows[column])).as_py()
    return largest


def _shown(us: int) -> str:
    """A time in words; Python's own have no year above 9999."""
    return f"{np.datetime_as_string(np.datetime64(us, 'us'), unit='s').replace('T', ' ')} UTC"
