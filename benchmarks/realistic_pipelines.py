"""Four pipelines as users write them, with rows for their sources: the subject of `realistic.py`.

Each epoch has `FILES` files, distributed over the sources.  The same numbers give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.plugins.demo import flights_pipeline
from slackwater.plugins.demo.flights import FORMATS, PLANES, SCHEMA, airlines, planes, year_of_flights

FILES = 6
_POLL_S = 0.1
_NO_LIMIT = 720_000

Rows = Callable[[int, int], pa.Table]
"""From the number of an epoch and a number of rows to the rows of all its files."""


@dataclass(frozen=True)
class Stream:
    """A source of a pipeline.

    Args:
        options: further arguments of `Pipeline.source`.
        current: SQL that makes the rows of the source from `{rows}`, for engines without keyed sources.
    """

    format: str
    schema: pa.Schema
    options: Mapping[str, Any] = field(default_factory=dict)
    current: str = "SELECT * FROM {rows}"


@dataclass(frozen=True)
class RealisticPipeline:
    """A pipeline and its data.

    Args:
        tables: small tables that come with the pipeline.
        file_tables: small tables in a CSV file.
        views: queries by name, for Spark; a view follows the views that it reads.
        in_duckdb: texts of the queries that DuckDB spells in another way.
        functions: views that this project computes by a function instead of their query.
    """

    streams: Mapping[str, Stream]
    views: Mapping[str, str]
    rows: Rows
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    file_tables: Mapping[str, pa.Table] = field(default_factory=dict)
    in_duckdb: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def declare(self, directory: Path) -> sw.Pipeline:
        """The pipeline over the files below `directory/in`, with its root beside them."""
        discovery = sw.Listing(interval_s=_POLL_S, max_requests_per_hour=_NO_LIMIT)
        pipeline = sw.Pipeline("realistic", directory / "root")
        for name, stream in self.streams.items():
            place = directory / "in" / name
            place.mkdir(parents=True, exist_ok=True)
            pipeline.source(
                name, place, format=stream.format, schema=stream.schema, discovery=discovery, **stream.options
            )
        for name, table in self.tables.items():
            pipeline.table(name, table)
        for name, table in self.file_tables.items():
            place = directory / "tables" / name
            pipeline.table(name, place, format="csv", schema=table.schema, discovery=discovery)
        for name, query in self.views.items():
            if name in self.functions:
                pipeline.view(self.functions[name])
            else:
                pipeline.view(name, query)
        return pipeline

    def write_tables(self, directory: Path) -> None:
        """Writes the small tables for all contenders, as `tables/NAME/rows.csv`."""
        for name, table in {**self.tables, **self.file_tables}.items():
            write_file(directory / "tables" / name / "rows.csv", table)

    def write_epoch(self, directory: Path, number: int, count: int) -> Path:
        """Writes the files of an epoch; returns their directory, with a directory for each source."""
        place, rows, names = directory / "epochs" / f"{number:04}", self.rows(number, count), list(self.streams)
        for index in range(FILES):
            first, end = (len(rows) * edge // FILES for edge in (index, index + 1))
            name = names[index % len(names)]
            file = f"{number:04}-{index}.{self.streams[name].format}"
            write_file(place / name / file, rows.slice(first, end - first))
        return place


def write_file(path: Path, rows: pa.Table) -> None:
    """Writes rows in the format that the name of the file ends with; times are ISO texts in text formats."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
        return
    for index, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            texts = pa.compute.strftime(rows.column(index), format="%Y-%m-%dT%H:%M:%SZ")
            rows = rows.set_column(index, column.name, texts)
    if path.suffix == ".csv":
        arrow_csv.write_csv(rows, path)
    else:
        duckdb.connect().from_arrow(rows).query("rows", f"COPY rows TO '{path}' (FORMAT json)")


_year = cache(year_of_flights)


def _flights_of(number: int, count: int) -> pa.Table:
    """The next flights, in the order of time, from the beginning again after the last."""
    flights, first = _year(), number * count
    pieces, left = [], count
    while left:
        piece = flights.slice((first + count - left) % len(flights), left)
        pieces.append(piece)
        left -= len(piece)
    return pa.concat_tables(pieces)


def _planes() -> pa.Table:
    return arrow_csv.read_csv(
        pa.BufferReader(planes().body), convert_options=arrow_csv.ConvertOptions(column_types=PLANES)
    )


def demo() -> RealisticPipeline:
    """The pipeline of `slackwater demo`, with default settings and without published tables."""
    stored = {"materialize": True, "on_change": "replace"}
    very_late = flights_pipeline.DUCKDB_QUERIES["very_late"]
    return RealisticPipeline(
        streams={f"flights_{name}": Stream(name, SCHEMA, stored) for name in FORMATS},
        tables={"airlines": airlines()},
        file_tables={"planes": _planes()},
        views={**flights_pipeline.QUERIES, "very_late": very_late},
        rows=_flights_of,
        in_duckdb={"100.0D": "100.0::DOUBLE"},
        functions={"very_late": flights_pipeline.very_late},
    )


PIPELINES: Mapping[str, Callable[[], RealisticPipeline]] = {"demo": demo}
"""The pipelines by name; each call makes its tables again."""
