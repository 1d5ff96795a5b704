"""Times with digits below microseconds: bad records that name the option, or times without those digits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from actors.formats.options import Csv, Json, Parquet
from actors.formats.registry import Format, reader_for
from actors.schemas.conform import Timestamps, conform
from actors.sources.source import SourceDefinition
from slackwater.pipeline import Pipeline
from slackwater.sources import Schema
from state.errors import SettingsError
from state.location import Location
from tests.actors.formats.fixed_width import FixedWidth
from tests.actors.formats.written_files import bad_of, open_written, rows_of, write_parquet

_AT = pa.timestamp("us")
_INSTANT = pa.timestamp("us", "UTC")
_FLAT = pa.schema([("at", _AT), ("instant", _INSTANT)])
_NESTED = pa.schema([("deep", pa.struct([("times", pa.list_(_INSTANT))]))])
_TEXTS = ["2020-01-02 03:04:05.123456789", "1969-12-31 23:59:59.9999999", "9999-12-31 00:00:00", "2020-01-02"]
_EXPECTED = [
    datetime(2020, 1, 2, 3, 4, 5, 123_456, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(9999, 12, 31, tzinfo=UTC),
    datetime(2020, 1, 2, tzinfo=UTC),
]
_HINT = 'declare the source with Schema(timestamps="truncate")'


def _csv() -> bytes:
    return b"at,instant\n" + "".join(f"{text},{text}{'Z' * (len(text) > 10)}\n" for text in _TEXTS).encode()


def _json() -> bytes:
    return "".join(f'{{"at": "{text}", "instant": "{text}{"Z" * (len(text) > 10)}"}}\n' for text in _TEXTS).encode()


@pytest.mark.parametrize(("format", "content"), [(Csv(), _csv()), (Json(), _json())], ids=["csv", "json"])
def test_text_is_exact_or_truncated(tmp_path: Path, format: Format, content: bytes) -> None:
    exact = list(reader_for(format).read(open_written(tmp_path, content), _FLAT))
    assert [row["instant"] for row in rows_of(exact)] == _EXPECTED[2:]
    assert [(bad.row, _HINT in bad.reason) for bad in bad_of(exact)] == [(0, True), (1, True)]
    truncated = list(reader_for(format, timestamps="truncate").read(open_written(tmp_path, content), _FLAT))
    assert bad_of(truncated) == []
    expected = [{"at": instant.replace(tzinfo=None), "instant": instant} for instant in _EXPECTED]
    assert rows_of(truncated) == expected


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_is_exact_or_truncated(tmp_path: Path, zone: str | None) -> None:
    nanoseconds = [1_577_934_245_123_456_789, None, -1, -1_000, -1_001, 1_999]
    wanted = pa.timestamp("us", "UTC" if zone else None)
    schema = pa.schema([("at", wanted)])
    content = write_parquet(pa.table({"at": pa.array(nanoseconds, pa.timestamp("ns", zone))}))
    exact = list(reader_for(Parquet()).read(open_written(tmp_path, content), schema))
    assert [bad.row for bad in bad_of(exact)] == [0, 2, 4, 5]
    assert all(_HINT in bad.reason for bad in bad_of(exact))
    pieces = list(reader_for(Parquet(), timestamps="truncate").read(open_written(tmp_path, content), schema))
    expected = pa.array([None if each is None else each // 1_000 for each in nanoseconds], wanted)
    assert bad_of(pieces) == [] and pieces[0].table["at"].combine_chunks() == expected


@pytest.mark.parametrize("format", [Json(), Parquet()], ids=lambda format: format.name)
def test_nested_times_are_truncated_too(tmp_path: Path, format: Format) -> None:
    if isinstance(format, Json):
        content = b'{"deep": {"times": ["2020-01-02T03:04:05.123456789Z", null]}}\n'
    else:
        times = pa.array([[1_577_934_245_123_456_789, None]], pa.list_(pa.timestamp("ns", "UTC")))
        content = write_parquet(pa.table({"deep": pa.StructArray.from_arrays([times], ["times"])}))
    pieces = list(reader_for(format, timestamps="truncate").read(open_written(tmp_path, content), _NESTED))
    assert rows_of(pieces) == [{"deep": {"times": [_EXPECTED[0], None]}}]


@pytest.mark.parametrize("timestamps", ["exact", "truncate"])
def test_what_is_no_time_stays_a_bad_record(tmp_path: Path, timestamps: Timestamps) -> None:
    content = b"at,instant\n2020-01-02,2020-13-02 00:00:00Z\nsoon,2020-01-02\n"
    pieces = list(reader_for(Csv(), timestamps=timestamps).read(open_written(tmp_path, content), _FLAT))
    assert [(bad.row, _HINT in bad.reason) for bad in bad_of(pieces)] == [(0, False), (1, False)]


def test_a_reader_of_ones_own_truncates_by_conform() -> None:
    table = pa.table({"at": pa.array([1_001], pa.timestamp("ns"))})
    assert conform(table, pa.schema([("at", _AT)]), timestamps="truncate")["at"].cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(SettingsError, match=re.escape("Schema(timestamps='truncate') is for the built-in formats")):
        Pipeline("p", root="root").source("s", "in", format=FixedWidth(), schema=Schema(timestamps="truncate"))


def test_the_option_is_checked_and_recorded() -> None:
    with pytest.raises(SettingsError, match=re.escape("Schema(timestamps)='round': give one of exact, truncate")):
        Schema(timestamps="round")  # type: ignore[arg-type]
    for timestamps in ("exact", "truncate"):
        source = SourceDefinition(name="s", location=Location("s3://raw"), format=Csv(), timestamps=timestamps)
        assert SourceDefinition.of_json("s", source.to_json()).timestamps == timestamps
