"""Flights in a bucket become views, as a job of a Ray cluster.

    ray job submit --working-dir . -- python examples/flights_job.py s3://raw/flights s3://lake/flights

It runs until `ray job stop`, or `slackwater stop ROOT`, ends it after a last epoch.  The two places may also come in
the environment, as FLIGHTS_RAW and FLIGHTS_ROOT; credentials come in the usual variables of AWS, or from the machines.
"""

import argparse
import os
import sys

import slackwater as sw


def flights(raw: str, root: str) -> sw.Pipeline:
    """The pipeline."""
    pipeline = sw.Pipeline("flights", root=root)
    pipeline.source("flights", raw, format="parquet", pattern="**/*.parquet", discovery=sw.Listing(interval_s=2))
    pipeline.view("by_carrier", "SELECT carrier, count(*) AS n, avg(dep_delay) AS delay FROM flights GROUP BY carrier")

    @pipeline.view
    def late(flights):  # type: ignore[no-untyped-def]
        return flights.where("dep_delay > 60").select("carrier", "flight", "dep_delay")

    return pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps views of flights up to date.")
    parser.add_argument("raw", nargs="?", default=os.environ.get("FLIGHTS_RAW"), help="where the files arrive")
    parser.add_argument("root", nargs="?", default=os.environ.get("FLIGHTS_ROOT"), help="where the views are kept")
    places = parser.parse_args()
    if not places.raw or not places.root:
        parser.error("give RAW and ROOT, or set FLIGHTS_RAW and FLIGHTS_ROOT")
    # A line for every epoch in the log of the job; without it only warnings.
    os.environ.setdefault("SLACKWATER_LOG_LEVEL", "info")
    try:
        print(flights(places.raw, places.root).run())
    except sw.SlackwaterError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
