"""2,000 Parquet files × 500 rows, grouped by one column: this project, and others over the same rows.

    python -m benchmarks.small_files [--files 2000] [--rows 500]

Everybody is warm: each has already taken files of the same kind through the same query.  Ours is measured from the
moment a paused run is told to go on, with all files in the bucket, to the commit of the last row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.contenders.answer import Answer
from benchmarks.contenders.contest import Contest
from benchmarks.cpu_meter import THE_SERVER, CpuMeter
from benchmarks.events import QUERY, as_csv, event_files
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from benchmarks.result import TIMES, BarPlot, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server

WARM_FILES = 200
OURS = "Slackwater, S3"
NOTES = {
    OURS: "view, ledger and epochs committed to S3",
    "Spark file stream, local": "checkpoint on disk, result in memory",
    "Pathway, local CSV": "a stream; nothing is kept",
    "Pathway, S3 CSV": "reads once; nothing is kept",
    "DuckDB, local": "one batch; nothing is kept",
    "pyarrow and obstore, S3": "one batch; nothing is kept",
}


def measure_ours(s3: S3Server, bucket: str, files: list[bytes], rows: int) -> tuple[Answer, Table]:
    """From `resume` to the last commit, and the CPU that it took."""
    started = time.perf_counter()
    with paused_run(s3, bucket, QUERY, files[:WARM_FILES]) as run:
        start_s = time.perf_counter() - started
        warm = _groups(s3, bucket)
        before = run.report()
        count = upload(s3, bucket, "cold", files)
        meter = CpuMeter()
        seconds = seconds_to_commit(run, count)
        spent = meter.seconds()
        report = run.stop()
    groups = _groups(s3, bucket)
    assert sum(count for count, _ in groups.values()) == (WARM_FILES + len(files)) * rows
    assert report.requests - before.requests >= len(files)
    new = [(user, count - warm[user][0], total - warm[user][1]) for user, (count, total) in groups.items()]
    print(report)
    kinds = tuple(_cost(kind, each / len(files)) for kind, each in spent.items())
    total = sum(spent.values()) / len(files)
    ours = _cost("all but the S3 server", total - spent[THE_SERVER] / len(files), Target(2.0, "ms"))
    cpu = Table(("CPU a file",), (_cost("all", total), ours, *kinds), caption="Cost of a file in Slackwater")
    return Answer(start_s, (seconds,), new), cpu


def _cost(name: str, seconds: float, target: Target | None = None) -> Row:
    return Row(name, (Number(1e3 * seconds, "ms"),), target=target)


def _groups(s3: S3Server, bucket: str) -> dict[int, tuple[int, float]]:
    view = sw.open(f"s3://{bucket}/root", s3.storage_options).snapshot().view("totals").to_arrow()
    return {row["user"]: (row["n"], row["total"]) for row in view.to_pylist()}


def fill(directory: Path, files: list[bytes], rows: int) -> None:
    """The files in two forms and places, as the contenders want them."""
    for name, content in (("warm", files[:WARM_FILES]), ("cold", files)):
        for place, suffix, forms in (
            ("parquet", "parquet", iter(content)),
            ("csv", "csv", _csv(content)),
        ):
            into = directory / place / name
            into.mkdir(parents=True)
            for number, data in enumerate(forms):
                (into / f"{number:06}.{suffix}").write_bytes(data)
        (directory / "csv" / f"{name}.rows").write_text(str(len(content) * rows))
    watched = directory / "csv" / "watched"
    watched.mkdir()
    (directory / "csv" / "warm").rename(watched / "warm")


def _csv(files: list[bytes]) -> Iterator[bytes]:
    return map(as_csv, files)


def others(contest: Contest, s3: S3Server, bucket: str, files: list[bytes], rows: int) -> None:
    """All of them, one after the other."""
    options = s3.storage_options
    upload(s3, bucket, "csv", _csv(files))
    parquet = {"bucket": f"s3://{bucket}", "options": options, "warm": "in/warm", "cold": "in/cold"}
    settings = {
        "bucket_name": bucket,
        "access_key": options["access_key_id"],
        "secret_access_key": options["secret_access_key"],
        "region": options["region"],
        "endpoint": options["endpoint"],
    }
    csv = {"prefix": "in/csv/", "settings": settings}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        fill(directory, files, rows)
        local = str(directory / "parquet")
        contest.enter("Spark file stream, local", "spark_stream", "all", local)
        contest.enter("DuckDB, local", "duckdb_batch", "all", local)
        _enter_bucket(contest, "pyarrow and obstore, S3", "pyarrow_loop", "all", parquet)
        contest.enter("Pathway, local CSV", "pathway_stream", "all", str(directory / "csv"))
        _enter_bucket(contest, "Pathway, S3 CSV", "pathway_stream", "bucket", csv)


def _enter_bucket(contest: Contest, name: str, module: str, how: str, place: Mapping[str, object]) -> None:
    contest.enter(name, module, how, ".", environment={"CONTENDER_BUCKET": json.dumps(place)})


def measure(options: argparse.Namespace) -> Result:
    files = list(event_files(options.files, options.rows))
    with S3Server() as s3:
        bucket = s3.create_bucket("bench")
        ours, cpu = measure_ours(s3, bucket, files, options.rows)
        contest = Contest(ours)
        others(contest, s3, bucket, files, options.rows)
    answers = {OURS: ours, **contest.answers}
    names = sorted(answers, key=lambda name: (name != OURS, list(NOTES).index(name)))
    is_design_size = (options.files, options.rows) == (2_000, 500)
    table = Table(
        ("files to result", "to be ready before"),
        tuple(_row(name, answers[name], ours, is_design_size=is_design_size) for name in names),
        ratio="of Slackwater's time",
        caption=f"{options.files:,} files × {options.rows:,} rows, {sum(map(len, files)) / 1e6:.0f} MB as Parquet",
    )
    bars = {name: answers[name].seconds[0] for name in names}
    plot = BarPlot("small_files", f"{options.files:,} files × {options.rows:,} rows to a grouped result", "s", bars)
    return Result((table, cpu), bars=(plot,), remarks=tuple(contest.remarks))


def _row(name: str, answer: Answer, ours: Answer, *, is_design_size: bool) -> Row:
    targets = {
        "pyarrow and obstore, S3": Target(1 / 1.6, TIMES, at_least=True),
        "Spark file stream, local": Target(4.0, TIMES, at_least=True),
    }
    seconds = answer.seconds[0]
    return Row(
        name,
        (Number(seconds, "s"), Number(answer.start_s, "s")),
        ratio=None if name == OURS else seconds / ours.seconds[0],
        target=targets.get(name) if is_design_size else None,
        note=NOTES[name],
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=2_000)
    arguments.add_argument("--rows", type=int, default=500)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
