"""2,000 Parquet files × 500 rows, grouped by one column: this project from S3, a Spark file stream from a directory.

    python -m benchmarks.small_files [--files 2000] [--rows 500]

Both sessions are warm: each has already taken files of the same kind through the same query.  Ours is measured from
the moment a paused run is told to go on, with all files in the bucket, to the commit of the last row.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import slackwater as sw
from benchmarks.events import QUERY, event_files
from benchmarks.machine import describe_machine
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from slackwater.testing.s3_server import S3Server

WARM_FILES = 200


def measure_ours(files: list[bytes], rows: int) -> tuple[float, sw.RunReport]:
    """Seconds from `resume` to the last commit, and what the run did."""
    with S3Server() as s3:
        bucket = s3.create_bucket("bench")
        with paused_run(s3, bucket, QUERY, files[:WARM_FILES]) as run:
            seconds = seconds_to_commit(run, upload(s3, bucket, "cold", files))
            report = run.stop()
        store = sw.open(f"s3://{bucket}/root", s3.storage_options)
        counted = sum(store.snapshot().view("totals").to_arrow()["n"].to_pylist())
        assert counted == (WARM_FILES + len(files)) * rows, counted
        phases = store.epochs().select(["rows", "fetch_s", "align_s", "spark_s", "collect_s"]).to_pylist()
        for phase in phases[-8:]:
            print("   epoch", {name: round(value, 3) for name, value in phase.items()})
    return seconds, report


def measure_spark(files: list[bytes], rows: int) -> float:
    """Seconds of a Spark file stream over the same files in a local directory, in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for prefix, content in (("warm", files[:WARM_FILES]), ("cold", files)):
            directory = Path(scratch, prefix)
            directory.mkdir()
            for number, data in enumerate(content):
                Path(directory, f"{number:06}.parquet").write_bytes(data)
        command = [sys.executable, "-m", "benchmarks.spark_stream", scratch, str(len(files) * rows)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return float(answer.split()[-1])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=2_000)
    arguments.add_argument("--rows", type=int, default=500)
    options = arguments.parse_args()
    files = list(event_files(options.files, options.rows))
    print(describe_machine())
    ours, report = measure_ours(files, options.rows)
    spark = measure_spark(files, options.rows)
    print(f"{options.files:,} files x {options.rows} rows, {sum(map(len, files)) / 1e6:.0f} MB")
    print(f"  slackwater, S3            {ours:7.2f} s")
    print(f"  Spark file stream, local  {spark:7.2f} s   {spark / ours:.1f} x")
    print(f"  {report}")


if __name__ == "__main__":
    main()
