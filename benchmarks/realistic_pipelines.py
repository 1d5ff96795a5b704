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
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.plugins.demo import flights_pipeline
from slackwater.plugins.demo.flights import FORMATS, PLANES, SCHEMA, airlines, planes, year_of_flights

FILES = 6
_POLL_S = 0.1
_NO_LIMIT = 720_000
_START_US = 1_767_225_600_000_000
_SECOND_US = 1_000_000
_EPOCH_S = 600
_TIME = pa.timestamp("us", "UTC")

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
        """The pipeline over the files below `directory/in`, with the root `directory/root`."""
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


PARTNERS, PRODUCTS = 50, 2_000
_ORDERS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("partner", pa.string()),
        ("sku", pa.string()),
        ("customer", pa.int64()),
        ("country", pa.string()),
        ("ordered", _TIME),
        ("quantity", pa.int64()),
        ("price_cents", pa.int64()),
        ("discount_percent", pa.int64()),
        ("channel", pa.string()),
        ("warehouse", pa.string()),
        ("note", pa.string()),
    ]
)


def _orders(number: int, count: int) -> pa.Table:
    random = np.random.default_rng((1, number))
    ids = number * count + np.arange(count)
    return pa.table(
        [
            ids,
            _names("partner", random.integers(0, PARTNERS, count)),
            _names("sku", random.integers(0, PRODUCTS, count)),
            random.integers(0, 100_000, count),
            _names("country", random.integers(0, 30, count)),
            _times(number, random.integers(0, _EPOCH_S, count)),
            random.integers(1, 20, count),
            random.integers(100, 50_000, count),
            random.integers(0, 30, count),
            _names("channel", random.integers(0, 4, count)),
            _names("warehouse", random.integers(0, 9, count)),
            _names("leave it, please, at the door of number", random.integers(0, 500, count)),
        ],
        schema=_ORDERS,
    )


def partners() -> RealisticPipeline:
    """CSV files of partners: a projection joined with a table of products, and views over it and over each other."""
    products = [_names("sku", np.arange(PRODUCTS)), _names("category", np.arange(PRODUCTS) % 40)]
    tiers = [_names("partner", np.arange(PARTNERS)), _names("tier", np.arange(PARTNERS) % 4)]
    priced = "quantity * price_cents * (100 - discount_percent)"
    return RealisticPipeline(
        streams={"orders": Stream("csv", _ORDERS)},
        tables={"tiers": pa.table(tiers, ["partner", "tier"])},
        file_tables={"products": pa.table(products, ["sku", "category"])},
        views={
            "priced": f"""
                SELECT order_id, partner, country, category, quantity, {priced} AS value
                FROM orders JOIN products ON orders.sku = products.sku""",
            "by_category": """
                SELECT category, count(*) AS orders, sum(value) AS value, avg(quantity) AS quantity
                FROM priced GROUP BY category""",
            "by_partner": """
                SELECT priced.partner, tier, count(*) AS orders, sum(value) AS value, max(value) AS largest
                FROM priced LEFT JOIN tiers ON priced.partner = tiers.partner GROUP BY priced.partner, tier""",
            "by_tier": """
                SELECT tier, count(*) AS partners, sum(orders) AS orders, sum(value) AS value
                FROM by_partner GROUP BY tier""",
            "by_country": """
                SELECT country, category, count(*) AS orders, sum(quantity) AS quantity
                FROM priced GROUP BY country, category""",
            "large": "SELECT order_id, partner, value FROM priced WHERE value > 60000000",
        },
        rows=_orders,
    )


_EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("visitor", pa.int64()),
        ("kind", pa.string()),
        ("country", pa.string()),
        ("amount", pa.int64()),
        ("happened", _TIME),
        ("page", pa.string()),
    ]
)


def _events(number: int, count: int) -> pa.Table:
    random = np.random.default_rng((2, number))
    return pa.table(
        [
            number * count + np.arange(count),
            random.integers(0, 20_000, count),
            _names("kind", random.integers(0, 8, count)),
            _names("country", random.integers(0, 30, count)),
            random.integers(0, 1_000_000, count),
            _times(number, random.integers(0, 2 * _EPOCH_S, count)),
            _names("https://shop.example/page", random.integers(0, 3_000, count)),
        ],
        schema=_EVENTS,
    )


