"""Views that close windows or let rows of joins expire are computed again too, at the watermarks of each epoch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from actors.formats.options import Json
from slackwater.verification.recorded_watermarks import RecordedWatermarks
from slackwater.verification.verification import Outcome, ViewCheck
from spark_bridge.plans.view_definition import ON_CLOSE, ViewDefinition
from state.clock import SystemClock
from state.lance.lance_store import LanceStateStore
from state.tables.records import CatalogView
from tests.cases import few
from tests.slackwater.verification.committed_root import CommittedRoot

_START = datetime(2024, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64())])
_GROUPS = "SELECT window.start AS since, k, count(*) AS n, sum(x) AS s FROM t GROUP BY window(at, {}), k"
_TUMBLING, _HOPPING = _GROUPS.format("'10 minutes'"), _GROUPS.format("'20 minutes', '5 minutes'")
_CLOSED = (
    ViewDefinition("closed", _TUMBLING + " HAVING sum(x) > 0", emit="on_close"),
    ViewDefinition("hopped", _HOPPING, emit="on_close"),
    ViewDefinition("above", "SELECT k, count(*) AS windows, sum(n) AS n FROM closed GROUP BY k"),
)
_BOUNDS = "t.at BETWEEN u.at - INTERVAL 10 MINUTES AND u.at + INTERVAL 10 MINUTES"
_PAIRS = "SELECT t.k, t.at, t.x, u.x AS y FROM t JOIN u ON t.k = u.k"
_SELF = "SELECT a.k, a.x, b.x AS y FROM t a JOIN t b ON a.k = b.k AND b.at > a.at AND b.at <= a.at + INTERVAL 9 MINUTES"
_EXPIRING = (
    ViewDefinition("joined", f"{_PAIRS} AND {_BOUNDS}", expire="by_watermark"),
    ViewDefinition("paired", f"{_SELF} WHERE a.x > 2", expire="by_watermark"),
    ViewDefinition("lived", _PAIRS, ttl="10 minutes"),
    ViewDefinition("above", "SELECT k, count(*) AS n FROM joined GROUP BY k"),
)


def _us(minute: int) -> int:
    return (_START + timedelta(minutes=minute) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _body(minutes: Sequence[int], *, x: int = 1) -> bytes:
    """A row of each key at each minute."""
    return b"".join(
        json.dumps({"at": (_START + timedelta(minutes=each)).isoformat(), "k": k, "x": x + each}).encode() + b"\n"
        for each in minutes
        for k in "ab"
    )


def _read(root: CommittedRoot, path: str, minutes: Sequence[int], watermark: int | None, source: str = "t") -> None:
    root.put(path if source == "t" else f"of_u/{path}", _body(minutes))
    watermarks = {} if watermark is None else dict.fromkeys("tu", _us(watermark))
    root.ingest({path: 2 * len(minutes)}, source=source, watermarks=watermarks)


def _checks(root: CommittedRoot, **arguments: Any) -> dict[str, ViewCheck]:
    return {check.view: check for check in root.verify(**arguments).views}


def _outcomes(root: CommittedRoot, **arguments: Any) -> dict[str, Outcome]:
    return {name: check.outcome for name, check in _checks(root, **arguments).items()}


def _closed(root: CommittedRoot) -> None:
    """Four epochs; in the third, rows are late for windows, among them one that is late for some of them alone."""
    root.declare_timed(Json(), _SCHEMA, "at", *_CLOSED)
    _read(root, "a", [0, 3, 12, 25], None)
    _read(root, "b", [4, 14, 31], 20)
    _read(root, "c", [2, 12, 13, 33], 30)
    _read(root, "d", [1, 36], 41)


@pytest.mark.more
def test_closed_windows_are_equal_at_every_epoch(root: CommittedRoot) -> None:
    _closed(root)
    every = dict.fromkeys(["closed", "hopped", "above"], Outcome.EQUAL)
    rows = []
    for epoch in root.epochs:
        found = _checks(root, epoch=epoch)
        assert {name: check.outcome for name, check in found.items()} == every
        assert found["closed"].engine == "spark" and "which its query does not show" in found["closed"].reason
        rows.append((found["closed"].rows, found["hopped"].rows))
    assert rows[0] == (0, 0) and rows[1] < rows[2] < rows[3]
    assert root.store().views.table().column("late_rows").to_pylist() == [None, 8, 24]


@pytest.mark.more
def test_closed_sessions_and_windows_of_a_view_are_equal_at_every_epoch(root: CommittedRoot) -> None:
    query = (
        "SELECT session_window.start AS since, session_window.end AS until, k, count(*) AS n FROM t WHERE x > 1 "
        "GROUP BY session_window(at, '2 minutes'), k HAVING count(*) > 1"
    )
    windows = (
        "SELECT window.start AS since, k, sum(x) AS s, count(DISTINCT x) AS d FROM clean "
        "GROUP BY window(moment, '10 minutes'), k"
    )
    root.declare_timed(
        Json(),
        _SCHEMA,
        "at",
        ViewDefinition("sessions", query, emit="on_close"),
        ViewDefinition("clean", "SELECT at AS moment, upper(k) AS k, x FROM t WHERE x > 1"),
        ViewDefinition("windows", windows, emit="on_close"),
    )
    _read(root, "a", [0, 3, 12, 25], None)
    _read(root, "b", [4, 14, 31], 20)
    _read(root, "c", [2, 26, 29, 33], 30)
    _read(root, "d", [1, 36], 41)
    _read(root, "e", [50], 50)
    shown = []
    for epoch in root.epochs:
        found = _checks(root, epoch=epoch)
        assert {each.outcome for each in found.values()} == {Outcome.EQUAL}, found
        shown.append(found["sessions"].rows)
    assert shown == [0, 4, 6, 8, 8]
    # The rows of minutes 2 and 1 came when sessions before minutes 20 and 30 were closed; those of 26 and 29 in time.
    views = root.store().views.table()
    late = dict(zip(views.column("name").to_pylist(), views.column("late_rows").to_pylist(), strict=True))
    assert late == {"clean": None, "sessions": 4, "windows": 4}
    rows = root.stored("sessions").to_pylist()
    rows[0]["n"] += 1
    root.overwrite("sessions", pa.Table.from_pylist(rows, root.stored("sessions").schema))
    assert _outcomes(root)["sessions"] is Outcome.DIFFERENT


@pytest.mark.more
@pytest.mark.parametrize("view", ["closed", "hopped"])
def test_a_wrong_group_of_a_closed_window_is_seen(root: CommittedRoot, view: str) -> None:
    _closed(root)
    rows = root.stored(view).to_pylist()
    rows[1]["n"] += 1
    root.overwrite(view, pa.Table.from_pylist(rows, root.stored(view).schema))
    check = _checks(root)[view]
    assert check.outcome is Outcome.DIFFERENT
    assert check.differences is not None and (check.differences.missing, check.differences.extra) == (1, 1)
    root.overwrite(view, pa.Table.from_pylist(rows[2:], root.stored(view).schema))
    check = _checks(root)[view]
    assert check.differences is not None and check.differences.missing == 2


@pytest.mark.more
def test_a_late_row_that_a_view_has_counted_is_seen(root: CommittedRoot) -> None:
    _closed(root)
    rows = root.stored("closed").to_pylist()
    late = next(row for row in rows if row["since"] == _START and row["k"] == "a")
    late["n"], late["s"] = late["n"] + 1, late["s"] + 3
    root.overwrite("closed", pa.Table.from_pylist(rows, root.stored("closed").schema))
    found = _checks(root)
    assert (found["closed"].outcome, found["hopped"].outcome) == (Outcome.DIFFERENT, Outcome.EQUAL)
    assert found["above"].outcome is Outcome.EQUAL


@pytest.mark.more
def test_late_rows_that_were_cleared_are_named_as_the_reason(root: CommittedRoot) -> None:
    _closed(root)
    before = root.epochs[-1]
    root.clear_quarantine()
    _read(root, "e", [50], 45)
    found = _checks(root)
    assert {each.outcome for each in found.values()} == {Outcome.NOT_CHECKABLE}
    assert found["closed"].reason.startswith("the quarantine lacks some of its 8 late rows, which were cleared")
    assert found["above"].reason.startswith("view closed, which it reads: the quarantine lacks some")
    assert {*_outcomes(root, epoch=before).values()} == {Outcome.EQUAL}, "the epoch before knows them"


@pytest.mark.more
def test_late_rows_of_hopping_windows_that_were_cleared_in_part_are_missed(root: CommittedRoot) -> None:
    root.declare_timed(Json(), _SCHEMA, "at", *_CLOSED)
    _read(root, "a", [0, 3, 12, 25], 20)
    _read(root, "b", [2, 12], 22)
    root.clear_quarantine()
    _read(root, "c", [3], 24)
    check = _checks(root)["hopped"]
    assert check.outcome is Outcome.NOT_CHECKABLE
    assert "late rows, of which" in check.reason


def _joined(root: CommittedRoot) -> None:
    root.declare_timed(Json(), _SCHEMA, "at", *_EXPIRING)
    _read(root, "a", [0, 3, 12, 25], None)
    _read(root, "a", [1, 5, 20], 10, "u")
    _read(root, "b", [4, 14, 31], 20)
    _read(root, "b", [2, 24, 40], 30, "u")
    _read(root, "c", [16, 35], 40)


@pytest.mark.more
@pytest.mark.parametrize("engine", few(("auto", "spark"), "auto"))
def test_joins_whose_rows_expire_are_equal_at_every_epoch(root: CommittedRoot, engine: str) -> None:
    _joined(root)
    for epoch in root.epochs:
        found = _checks(root, epoch=epoch, engine=engine)
        assert {check.outcome for check in found.values()} == {Outcome.EQUAL}
    assert all(found[name].rows > 1 for name in ("joined", "paired", "lived", "above"))
    if engine == "auto":
        assert {name: check.engine for name, check in found.items()} == {
            "joined": "duckdb", "paired": "duckdb", "lived": "spark", "above": "duckdb",
        }  # fmt: skip
    views = {row["name"]: row["late_rows"] for row in root.store().views.table().to_pylist()}
    assert all(views[name] for name in ("joined", "paired", "lived"))


@pytest.mark.more
@pytest.mark.parametrize("view", few(("joined", "paired", "lived"), "joined"))
def test_a_wrong_row_of_a_join_whose_rows_expire_is_seen(root: CommittedRoot, view: str) -> None:
    _joined(root)
    rows = root.stored(view).to_pylist()
    rows[0]["y"] += 100
    root.overwrite(view, pa.Table.from_pylist(rows, root.stored(view).schema))
    check = _checks(root)[view]
    assert check.outcome is Outcome.DIFFERENT
    assert check.differences is not None and (check.differences.missing, check.differences.extra) == (1, 1)


@pytest.mark.more
def test_late_rows_that_count_in_another_place_of_the_query_are_named(root: CommittedRoot) -> None:
    more = f"SELECT v.k, v.y, w.x AS z FROM ({_PAIRS} AND {_BOUNDS}) v JOIN t w ON v.x = w.x"
    root.declare_timed(Json(), _SCHEMA, "at", ViewDefinition("more", more, expire="by_watermark"))
    _read(root, "a", [0, 3, 12, 25], None)
    _read(root, "a", [1, 5, 20], 10, "u")
    assert _outcomes(root) == {"more": Outcome.EQUAL}
    _read(root, "b", [4, 14, 31], 20)
    check = _checks(root)["more"]
    assert check.outcome is Outcome.NOT_CHECKABLE
    assert check.reason == "its query reads t beside the join too, where the late rows of t count"


_AGING = (
    ViewDefinition("young", "SELECT k, count(*) AS n, max(x) AS hi FROM t GROUP BY k", ttl="15 minutes"),
    ViewDefinition(
        "sizes",
        "SELECT n, count(*) AS ks FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
        ttl="15 minutes",
    ),
    ViewDefinition("above", "SELECT sum(n) AS n FROM young"),
)


def _aged(root: CommittedRoot) -> None:
    root.declare_timed(Json(), _SCHEMA, "at", *_AGING)
    _read(root, "a", [0, 3, 12, 25], None)
    _read(root, "b", [4, 14, 31], 20)
    _read(root, "c", [2, 16, 33], 30)
    root.ingest({}, watermarks={"t": _us(35)})


@pytest.mark.more
@pytest.mark.parametrize("engine", few(("duckdb", "spark"), "duckdb"))
def test_views_with_a_time_to_live_are_equal_at_every_epoch(root: CommittedRoot, engine: str) -> None:
    _aged(root)
    totals = []
    for epoch in root.epochs:
        found = _checks(root, epoch=epoch, engine=engine)
        assert {name: (check.outcome, check.reason) for name, check in found.items()} == dict.fromkeys(
            ("young", "sizes", "above"), (Outcome.EQUAL, "")
        )
        totals += root.store().snapshot(epoch).view("above").to_arrow()["n"].to_pylist()
    assert totals == [8, 8, 8, 6], "rows leave without files"
    rows = root.stored("young").to_pylist()
    rows[0]["n"] += 1
    root.overwrite("young", pa.Table.from_pylist(rows, root.stored("young").schema))
    assert _checks(root, engine=engine)["young"].outcome is Outcome.DIFFERENT


def test_a_recomputed_view_that_reflects_an_epoch_before_its_first_one_is_known(root: CommittedRoot) -> None:
    root.declare(Json(), _SCHEMA, ViewDefinition("first", "SELECT k, x FROM t"))
    _read(root, "a", [0, 3], None)
    store = LanceStateStore.open(root.root, SystemClock(), read_only=True)
    [record] = store.epochs()
    whole = CatalogView("whole", "full", "SELECT max(x) FROM t", "max", ("t",), (), record.epoch + 1)
    closing = replace(whole, name="closing", definition=f"SELECT 1\n{ON_CLOSE}")
    watermarks = RecordedWatermarks(store, record, {"whole": whole, "closing": closing}, {})
    assert watermarks.of(["whole", "closing"]) == ({}, {"closing": f"epoch {record.epoch} does not have it"})
