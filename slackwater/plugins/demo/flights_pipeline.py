"""Pipeline of the demo: one source for each format, views over all of them, joined with two tables, and over a view.

    SLACKWATER_DEMO_RAW=s3://raw-flights SLACKWATER_DEMO_ROOT=s3://lake/flights \
        SLACKWATER_DEMO_PUBLISHED=s3://lake/published SLACKWATER_DEMO_CATALOG=/tmp/catalog.db \
        slackwater run slackwater.plugins.demo.flights_pipeline:flights
"""

from __future__ import annotations

import os
from typing import Any

import slackwater as sw
from slackwater.plugins.demo.flights import FORMATS, PLANES, SCHEMA, airlines
from slackwater.plugins.demo.other_readers import PUBLISHED, PublishedPlace
from state.errors import UsageError

ALL = "(" + " UNION ALL ".join(f"SELECT * FROM flights_{name}" for name in FORMATS) + ")"

QUERIES = {
    "by_carrier": f"""
        SELECT carrier, count(*) AS flights, count(dep_time) AS departed, avg(dep_delay) AS delay,
               stddev_samp(dep_delay) AS spread, max(dep_delay) AS worst
        FROM {ALL} GROUP BY carrier""",
    "by_month": f"""
        SELECT month, count(*) AS flights, sum(distance) AS miles, min(time_hour) AS first, max(time_hour) AS last
        FROM {ALL} GROUP BY month""",
    "busy_routes": f"""
        SELECT origin, dest, count(*) AS flights, avg(air_time) AS minutes,
               100.0D * count(arr_delay) / count(*) AS arrived
        FROM {ALL} GROUP BY origin, dest HAVING count(*) >= 1000""",
    "by_airline": f"""
        SELECT name, count(*) AS flights, sum(arr_delay) AS minutes_late
        FROM {ALL} AS f JOIN airlines ON f.carrier = airlines.carrier GROUP BY name""",
    "by_manufacturer": f"""
        SELECT manufacturer, count(*) AS flights, sum(seats) AS seats, max(distance) AS farthest
        FROM {ALL} AS f LEFT JOIN planes ON f.tailnum = planes.tailnum GROUP BY manufacturer""",
    "by_punctuality": """
        SELECT delay > 10 AS late, count(*) AS carriers, sum(flights) AS flights
        FROM by_carrier GROUP BY delay > 10""",
}

# The queries for DuckDB; the function view and one difference from Spark's SQL need their own.
DUCKDB_QUERIES = {
    **QUERIES,
    "busy_routes": QUERIES["busy_routes"].replace("100.0D", "100.0::DOUBLE"),
    "very_late": f"SELECT time_hour, carrier, flight, origin, dest, dep_delay FROM {ALL} WHERE dep_delay > 120",
}


def very_late(flights_parquet: Any, flights_csv: Any, flights_json: Any) -> Any:
    """An append view as a function: DataFrames in, a DataFrame out."""
    flights = flights_parquet.unionByName(flights_csv).unionByName(flights_json)
    return flights.where("dep_delay > 120").select("time_hour", "carrier", "flight", "origin", "dest", "dep_delay")


def flights() -> sw.Pipeline:
    """The pipeline, with its locations from the environment."""
    try:
        raw, root = os.environ["SLACKWATER_DEMO_RAW"], os.environ["SLACKWATER_DEMO_ROOT"]
        place = PublishedPlace(os.environ["SLACKWATER_DEMO_PUBLISHED"], os.environ["SLACKWATER_DEMO_CATALOG"])
    except KeyError as missing:
        raise UsageError(
            f"set the environment variable {missing.args[0]}, or run the whole demo: slackwater demo"
        ) from None
    # Small epochs, so that a year of flights takes many of them, and a crash falls between two.
    settings = sw.Settings(
        barrier=sw.settings.BarrierSettings(interval_s=0.5, max_epoch_bytes=8 * 1024 * 1024),
        fetch=sw.settings.FetchSettings(max_files_waiting=48),
    )
    pipeline = sw.Pipeline("flights", root=root, settings=settings)
    for name in FORMATS:
        pipeline.source(
            f"flights_{name}",
            f"{raw}/{name}",
            format=name,
            schema=SCHEMA,
            discovery=sw.Listing(interval_s=0.5),
            materialize=True,
            on_change="replace",
        )
    pipeline.table("airlines", airlines())
    pipeline.table("planes", f"{raw}/planes", format="csv", schema=PLANES, discovery=sw.Listing(interval_s=0.5))
    tables = (sw.Delta(place.delta), sw.Iceberg(place.iceberg, place.catalog_properties, interval_s=5))
    for name, query in QUERIES.items():
        pipeline.view(name, query, publish=tables if name == PUBLISHED else ())
    pipeline.view(very_late)
    return pipeline