def events() -> RealisticPipeline:
    """JSON events: windows of time, counts of distinct visitors, the largest of each group and of all."""
    return RealisticPipeline(
        streams={"events": Stream("json", _EVENTS)},
        views={
            "by_minute": """
                SELECT window.start AS minute, kind, count(*) AS events, sum(amount) AS amount
                FROM events GROUP BY window(happened, '1 minute'), kind""",
            "visitors": """
                SELECT window.start AS hour, country, count(DISTINCT visitor) AS visitors, count(*) AS events
                FROM events GROUP BY window(happened, '1 hour'), country""",
            "top": """
                SELECT kind, country, id, amount FROM (
                    SELECT *, row_number() OVER (PARTITION BY kind, country ORDER BY amount DESC, id) AS place
                    FROM events
                ) WHERE place <= 3""",
            "largest": "SELECT id, visitor, amount FROM events ORDER BY amount DESC, id LIMIT 100",
            "by_page": """
                SELECT page, count(*) AS events, avg(amount) AS amount, max(happened) AS last
                FROM events GROUP BY page""",
        },
        rows=_events,
        in_duckdb={
            "window.start AS minute": "time_bucket(INTERVAL '1 minute', happened) AS minute",
            "window(happened, '1 minute')": "time_bucket(INTERVAL '1 minute', happened)",
            "window.start AS hour": "time_bucket(INTERVAL '1 hour', happened) AS hour",
            "window(happened, '1 hour')": "time_bucket(INTERVAL '1 hour', happened)",
        },
    )


_CHANGES = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.int64()),
        ("status", pa.string()),
        ("region", pa.string()),
        ("amount", pa.int64()),
        ("version", pa.int64()),
        ("op", pa.string()),
    ]
)
KEYS, DELETED = 200_000, 0.05


def _changes(number: int, count: int) -> pa.Table:
    random = np.random.default_rng((3, number))
    return pa.table(
        [
            random.integers(0, KEYS, count),
            random.integers(0, 20_000, count),
            _names("status", random.integers(0, 6, count)),
            _names("region", random.integers(0, 40, count)),
            random.integers(0, 100_000, count),
            number * count + np.arange(count),
            np.where(random.random(count) < DELETED, "D", "U"),
        ],
        schema=_CHANGES,
    )


def keyed() -> RealisticPipeline:
    """Changes of the rows of a table, by key: aggregations over the last row of each key."""
    newest = "row_number() OVER (PARTITION BY id ORDER BY version DESC)"
    current = f"SELECT * FROM (SELECT *, {newest} AS age FROM {{rows}}) WHERE age = 1 AND op <> 'D'"
    key = sw.Key("id", order_by="version", deleted="op = 'D'")
    return RealisticPipeline(
        streams={"orders": Stream("parquet", _CHANGES, {"key": key}, current)},
        views={
            "by_customer": """
                SELECT customer, count(*) AS orders, sum(amount) AS amount, max(amount) AS largest
                FROM orders GROUP BY customer""",
            "by_status": "SELECT status, count(*) AS orders, avg(amount) AS amount FROM orders GROUP BY status",
            "by_region": """
                SELECT region, status, count(*) AS orders, sum(amount) AS amount
                FROM orders GROUP BY region, status""",
            "customers": """
                SELECT region, count(DISTINCT customer) AS customers, min(amount) AS smallest
                FROM orders GROUP BY region""",
        },
        rows=_changes,
    )


def _names(kind: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.compute.binary_join_element_wise(kind, pa.array(numbers).cast(pa.string()), " ")


def _times(number: int, seconds: npt.NDArray[np.int64]) -> pa.Array:
    """Times after the beginning of an epoch."""
    return pa.array(_START_US + (number * _EPOCH_S + seconds) * _SECOND_US).cast(pa.timestamp("us")).cast(_TIME)


PIPELINES: Mapping[str, Callable[[], RealisticPipeline]] = {
    "demo": demo,
    "partners": partners,
    "events": events,
    "keyed": keyed,
}
"""The pipelines by name; each call makes its tables again."""
