"""Seconds from a file's arrival to its rows in a grouped result, one file at a time: this project and two streams.

    python -m benchmarks.freshness [--files 60] [--warm 20]

Ours lists a bucket every 0.1 s; the time runs from the answer to the PUT to the moment the run reports the commit.  The
others watch a local directory without a pause; the time runs from the renaming of a file to the end of the batch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.contenders.answer import Answer
from benchmarks.contenders.arrivals import pauses
from benchmarks.contenders.contest import Contest
from benchmarks.events import QUERY, as_csv, event_files
from benchmarks.result import BarPlot, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server

OURS = "Slackwater, S3"
ROWS = 100
_PHASES = {
    "from the epoch's opening, when the file has not come yet, to its barrier": "fetch_s",
    "until every fetch actor has passed the barrier": "align_s",
    "until Spark has written the view": "spark_s",
    "until every actor has reported": "collect_s",
}


def measure_ours(files: list[bytes]) -> tuple[Answer, Table]:
    """Seconds of each file, and where those of the later half went."""
    seconds: list[float] = []
    pause = pauses()
    with S3Server() as s3:
        bucket = s3.create_bucket("bench")
        client = s3.client()
        pipeline = sw.Pipeline("bench", f"s3://{bucket}/root", storage_options=s3.storage_options)
        discovery = sw.Listing(interval_s=0.1, max_requests_per_hour=72_000)
        pipeline.source("events", f"s3://{bucket}/in", format="parquet", discovery=discovery)
        pipeline.view("by_user", QUERY)
        begun = ready = time.perf_counter()
        with pipeline.start() as run:
            for number, content in enumerate(files):
                client.put_object(Bucket=bucket, Key=f"in/{number:06}.parquet", Body=content)
                started = time.perf_counter()
                while run.report().files <= number:
                    run.wait(timeout_s=0.002)
                if number == 0:
                    ready = time.perf_counter()
                seconds.append(time.perf_counter() - started)
                time.sleep(pause())
        store = sw.open(pipeline.root.url, s3.storage_options)
        groups = [
            (row["user"], row["n"], row["total"]) for row in store.snapshot().view("by_user").to_arrow().to_pylist()
        ]
        epochs = store.epochs().to_pylist()[-len(seconds) // 2 :]
    rows = [
        Row(name, (Number(statistics.median(epoch[phase] for epoch in epochs), "s"),))
        for name, phase in _PHASES.items()
    ]
    return Answer(ready - begun, tuple(seconds), groups), Table(("p50",), tuple(rows), caption="Where ours goes")


def fill(directory: Path, files: list[bytes], suffix: str) -> str:
    """The files that will arrive; returns the directory."""
    for name in ("in", "ready"):
        (directory / name).mkdir(parents=True)
    for number, content in enumerate(files):
        (directory / "ready" / f"{number:06}.{suffix}").write_bytes(content)
    return str(directory)


def measure(options: argparse.Namespace) -> Result:
    files = list(event_files(options.warm + options.files, ROWS))
    ours, phases = measure_ours(files)
    contest = Contest(ours)
    with tempfile.TemporaryDirectory() as scratch:
        parquet = fill(Path(scratch, "parquet"), files, "parquet")
        contest.enter("Spark file stream, local", "spark_stream", "arrivals", parquet, str(ROWS))
        csv = fill(Path(scratch, "csv"), list(map(as_csv, files)), "csv")
        contest.enter("Pathway, local CSV", "pathway_stream", "arrivals", csv, str(ROWS))
    cuts = {name: _cuts(answer.seconds[options.warm :]) for name, answer in {OURS: ours, **contest.answers}.items()}
    rows = [
        Row(
            f"{name}: {which}",
            (Number(value, "s"),),
            ratio=None if name == OURS else value / cuts[OURS][which],
            target={"p50": Target(0.25, "s"), "p95": Target(0.4, "s")}.get(which) if name == OURS else None,
        )
        for name, each in cuts.items()
        for which, value in each.items()
    ]
    caption = f"{options.files} files of {ROWS} rows, one at a time, after {options.warm} others"
    table = Table(("arrival to result",), tuple(rows), "of Slackwater's time", caption)
    plot = BarPlot("freshness", "From a file's arrival to its rows in the result, p50", "s", _medians(cuts))
    return Result((table, phases), bars=(plot,), remarks=tuple(contest.remarks))


def _cuts(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "worst": max(seconds)}


def _medians(cuts: dict[str, dict[str, float]]) -> dict[str, float]:
    return {name: each["p50"] for name, each in cuts.items()}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=60)
    arguments.add_argument("--warm", type=int, default=20, help="files before them, which are not measured")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
