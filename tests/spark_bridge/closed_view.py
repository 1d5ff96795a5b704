"""A view that shows groups when their windows close, and what it must show.

The expected groups are counted in Python, from the rows and the watermark of each epoch alone.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.ingest.followed_watermarks import closed_until
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from tests.spark_bridge.earlier_rows import EarlierRows
from tests.spark_bridge.followed_view import FollowedView, blocks

START = datetime(2024, 1, 1, tzinfo=UTC)
_ORIGIN = [pa.field("_path", pa.string()), pa.field("_row", pa.int64())]
SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64()), *_ORIGIN])
Group = tuple[datetime, datetime, str | None]


def us(minute: int) -> int:
    """A minute after START, in microseconds since 1970."""
    return (START + timedelta(minutes=minute) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def rows_of_file(chance: random.Random, path: str, count: int, minutes: range) -> pa.Table:
    """Random rows of these minutes."""
    rows = [
        {
            "at": START + timedelta(minutes=chance.choice(minutes), seconds=chance.randrange(60)),
            "k": chance.choice(["a", "b", None]),
            "x": chance.choice([1, 2, 3, None]),
            "_path": f"/in/{path}",
            "_row": row,
        }
        for row in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


class Groups(Protocol):
    """The groups of the rows that came in time."""

    def take(self, row: Mapping[str, Any], closed: datetime | None) -> int:
        """Takes a row when windows are closed up to a watermark.  Returns for how many of its windows it is late."""

    def every(self) -> Iterator[tuple[Group, list[int]]]:
        """Yields each group with its values."""

    def is_closed(self, group: Group, closed: datetime) -> bool:
        """Whether its window is closed at a watermark."""


class Windows:
    """Windows of a size, which begin every so many minutes."""

    def __init__(self, size: int, slide: int) -> None:
        self._size, self._slide = timedelta(minutes=size), timedelta(minutes=slide)
        self._groups: dict[Group, list[int]] = defaultdict(list)

    def take(self, row: Mapping[str, Any], closed: datetime | None) -> int:
        late, start = 0, START + (row["at"] - START) // self._slide * self._slide
        while start + self._size > row["at"]:
            if closed is None or start + self._size > closed:
                self._groups[start, start + self._size, row["k"]].append(row["x"])
            else:
                late += 1
            start -= self._slide
        return late

    def every(self) -> Iterator[tuple[Group, list[int]]]:
        yield from self._groups.items()

    def is_closed(self, group: Group, closed: datetime) -> bool:
        return group[1] <= closed


class Sessions:
    """Sessions with a gap in minutes."""

    def __init__(self, gap: int) -> None:
        self._gap = timedelta(minutes=gap)
        self._rows: list[Mapping[str, Any]] = []

    def take(self, row: Mapping[str, Any], closed: datetime | None) -> int:
        if closed is not None and row["at"] < closed:
            return 1
        self._rows.append(row)
        return 0

    def every(self) -> Iterator[tuple[Group, list[int]]]:
        keys = {row["k"] for row in self._rows}
        for key in keys:
            group: Group | None = None
            values: list[int] = []
            for row in sorted((row for row in self._rows if row["k"] == key), key=lambda row: row["at"]):
                if group is not None and row["at"] > group[1]:
                    yield group, values
                    group, values = None, []
                group = (row["at"] if group is None else group[0], row["at"] + self._gap, key)
                values.append(row["x"])
            assert group is not None
            yield group, values

    def is_closed(self, group: Group, closed: datetime) -> bool:
        return group[1] < closed


class Followed:
    """A view with `emit="on_close"`, one that reads it, and what both must show.

    Args:
        spark: a session.
        root: a directory.
        query: with the columns `since`, `until`, `k`, `n` and `s`, the sum of `x`, maybe DISTINCT; of the rows of `t`
            with an `x`, or of those of `clean`, which are the same.
        groups: makes what it groups, without rows.
        least: the number of rows that a group needs to be shown.
        is_late: whether they are declared after other views, by `declare`.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        query: str,
        groups: Callable[[], Groups],
        *,
        least: int = 1,
        is_late: bool = False,
    ) -> None:
        self._spark, self._root, self._query, self._least = spark, Location(str(root)), query, least
        self._no_groups, self._groups = groups, groups()
        self._definitions = [
            ViewDefinition("early", "SELECT k, count(*) AS n FROM t GROUP BY k"),
            ViewDefinition("clean", "SELECT at AS moment, k, upper(_path) AS _path, x FROM t WHERE x IS NOT NULL"),
        ]
        self._epoch, self._term = 0, 1
        self._views: Mapping[str, ViewVersion] = {}
        self._known: dict[str, CatalogView] = {}
        self._ingested: dict[int, pa.Table] = {0: SCHEMA.empty_table()}
        self._closed: int | None = None
        self._is_hidden = is_late
        if not is_late:
            self._add()
        self.materializer = self._made()

    def _add(self) -> None:
        self._definitions += [
            ViewDefinition("closed", self._query, emit="on_close"),
            ViewDefinition("above", "SELECT k, count(*) AS windows, sum(n) AS n FROM closed GROUP BY k"),
        ]

    def declare(self) -> None:
        """Declares the views, which lack the rows so far."""
        self._add()
        self.materializer.declare(self._definitions, {"t": SCHEMA}, self._known)

    def _made(self) -> Materializer:
        made = Materializer(
            self._spark, self._root, open_history=self._history, event_times={"t": "at"}, backfill_weight=1
        )
        if self._epoch:
            made.open(self._views, self._epoch, {"t"})
        made.declare(self._definitions, {"t": SCHEMA}, self._known)
        return made

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> EarlierRows:
        columns = [name for name in SCHEMA.names if name in plan.columns["t"]]
        return EarlierRows("t", self._ingested[epoch].select(columns), progress)

    def reopen(self) -> None:
        """Ends the attempt; the next one continues from the last epoch."""
        self.materializer.close()
        self._term += 1
        self._views = restored_views(self._views, lambda view: restore(self._root, view, self._term))
        self.materializer = self._made()

    def lose(self, rows: pa.Table, minute: int) -> None:
        """Runs an epoch that is never committed, and ends the attempt."""
        given = {"t": blocks(rows, 2, self.materializer.columns()["t"])}
        self.materializer.run_epoch(self._epoch + 1, given, (), {"t": us(minute)})
        self.reopen()

    def rebuild(self) -> None:
        """Rebuilds the views, which show their earlier rows meanwhile; no row is late for them."""
        stand = {name: replace(self._known[name], stopped_epoch=0) for name in ("closed", "above")}
        self.materializer.declare(self._definitions, {"t": SCHEMA}, self._known | stand)
        self._is_hidden, self._closed = True, None
        self._groups = self._no_groups()
        for row in self._ingested[self._epoch].to_pylist():
            if row["x"] is not None:
                self._groups.take(row, None)

    @property
    def is_hidden(self) -> bool:
        """Whether the views, or the new ones, are not shown yet."""
        return self._is_hidden

    @property
    def is_shown(self) -> bool:
        return {"closed", "above"} <= self._views.keys()

    def run(self, rows: pa.Table | None, minute: int | None) -> EpochViews:
        """Runs an epoch, and counts what it must show."""
        self._epoch += 1
        rows = SCHEMA.empty_table() if rows is None else rows
        given = {"t": blocks(rows, 2, self.materializer.columns()["t"])} if rows.num_rows else {}
        self._ingested[self._epoch] = pa.concat_tables([self._ingested[self._epoch - 1], rows])
        closes, before = not self._is_hidden, self._known.get("closed")
        done = self.materializer.run_epoch(self._epoch, given, (), {} if minute is None else {"t": us(minute)})
        kept = {name: view for name, view in self._views.items() if name not in done.dropped}
        self._views = {**kept, **done.views}
        self._known = done.catalog(self._known)
        shown = self._known.get("closed")
        if self.is_shown and shown is not None and (before is None or shown.created_epoch != before.created_epoch):
            self._is_hidden = False
        late = Counter[tuple[str, int]]()
        for row in rows.to_pylist():
            if row["x"] is not None and (times := self._groups.take(row, self._closed_at)):
                late[row["_path"], row["_row"]] = times
        found = Counter[tuple[str, int]]()
        for each in done.late:
            assert (each.view, each.source, each.closed) == ("closed", "t", us(self._closed or 0))
            assert each.rows.column_names == ["_path", "_row", "at", "k", "x"]
            assert {*each.rows.to_pylist()[0].items()} in [{*row.items()} for row in rows.to_pylist()]
            found.update(zip(each.rows["_path"].to_pylist(), each.rows["_row"].to_pylist(), strict=True))
        assert found == late
        if minute is not None and closes:
            self._closed = minute if self._closed is None else max(minute, self._closed)
        return done

    def check(self) -> int:
        """Compares both views with what was counted.  Returns the number of groups that are shown."""
        closed = self._closed_at
        every = dict(self._groups.every())
        shut = {group for group in every if closed is not None and self._groups.is_closed(group, closed)}
        total: Callable[[list[int]], int] = (lambda values: sum({*values})) if "DISTINCT" in self._query else sum
        expected = {
            group: (len(every[group]), total(every[group])) for group in shut if len(every[group]) >= self._least
        }
        shown = self._dataset("closed").to_table(columns=["since", "until", "k", "n", "s"]).to_pylist()
        assert len(shown) == len(expected)
        assert {(row["since"], row["until"], row["k"]): (row["n"], row["s"]) for row in shown} == expected
        above = self._dataset("above").to_table(columns=["k", "windows", "n"]).to_pylist()
        totals = Counter(k for _, _, k in expected)
        assert {row["k"]: row["windows"] for row in above} == totals
        version = self._views["closed"]
        assert closed_until(version) == (None if self._closed is None else us(self._closed))
        assert version.state_path is not None and version.state_version is not None
        open_groups = lance.dataset(str(self._root.child(version.state_path)), version=version.state_version)
        assert open_groups.count_rows() == len(every) - len(shut)
        if version.distinct_path is not None and version.distinct_version is not None:
            seen = lance.dataset(str(self._root.child(version.distinct_path)), version=version.distinct_version)
            assert seen.count_rows() == sum(len({*values}) for group, values in every.items() if group not in shut)
        return len(shown)

    def shown(self) -> pa.Table:
        """The rows of the view."""
        return self._dataset("closed").to_table()

    @property
    def _closed_at(self) -> datetime | None:
        return None if self._closed is None else START + timedelta(minutes=self._closed)

    def _dataset(self, name: str) -> lance.LanceDataset:
        return FollowedView.open(self._root, self._views[name])
