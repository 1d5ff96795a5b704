"""Check of the watermarks of the sources."""

from __future__ import annotations

import json
from collections.abc import Callable

from state.epoch import epoch_time_us
from tests.simulation.memory.file_tables import FileTables, file_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import event_time_us

_AHEAD_US = 2_000
"""An epoch is at most so much ahead of the clock."""


class WatermarkChecker:
    """Checks that watermarks never go back, and pass no file that is listed and not finished.

    A watermark passes the event times of the rows that came only if none has come for the idle time: then it is so much
    behind the clock.

    Args:
        bucket: the files and their contents.
        lateness_us: of every source; None for sources without an event time.
        idle_us: of every source; None for sources that are never idle.
        time_us: the time, in microseconds since 1970.
    """

    def __init__(
        self,
        bucket: Bucket,
        lateness_us: int | None,
        idle_us: int | None = None,
        time_us: Callable[[], int] = lambda: 0,
    ) -> None:
        self._bucket, self._lateness_us, self._idle_us, self._time_us = bucket, lateness_us, idle_us, time_us
        self._last: dict[str, int] = {}
        # Source → the rows so far, and of each epoch with more of them its time, and that of its commit.
        self._rows: dict[str, int] = {}
        self._came: dict[str, list[tuple[int, int]]] = {}
        # Files that were finished; some come back into the queue.
        self._finished: set[bytes] = set()

    def begin(self, above: WatermarkChecker) -> None:
        """Begins with the files that the root above a branch has finished."""
        self._finished = {*above._finished}

    def check(self, tables: FileTables, epoch: int = 0) -> None:
        """Checks the watermarks of one version of the store.

        Args:
            tables: its rows about files.
            epoch: that of its head.
        """
        if self._idle_us is not None:
            self._note_rows(tables, epoch)
        for row in tables.catalog.values():
            if row["kind"] != "watermark":
                continue
            if self._lateness_us is None:
                raise _broken(row["name"], "it has no event time, and a watermark")
            self._check(row["name"], json.loads(row["definition"]), tables, self._lateness_us)
        self._finished |= tables.ledger.keys()

    def _check(self, source: str, watermark: dict[str, int | None], tables: FileTables, lateness_us: int) -> None:
        at, high, before = watermark["at"], watermark["high"], self._last.get(source)
        for row, end in tables.offsets():
            came = self._high(row, end) if row["source"] == source else None
            if came is not None and (high is None or high < came):
                raise _broken(source, f"a row has come with the event time {came}, and {high} is known")
        if at == before:
            return
        if at is None or (before is not None and at < before):
            raise _broken(source, f"it was {before}, and is {at}")
        self._last[source] = at
        reaching = [
            row["listed_epoch"]
            for row in tables.ledger.values()
            if row["source"] == source and (self._high(row) or 0) >= at + lateness_us
        ]
        if not reaching:
            self._check_idle(source, at, tables, lateness_us)
            return
        for key, row in tables.queue.items():
            is_new = row["source"] == source and key not in self._finished
            if is_new and row["listed_epoch"] <= min(reaching):
                raise _broken(source, f"it is {at}, and {row['path']} is not finished")

    def _check_idle(self, source: str, at: int, tables: FileTables, lateness_us: int) -> None:
        """Checks a watermark that no row has reached: it is that of an idle source."""
        if self._idle_us is None:
            raise _broken(source, f"it is {at}, and no finished file has a row at {at + lateness_us}")
        mark_us = at + self._idle_us
        if mark_us > self._time_us() + _AHEAD_US:
            raise _broken(source, f"it is {at}, and an idle source is at {self._time_us() - self._idle_us}")
        came = [begun for begun, committed in self._came.get(source, ()) if committed <= mark_us]
        if came and came[-1] > at + _AHEAD_US:
            raise _broken(source, f"it is {at} as of an idle source, and rows came in the epoch of {came[-1]}")
        for key, row in tables.queue.items():
            is_new = row["source"] == source and key not in self._finished
            if is_new and epoch_time_us(row["listed_epoch"]) < mark_us:
                raise _broken(source, f"it is {at} as of an idle source, and {row['path']} is not finished")

    def _note_rows(self, tables: FileTables, epoch: int) -> None:
        rows: dict[str, int] = {}
        for row, offset in tables.offsets():
            good = self._bucket.contents[file_of(row)].good_rows(offset)
            rows[row["source"]] = rows.get(row["source"], 0) + len(good)
        for source, count in rows.items():
            if count > self._rows.get(source, 0):
                self._came.setdefault(source, []).append((epoch_time_us(epoch), self._time_us()))
        self._rows = rows

    def _high(self, row: Row, end: int | None = None) -> int | None:
        """The highest event time of the rows of a file, or of those before `end`."""
        content = self._bucket.contents[file_of(row)]
        good = content.good_rows(content.readable_rows if end is None else end)
        return event_time_us(file_of(row), good[-1]) if good else None


def _broken(source: str, text: str) -> PromiseBroken:
    return PromiseBroken("time", f"the watermark of source {source}: {text}")
