"""Event time in a run: the watermark over a backlog, windows that close, bad times, late rows, and a restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.catalog import Catalog
from tests.real.event_pipeline import FAST
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.usefixtures("session")]

_START = datetime(2024, 1, 1, tzinfo=UTC)
_LATENESS = timedelta(minutes=10)
_FILES = 60
_SLOW = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=1, max_files_waiting=5))
_PER_HOUR = "SELECT window.start AS since, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def _file(place: Path, name: str, *hours: int | None) -> None:
    times = [None if hour is None else _START + timedelta(hours=hour) for hour in hours]
    ids = pa.array(range(len(times)), pa.int64())
    rows = pa.table([ids, pa.array(times, _SCHEMA.field("at").type)], schema=_SCHEMA)
    pq.write_table(rows, place / f"{name}.tmp")
    (place / f"{name}.tmp").rename(place / f"{name}.parquet")


def _made(place: Path, lateness: timedelta = _LATENESS, idle: timedelta | None = None) -> sw.Pipeline:
    pipeline = sw.Pipeline("events", place / "root", settings=_SLOW)
    pipeline.source(
        "events", place / "in", format="parquet", pattern="*.parquet", schema=_SCHEMA, discovery=FAST,
        event_time=sw.EventTime("at", lateness=lateness, idle=idle), metadata=("path", "row"),
    )  # fmt: skip
    pipeline.view("counted", "SELECT count(*) AS n FROM events")
    pipeline.view("per_hour", _PER_HOUR, emit="on_close")
    pipeline.view("young", "SELECT count(*) AS n FROM events", ttl="10 hours")
    return pipeline


def _watermark(place: Path) -> datetime | None:
    at: datetime | None = sw.open(place / "root").ledger.sources()["watermark"][0].as_py()
    return at


def _watermarks(place: Path) -> list[int | None]:
    """The watermark of each epoch, in microseconds."""
    store = LanceRoot(Location(str(place / "root")), SystemClock()).open(read_only=True)
    catalogs = (Catalog.of(store.scan("catalog", state_version=each.state_version)) for each in store.epochs())
    return [None if (known := each.watermarks.get("events")) is None else known.at for each in catalogs]


def _us(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _hours(place: Path) -> dict[int, int]:
    """Hour → the number of its rows, as the view of closed windows shows it."""
    rows = sw.open(place / "root").snapshot().view("per_hour").to_arrow().to_pylist()
    return {(row["since"] - _START) // timedelta(hours=1): row["n"] for row in rows}


def _young(place: Path) -> int:
    """The rows of the last ten hours before the watermark, as the view of these rows shows them."""
    return int(sw.open(place / "root").snapshot().view("young").to_arrow()["n"][0].as_py())


def test_a_backlog_in_any_order_has_no_late_row_and_windows_close_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for hour in range(_FILES):
        _file(tmp_path / "in", f"{hour:03}", hour, hour)
    _file(tmp_path / "in", "bad", 1, None, 1_000_000)
    end = _START + timedelta(hours=_FILES - 1)
    closed = {hour: 2 + (hour == 1) for hour in range(_FILES - 2)}
    with _made(tmp_path).start() as run:
        run.wait(until="caught_up")
        eventually(lambda: _watermark(tmp_path) == end - _LATENESS)
        watermarks = _watermarks(tmp_path)
        assert watermarks.count(None) > 3, "the backlog takes several epochs"
        assert {*watermarks} == {None, _us(end - _LATENESS)}
        status = run.status().sources["events"]
        assert status.watermark == end - _LATENESS
        assert status.watermark_lag_s is not None and status.watermark_lag_s > 0
        assert _hours(tmp_path) == closed
        assert _young(tmp_path) == 2 * 11, "those of the hours 49 to 59"
        bad = {row["row"]: row["reason"] for row in sw.open(tmp_path / "root").ledger.quarantine().to_pylist()}
        assert bad[1] == "column at is null, and the event time of the source needs it"
        assert bad[2].endswith("the limit max_ahead of the source")
        assert len(bad) == 2, "no row of the backlog is late"
        # A row of a closed window is late; one of an open window counts.
        _file(tmp_path / "in", "0-late", _FILES - 2, 2)
        run.wait(until="caught_up")
        assert _watermark(tmp_path) == end - _LATENESS
        assert _hours(tmp_path) == closed
        _file(tmp_path / "in", "0-newer", _FILES)
        eventually(lambda: _watermark(tmp_path) == end + timedelta(hours=1) - _LATENESS)
        eventually(lambda: _hours(tmp_path) == closed | {_FILES - 2: 3})
        assert _young(tmp_path) == 2 * 10 + 2, "two of the hour 49 have left, and one each of 58 and 60 has come"
    store = sw.open(tmp_path / "root")
    assert store.snapshot().view("counted").to_arrow().to_pylist() == [{"n": 2 * _FILES + 4}]
    (late,) = [row for row in store.ledger.quarantine().to_pylist() if row["path"].endswith("0-late.parquet")]
    assert late["row"] == 1 and late["reason"].startswith("view per_hour: its window was closed, by the watermark")
    checks = {check.view: check.outcome.value for check in sw.verify(store, pipeline=_made(tmp_path)).views}
    assert checks == {"counted": "equal", "per_hour": "equal", "young": "equal"}
    # The next run goes on from there, with a greater lateness too.
    with _made(tmp_path, timedelta(days=9)).start() as run:
        run.wait(until="caught_up")
        _file(tmp_path / "in", "1-newer", _FILES + 1, 3)
        run.wait(until="caught_up")
        shown = _hours(tmp_path)
        # The late rows are accepted: the view is rebuilt, from the files.
        run.retry_view("per_hour")
        eventually(lambda: _hours(tmp_path) == closed | {_FILES - 2: 3, 2: 3, 3: 3})
    assert _watermark(tmp_path) == end + timedelta(hours=1) - _LATENESS
    assert _watermarks(tmp_path) == sorted(_watermarks(tmp_path), key=lambda at: at or 0), "it never goes back"
    assert shown == closed | {_FILES - 2: 3}
    assert sum(row["path"].endswith("newer.parquet") for row in store.ledger.quarantine().to_pylist()) == 1
    assert sw.verify(store, pipeline=_made(tmp_path)).all_equal, "the view that was rebuilt has the late rows of before"


def test_the_last_windows_close_when_no_row_comes_for_the_idle_time(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    _file(tmp_path / "in", "first", 0, 1, 2)
    idle = timedelta(seconds=3)
    with _made(tmp_path, idle=idle).start() as run:
        run.wait(until="caught_up")
        eventually(lambda: _hours(tmp_path) == {0: 1, 1: 1, 2: 1})
        first = _watermark(tmp_path)
        assert first is not None and first <= datetime.now(UTC) - idle
        eventually(lambda: (later := _watermark(tmp_path)) is not None and later > first)
        # A row that happened before the source was idle is late now.
        _file(tmp_path / "in", "second", 3)
        run.wait(until="caught_up")
        eventually(lambda: sw.open(tmp_path / "root").ledger.quarantine().num_rows == 1)
        assert _hours(tmp_path) == {0: 1, 1: 1, 2: 1}
    (late,) = sw.open(tmp_path / "root").ledger.quarantine().to_pylist()
    assert late["reason"].startswith("view per_hour: its window was closed, by the watermark")
