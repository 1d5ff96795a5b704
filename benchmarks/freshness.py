"""From a file's arrival in the bucket to the commit of its rows in a view, one file at a time.

    python -m benchmarks.freshness [--files 100]

The listing interval is 0.1 s.  The time runs from the answer to the PUT to the moment the run reports the commit.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import slackwater as sw
from benchmarks.events import QUERY, event_files
from benchmarks.machine import describe_machine
from slackwater.testing.s3_server import S3Server

WARM_FILES = 20


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=100)
    count = arguments.parse_args().files
    files = list(event_files(WARM_FILES + count, 100))
    rng = random.Random(1)
    seconds: list[float] = []
    with S3Server() as s3:
        bucket = s3.create_bucket("bench")
        client = s3.client()
        pipeline = sw.Pipeline("bench", f"s3://{bucket}/root", storage_options=s3.storage_options)
        discovery = sw.Listing(interval_s=0.1, max_requests_per_hour=72_000)
        pipeline.source("events", f"s3://{bucket}/in", format="parquet", discovery=discovery)
        pipeline.view("by_user", QUERY)
        with pipeline.start() as run:
            for number, content in enumerate(files):
                client.put_object(Bucket=bucket, Key=f"in/{number:06}.parquet", Body=content)
                started = time.perf_counter()
                while run.report().files <= number:
                    run.wait(timeout_s=0.002)
                if number >= WARM_FILES:
                    seconds.append(time.perf_counter() - started)
                time.sleep(rng.random() * 0.3)
        epochs = sw.open(pipeline.root.url, s3.storage_options).epochs().to_pylist()[-count:]
    cuts = statistics.quantiles(seconds, n=100)
    print(describe_machine())
    print(f"{count} files, one at a time: p50 {cuts[49]:.3f} s, p95 {cuts[94]:.3f} s, max {max(seconds):.3f} s")
    for phase in ("fetch_s", "align_s", "spark_s", "collect_s"):
        print(f"  {phase:10} p50 {statistics.median(epoch[phase] for epoch in epochs):.3f}")


if __name__ == "__main__":
    main()
