"""Views that show a group when its window closes: at every epoch exactly the groups of closed windows.

The expected groups are counted in Python, from the rows and the watermark of each epoch alone.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.epoch_rows import EpochViews
from spark_bridge.hand_over.followed_watermarks import closed_until
from spark_bridge.materializer import Materializer
from state.errors import ViewError
from state.lance.view_dataset import restore
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from tests.spark_bridge.earlier_rows import EarlierRows
from tests.spark_bridge.followed_view import FollowedView, blocks

_START = datetime(2024, 1, 1, tzinfo=UTC)
_ORIGIN = [pa.field("_path", pa.string()), pa.field("_row", pa.int64())]
_SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64()), *_ORIGIN])
_TUMBLING = (
    "SELECT window.start AS since, window.end AS until, k, count(*) AS n, sum(x) AS s FROM t "
    "WHERE x IS NOT NULL GROUP BY window(at, '10 minutes'), k"
)
_HOPPING = _TUMBLING.replace("'10 minutes'", "'20 minutes', '5 minutes'")
_HAVING = _TUMBLING + " HAVING count(*) > 1"
_SIZES = {_TUMBLING: (10, 10), _HOPPING: (20, 5), _HAVING: (10, 10)}
Group = tuple[datetime, datetime, str | None]


def _us(minute: int) -> int:
    return (_START + timedelta(minutes=minute) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _rows(chance: random.Random, path: str, count: int, minutes: range) -> pa.Table:
    rows = [
        {
            "at": _START + timedelta(minutes=chance.choice(minutes), seconds=chance.randrange(60)),
            "k": chance.choice(["a", "b", None]),
            "x": chance.choice([1, 2, 3, None]),
            "_path": f"/in/{path}",
            "_row": row,
        }
        for row in range(count)
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _windows(query: str, at: datetime) -> list[tuple[datetime, datetime]]:
    size, slide = _SIZES[query]
    first = _START + (at - _START) // timedelta(minutes=slide) * timedelta(minutes=slide)
    starts = [first - timedelta(minutes=each) for each in range(0, size, slide)]
    return [(start, start + timedelta(minutes=size)) for start in starts]


class Followed:
    """A view with `emit="on_close"`, one that reads it, and what both must show.

    Args:
        is_late: whether they are declared after other views, by `declare`.
    """

    def __init__(self, spark: SparkSession, root: Path, query: str, *, is_late: bool = False) -> None:
        self._spark, self._root, self._query = spark, Location(str(root)), query
        self._definitions = [ViewDefinition("early", "SELECT k, count(*) AS n FROM t GROUP BY k")]
        self._epoch, self._term = 0, 1
        self._views: Mapping[str, ViewVersion] = {}
        self._known: dict[str, CatalogView] = {}
        self._ingested: dict[int, pa.Table] = {0: _SCHEMA.empty_table()}
        self._closed: int | None = None
        self._groups: dict[Group, list[int]] = defaultdict(list)
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
        self.materializer.declare(self._definitions, {"t": _SCHEMA}, self._known)

    def _made(self) -> Materializer:
        made = Materializer(self._spark, self._root, open_history=self._history, event_times={"t": "at"})
        if self._epoch:
            made.open(self._views, self._epoch, {"t"})
        made.declare(self._definitions, {"t": _SCHEMA}, self._known)
        return made

    def _history(self, plan: ViewPlan, epoch: int, progress: str | None) -> EarlierRows:
        columns = [name for name in _SCHEMA.names if name in plan.columns["t"]]
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
        self.materializer.run_epoch(self._epoch + 1, given, (), {"t": _us(minute)})
        self.reopen()

    def build_anew(self) -> None:
        """Builds the views anew, which show what they showed until then; no row is late for them."""
        stand = {name: replace(self._known[name], frozen_epoch=0) for name in ("closed", "above")}
        self.materializer.declare(self._definitions, {"t": _SCHEMA}, self._known | stand)
        self._is_hidden, self._closed = True, None
        self._groups.clear()
        for row in self._ingested[self._epoch].to_pylist():
            for start, end in _windows(self._query, row["at"]) if row["x"] is not None else []:
                self._groups[start, end, row["k"]].append(row["x"])

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
        rows = _SCHEMA.empty_table() if rows is None else rows
        given = {"t": blocks(rows, 2, self.materializer.columns()["t"])} if rows.num_rows else {}
        self._ingested[self._epoch] = pa.concat_tables([self._ingested[self._epoch - 1], rows])
        closes, before = not self._is_hidden, self._known.get("closed")
        done = self.materializer.run_epoch(self._epoch, given, (), {} if minute is None else {"t": _us(minute)})
        kept = {name: view for name, view in self._views.items() if name not in done.dropped}
        self._views = {**kept, **done.views}
        self._known = done.catalog(self._known)
        shown = self._known.get("closed")
        if self.is_shown and shown is not None and (before is None or shown.created_epoch != before.created_epoch):
            self._is_hidden = False
        late = Counter[tuple[str, int]]()
        for row in rows.to_pylist():
            if row["x"] is None:
                continue
            for start, end in _windows(self._query, row["at"]):
                if self._closed is None or end > _START + timedelta(minutes=self._closed):
                    self._groups[start, end, row["k"]].append(row["x"])
                else:
                    late[row["_path"], row["_row"]] += 1
        found = Counter[tuple[str, int]]()
        for each in done.late:
            assert (each.view, each.source, each.closed) == ("closed", "t", _us(self._closed or 0))
            found.update(zip(each.rows["_path"].to_pylist(), each.rows["_row"].to_pylist(), strict=True))
        assert found == late
        if minute is not None and closes:
            self._closed = minute if self._closed is None else max(minute, self._closed)
        return done

    def check(self) -> int:
        """Compares both views with what was counted.  Returns the number of groups that are shown."""
        end = None if self._closed is None else _START + timedelta(minutes=self._closed)
        least = 2 if self._query is _HAVING else 1
        expected = {
            group: (len(values), sum(values))
            for group, values in self._groups.items()
            if end is not None and group[1] <= end and len(values) >= least
        }
        shown = self._dataset("closed").to_table(columns=["since", "until", "k", "n", "s"]).to_pylist()
        assert len(shown) == len(expected)
        assert {(row["since"], row["until"], row["k"]): (row["n"], row["s"]) for row in shown} == expected
        above = self._dataset("above").to_table(columns=["k", "windows", "n"]).to_pylist()
        totals = Counter(k for _, _, k in expected)
        assert {row["k"]: row["windows"] for row in above} == totals
        version = self._views["closed"]
        assert closed_until(version) == (None if self._closed is None else _us(self._closed))
        assert version.state_path is not None and version.state_version is not None
        open_groups = lance.dataset(str(self._root.child(version.state_path)), version=version.state_version)
        assert open_groups.count_rows() == sum(end is None or group[1] > end for group in self._groups)
        return len(shown)

    def _dataset(self, name: str) -> lance.LanceDataset:
        return FollowedView.open(self._root, self._views[name])


@pytest.mark.parametrize(
    "query",
    [_TUMBLING, *(pytest.param(each, marks=pytest.mark.more) for each in (_HOPPING, _HAVING))],
    ids=lambda query: {_TUMBLING: "tumbling", _HOPPING: "hopping", _HAVING: "having"}[query],
)
def test_groups_are_shown_when_their_window_closes_and_never_change(
    local_spark: SparkSession, tmp_path: Path, query: str
) -> None:
    chance = random.Random(7)
    followed = Followed(local_spark, tmp_path, query)
    shown = []
    for epoch in range(12):
        if epoch in (4, 9):
            followed.reopen()
        rows = None if epoch in (3, 8) else _rows(chance, f"f{epoch}", 20, range(epoch * 5, epoch * 5 + 40))
        if epoch in (6, 10):
            rows = _rows(chance, f"late{epoch}", 9, range(60))
        if epoch == 7:
            followed.lose(_rows(chance, "lost", 9, range(60)), 7 * epoch + 30)
        followed.run(rows, None if epoch < 2 else 7 * epoch)
        shown.append(followed.check())
    assert shown[0] == 0 and shown[-1] > shown[5] > 0
    followed.materializer.close()


@pytest.mark.more
def test_a_view_that_is_declared_late_closes_its_windows_when_it_is_shown(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(3)
    followed = Followed(local_spark, tmp_path, _TUMBLING, is_late=True)
    for epoch in range(3):
        followed.run(_rows(chance, f"f{epoch}", 20, range(epoch * 5, epoch * 5 + 40)), 5 * epoch)
    followed.declare()
    for epoch in range(3, 60):
        if not followed.is_hidden:
            break
        if epoch == 6:
            followed.reopen()
        if not followed.materializer.backfill():
            followed.run(_rows(chance, f"f{epoch}", 3, range(60)), 20)
    assert followed.is_shown
    at = {"t": _us(20)}
    news = [followed.materializer.has_news(at)]
    followed.run(None, 20)
    news.append(followed.materializer.has_news(at))
    assert news == [True, False], "the next epoch closes its windows"
    assert followed.check() > 0
    followed.run(_rows(chance, "late", 9, range(60)), 30)
    assert followed.check() > 0
    # Late rows are let in: the view is built anew.
    followed.build_anew()
    for epoch in range(60, 99):
        if not followed.is_hidden:
            break
        if epoch == 63:
            followed.reopen()
        if not followed.materializer.backfill():
            followed.run(_rows(chance, f"f{epoch}", 3, range(60)), 40)
    assert not followed.is_hidden
    followed.run(None, 40)
    followed.check()
    followed.materializer.close()


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT at, k FROM t", "it does not group the rows of one source"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k", "it does not group by one window of the event time at"),
        (
            "SELECT window.end AS e, count(*) AS n FROM t GROUP BY window(at + INTERVAL 1 HOUR, '1 hour')",
            "of the event",
        ),
        ("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (window(at, '1 hour'), k)", "a group of ROLLUP, CUBE or"),
        ("SELECT window.end AS e, count(DISTINCT k) AS n FROM t GROUP BY window(at, '1 hour')", "it has DISTINCT"),
        ("SELECT window.end AS e, count(*) AS n FROM u GROUP BY window(at, '1 hour')", "source u has no event time"),
        (
            "SELECT window.end AS e, count(*) AS n FROM p GROUP BY window(at, '1 hour')",
            "source p has no _path and _row",
        ),
        ("SELECT window.end AS e, count(*) AS n FROM m GROUP BY window(at, '1 hour')", "source m can be replaced"),
        (
            "SELECT window.end AS e, count(*) AS n FROM (SELECT at, k FROM t) GROUP BY window(at, '1 hour')",
            "its rows are those of a subquery",
        ),
        (
            "SELECT window.end AS e, count(*) AS n FROM t JOIN u USING (k) GROUP BY window(t.at, '1 hour')",
            "it does not group the rows of one source",
        ),
        (
            "SELECT session_window(at, '1 hour') AS w, count(*) AS n FROM t GROUP BY session_window(at, '1 hour')",
            "a late row may put two of its sessions together",
        ),
    ],
)
def test_what_cannot_be_closed_is_refused_with_the_reason(
    local_spark: SparkSession, tmp_path: Path, query: str, what: str
) -> None:
    bare = pa.schema([*_SCHEMA][:3])
    event_times = dict.fromkeys("tpm", "at")
    materializer = Materializer(local_spark, Location(str(tmp_path)), materialized=["m"], event_times=event_times)
    schemas: dict[str, pa.Schema | None] = {"t": _SCHEMA, "u": _SCHEMA, "m": _SCHEMA, "p": bare}
    with pytest.raises(ViewError, match=what):
        materializer.declare([ViewDefinition("v", query, emit="on_close", on_full="allow")], schemas, {})
    materializer.close()


def test_an_emit_that_there_is_not_is_refused() -> None:
    with pytest.raises(ViewError, match="view 'v': emit='final' is not 'on_close'"):
        ViewDefinition("v", "SELECT 1", emit="final")  # type: ignore[arg-type]
