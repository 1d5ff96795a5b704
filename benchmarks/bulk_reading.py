"""Large Parquet files into Spark, against reading the same files by pyarrow alone.

    python -m benchmarks.bulk_reading [--files 8] [--rows 1000000]

From one S3 server, in turns: a plain loop of one thread (GET, `read_table`); our readers in one thread, to the bytes
that Spark is handed; pyarrow's dataset with all its threads; and a warm run, paused meanwhile, from `resume` to the
commit of a view that sums all eight columns, so that all are read, handed over and looked at by Spark.  Then Spark
alone, in the same session: the same query over the same rows, which are Arrow in Ray's object store already.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable, Iterator

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import ray
from pyarrow.fs import S3FileSystem
from pyspark.sql import SparkSession
from raydp.spark.dataset import ray_dataset_to_spark_dataframe

import slackwater as sw
from actors.formats.options import Parquet
from actors.objects.object_store import ObjectStore
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from benchmarks.command import run_benchmark
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from benchmarks.reading import listed
from benchmarks.result import TIMES, BarPlot, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from state.objects.object_client import object_client

COLUMNS = [f"c{column}" for column in range(8)]
SCHEMA = pa.schema([(column, pa.float64()) for column in COLUMNS])
QUERY = f"SELECT count(*) AS n, {', '.join(f'sum({column}) AS {column}' for column in COLUMNS)} FROM events"
# A bulk load is long enough for Java's second compiler.
SETTINGS = sw.Settings(spark=sw.settings.SparkSettings(quick_start=False, executor_cores=2))
TURNS = 5


def large_files(count: int, rows: int, seed: int = 0) -> Iterator[bytes]:
    """Files of random numbers, in row groups of 131,072 rows (8 MiB)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({column: rng.random(rows) for column in COLUMNS}), sink, row_group_size=1 << 17)
        yield sink.getvalue().to_pybytes()


def plain_loop(location: Location) -> int:
    """One thread, one file after the other."""
    client = object_client(location)
    contents = (obstore.get(client, file.path).bytes() for file in listed(ObjectStore(location)))
    return sum(pq.read_table(pa.BufferReader(memoryview(content)), use_threads=False).num_rows for content in contents)


def our_readers(location: Location) -> int:
    """One thread, to the stream of bytes that goes to the object store for Spark."""
    source = SourceDefinition(name="s", location=location, format=Parquet(), schema=SCHEMA)
    reader, rows = SourceReader(source, SCHEMA, FetchSettings()), 0
    for file in listed(ObjectStore(location)):
        content, is_last = reader.open(file), False
        while not is_last:
            piece, is_last = content.next_piece(SCHEMA, Offset())
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, SCHEMA) as writer:
                writer.write_table(piece.table)
            rows += piece.num_rows if sink.getvalue().to_pybytes() else 0
    return rows


def dataset_scan(location: Location) -> int:
    """All threads of pyarrow."""
    options = location.storage_options
    filesystem = S3FileSystem(
        access_key=options["access_key_id"],
        secret_key=options["secret_access_key"],
        endpoint_override=options["endpoint"].removeprefix("http://"),
        scheme="http",
        region=options["region"],
    )
    path = location.url.removeprefix("s3://")
    return sum(batch.num_rows for batch in ds.dataset(path, filesystem=filesystem, format="parquet").to_batches())


def in_object_store(files: Iterable[bytes]) -> list[ray.ObjectRef[bytes]]:
    """The rows of files as Arrow streams, one for each row group, as RayDP takes them."""
    references = []
    for content in files:
        file = pq.ParquetFile(pa.BufferReader(content))
        for group in range(file.num_row_groups):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, SCHEMA) as writer:
                writer.write_table(file.read_row_group(group, use_threads=False).cast(SCHEMA))
            references.append(ray.put(sink.getvalue().to_pybytes()))
    return references


def spark_alone(references: list[ray.ObjectRef[bytes]]) -> int:
    """The query by Spark, with the ingest of RayDP."""
    spark = SparkSession.builder.getOrCreate()  # that of the run
    ray_dataset_to_spark_dataframe(spark, SCHEMA, references).createOrReplaceTempView("events")
    return int(spark.sql(QUERY).collect()[0]["n"])


NAMES = {
    "plain_loop": "plain loop: GET and `read_table`, one thread",
    "our_readers": "our readers, one thread, to the bytes that Spark is handed",
    "dataset_scan": "pyarrow's dataset, all threads",
    "into_a_view": "a run: read, handed over, eight columns summed by Spark, committed",
    "spark_alone": "of that Spark alone, over the same rows in Ray's object store",
}


def measure(options: argparse.Namespace) -> Result:
    seconds: dict[str, list[float]] = {}
    expected = options.files * options.rows
    with S3Server() as s3:
        bucket = s3.create_bucket("bulk")
        with paused_run(s3, bucket, QUERY, large_files(options.files, options.rows), settings=SETTINGS) as run:
            for turn in range(TURNS):
                files = upload(s3, bucket, f"{turn}", large_files(options.files, options.rows, seed=turn + 1))
                location = s3.location(bucket, f"in/{turn}")
                for read in (plain_loop, our_readers, dataset_scan):
                    started = time.perf_counter()
                    assert read(location) == expected
                    seconds.setdefault(read.__name__, []).append(time.perf_counter() - started)
                before = run.report().rows
                seconds.setdefault("into_a_view", []).append(seconds_to_commit(run, files))
                run.pause()
                assert run.report().rows - before == expected
                references = in_object_store(large_files(options.files, options.rows, seed=turn + 1))
                started = time.perf_counter()
                assert spark_alone(references) == expected
                seconds.setdefault("spark_alone", []).append(time.perf_counter() - started)
                del references
    rows = []
    for name, each in seconds.items():
        ratio = statistics.median(plain / other for plain, other in zip(seconds["plain_loop"], each, strict=True))
        target = Target(0.7, TIMES, at_least=True) if name == "our_readers" else None
        rows.append(Row(NAMES[name], (Number(statistics.median(each), "s"),), ratio, target))
    size = f"{options.files} files, {expected:,} rows, {64 * expected / 1e6:.0f} MB as Arrow"
    table = Table(("seconds",), tuple(rows), "of the plain loop's speed", f"{size}; medians of {TURNS} turns")
    short = ("plain loop", "our readers", "pyarrow's dataset", "a run, to the commit", "of that Spark alone")
    bars = {name: statistics.median(each) for name, each in zip(short, seconds.values(), strict=True)}
    return Result((table,), bars=(BarPlot("bulk_reading", f"Bulk reading: {size}", "s", bars),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=8)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
