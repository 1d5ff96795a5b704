"""The event times of rows that are read: the highest is known, and rows without a credible one are bad records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.files import FileVersion
from actors.formats.options import Parquet
from actors.reading.required_values import with_event_times
from actors.reading.source_reader import SourceReader
from actors.rows import Offset, Rows
from actors.settings import FetchSettings
from actors.sources.event_time import EventTime, microseconds
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import kept_schema
from state.clock import ManualClock
from state.errors import SchemaError, SettingsError
from state.location import Location
from tests.actors.flow import AT

_NOW = datetime(2020, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def _us(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _source(directory: Path, schema: pa.Schema = _SCHEMA, **options: Any) -> SourceDefinition:
    location = Location(str(directory))
    made = {"event_time": EventTime("at"), **options}
    return SourceDefinition(name="s", location=location, format=Parquet(), schema=schema, **made)


def _read(
    directory: Path, table: pa.Table, *, columns: list[str] | None = None, bad: tuple[int, ...] | None = None
) -> Rows:
    pq.write_table(table, directory / "f")
    size = (directory / "f").stat().st_size
    source = _source(directory, table.schema)
    reader = SourceReader(source, table.schema, FetchSettings(), clock=ManualClock(_NOW) if bad is None else None)
    listed = FileVersion("s", "f", b"", "", size, AT)
    return reader.open(listed, bad or ()).next_piece(table.schema, Offset(), columns)[0]


def _table(*times: datetime | None) -> pa.Table:
    return pa.table(
        [pa.array(range(len(times)), pa.int64()), pa.array(times, _SCHEMA.field("at").type)], schema=_SCHEMA
    )


def test_rows_without_a_time_or_far_ahead_are_bad_and_move_no_watermark(tmp_path: Path) -> None:
    ahead = _NOW + timedelta(days=1)
    rows = _read(tmp_path, _table(_NOW, None, ahead, ahead + timedelta(microseconds=1)))
    assert rows.table.column("id").to_pylist() == [0, 2]
    assert rows.event_high == _us(ahead)
    assert {each.row: each.reason for each in rows.bad} == {
        1: "column at is null, and the event time of the source needs it",
        3: "at is after 2020-01-02 00:00:00 UTC, the limit max_ahead of the source",
    }


def test_the_time_is_read_when_no_view_uses_it(tmp_path: Path) -> None:
    assert _read(tmp_path, _table(_NOW, _NOW - timedelta(days=9)), columns=["id"]).event_high == _us(_NOW)


def test_a_file_that_is_read_again_has_the_bad_records_that_it_had(tmp_path: Path) -> None:
    later = _NOW + timedelta(days=400)
    rows = _read(tmp_path, _table(_NOW, later, later), bad=(1,))
    assert rows.table.column("id").to_pylist() == [0, 2]
    assert [each.row for each in rows.bad] == [1]


@pytest.mark.parametrize(
    ("kind", "value", "high"),
    [
        (pa.timestamp("s"), datetime(1970, 1, 2), _DAY_US),  # noqa: DTZ001 - a time without a zone
        (pa.timestamp("us", tz="America/New_York"), datetime(1970, 1, 2, tzinfo=UTC), _DAY_US),
        (pa.date32(), date(1970, 1, 3), 2 * _DAY_US),
    ],
)
def test_times_without_a_zone_and_dates_count_as_utc(tmp_path: Path, kind: pa.DataType, value: Any, high: int) -> None:
    table = pa.table({"id": [1], "at": pa.array([value], kind)})
    assert _read(tmp_path, table).event_high == high


def test_times_that_no_clock_shows_are_far_ahead(tmp_path: Path) -> None:
    days = pa.array([1, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    rows = _read(tmp_path, pa.table({"id": [0, 1, 2], "at": days}))
    assert rows.table.column("id").to_pylist() == [0, 2] and rows.event_high == _DAY_US
    wide = _source(tmp_path, event_time=EventTime("at", max_ahead=timedelta(microseconds=2**62)))
    late = pa.array([2**62], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    assert wide.event_time is not None
    made = with_event_times(Rows(pa.table({"at": late}), 0), wide.event_time, ManualClock(_NOW).now)
    assert (made.table.num_rows, len(made.bad), made.event_high) == (0, 1, None)


def test_pieces_of_rows_keep_the_highest_time_of_the_file_so_far() -> None:
    table = pa.table({"id": [1, 2]})
    joined = Rows.joined([Rows(table, 0, event_high=7), Rows(table, 2), Rows(table, 4, event_high=5)])
    assert (joined.event_high, joined.between(4, 6).event_high) == (7, 7)


def test_a_source_without_the_column_or_with_another_type_is_refused() -> None:
    with pytest.raises(SchemaError, match="source s: event_time names the column at, which it does not have"):
        kept_schema(_source(Path("/in")), pa.schema([("id", pa.int64())]))
    with pytest.raises(SchemaError, match="source s: event_time names the column at of type int64; it must be a time"):
        kept_schema(_source(Path("/in")), pa.schema([("id", pa.int64()), ("at", pa.int64())]))


def test_durations_are_texts_and_timedeltas() -> None:
    assert microseconds("lateness", "10 minutes") == microseconds("lateness", timedelta(minutes=10)) == 600_000_000
    assert microseconds("lateness", "1.5 Hour") == 5_400_000_000
    for wrong in ("10", "ten minutes", "-1 day", "1 month", "", timedelta(seconds=-1)):
        with pytest.raises(SettingsError, match=r'lateness=.*: give a duration such as "10 minutes"'):
            microseconds("lateness", wrong)


def test_the_definition_keeps_the_column_alone() -> None:
    source = _source(Path("/in"), event_time=EventTime("at", lateness="5 s", max_ahead="6 s"))
    assert SourceDefinition.of_json("s", source.to_json()).event_time == EventTime("at")
    with pytest.raises(SettingsError, match=r"EventTime\(column=''\): name a column"):
        EventTime("")


def test_an_idle_time_is_a_duration_above_zero() -> None:
    assert EventTime("at", idle="2 minutes").idle_us == 120_000_000
    assert EventTime("at").idle_us is None
    with pytest.raises(SettingsError, match=r"EventTime\(idle='0 seconds'\): give the time without rows after which"):
        EventTime("at", idle="0 seconds")


@pytest.mark.parametrize("option", ["lateness", "max_ahead", "idle"])
def test_a_duration_of_an_event_time_is_checked_at_once(option: str) -> None:
    with pytest.raises(SettingsError, match=rf"EventTime\({option}\)='soon': give a duration such as .10 minutes"):
        EventTime("at", **{option: "soon"})
