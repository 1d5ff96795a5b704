"""Readers: the requests of a file, the cost of latency, and the rate of parsing text.

    python -m benchmarks.reading [--quick]

Requests are counted at the S3 server.  Text is parsed by one thread, in turns with pyarrow alone, and CPU seconds are
compared.  No Ray and no Spark.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from actors.files import FileVersion
from actors.formats.options import Csv, Parquet
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.reader import FileReader
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader
from actors.objects.object_file import ObjectFile
from actors.objects.object_store import ObjectStore
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.settings import MIB, FetchSettings, RequestSettings
from actors.sources.source import SourceDefinition
from benchmarks.command import run_benchmark
from benchmarks.delay_line import DelayLine
from benchmarks.events import event_files
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location

SCHEMA = pa.schema([("user", pa.int64()), ("amount", pa.float64()), ("kind", pa.string())])
LATENCY_S = 0.03
CONCURRENCY = 32


def table(rows: int, columns: int = 12) -> pa.Table:
    """Numbers that do not compress."""
    rng = np.random.default_rng(7)
    return pa.table({f"c{column}": rng.random(rows) for column in range(columns)})


def listed(store: ObjectStore) -> list[FileVersion]:
    """Every object of a store."""
    return [
        FileVersion("s", path, b"", etag, size, at)
        for page in store.list_pages()
        for path, etag, size, at in page.objects()
    ]


def count_requests(s3: S3Server, large_rows: int) -> Table:
    """The file of the story, and a large one of which two columns are used."""
    bucket = s3.create_bucket("requests")
    story, large = pa.BufferOutputStream(), pa.BufferOutputStream()
    pq.write_table(table(8_500), story, row_group_size=170)
    pq.write_table(table(large_rows), large, compression="none", use_dictionary=False)
    s3.put(bucket, "story", story.getvalue().to_pybytes())
    s3.put(bucket, "large", large.getvalue().to_pybytes())
    log = s3.proxy()
    store = ObjectStore(Location(f"s3://{bucket}", log.storage_options))
    found = []
    for file in listed(store):
        columns = {"c3", "c8"} if file.path == "large" else None
        content = store.open(file)
        with log.recording() as seen:
            rows = sum(each.num_rows for each in ParquetReader().read(content, table(0).schema, columns=columns))
        assert len(seen) == content.requests, "what the ledger says is what the server has seen"
        assert rows == (large_rows if columns else 8_500), rows
        needed = file.size * (2 if columns else 12) / 12 / MIB
        # The tail, and one for each 8 MiB of what is used: at least one for each column, which do not touch.
        most = 1 + max(2, math.ceil(needed / 8)) if columns else 1
        name = "2 of 12 columns used" if columns else "50 row groups × 12 columns, all columns used"
        sizes = Number(file.size / MIB, "MiB"), Number(needed, "MiB"), Number(content.bytes_read / MIB, "MiB")
        found.append(Row(name, (Number(content.requests), *sizes), target=Target(most)))
    return Table(("requests", "file", "used", "read"), tuple(found), caption="Requests, counted at the server")


def measure_latency(s3: S3Server, count: int) -> Table:
    """Small files with 30 ms a request, against what 32 requests at a time must take."""
    files = list(event_files(count, 500))
    port = int(s3.endpoint.rpartition(":")[2])
    bucket = s3.create_bucket("latency")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda each: s3.put(bucket, f"in/{each[0]:06}", each[1]), enumerate(files)))
    with DelayLine(port, 0.0) as near, DelayLine(port, LATENCY_S) as far:
        near_s, far_s = (
            min(read_all(Location(f"s3://{bucket}/in", {**s3.storage_options, "endpoint": endpoint})) for _ in range(3))
            for endpoint in (f"http://127.0.0.1:{near.port}", f"http://127.0.0.1:{far.port}")
        )
    ideal_s = len(files) * LATENCY_S / CONCURRENCY + near_s
    rows = (
        Row("ideal: files × latency / 32, and the time without latency", (Number(ideal_s, "s"),)),
        Row("without latency", (Number(near_s, "s"),)),
        Row("with it", (Number(far_s, "s"),), ratio=far_s / ideal_s, target=Target(1.3, TIMES)),
    )
    caption = f"{len(files):,} small files, {1_000 * LATENCY_S:.0f} ms more a request, {CONCURRENCY} at a time"
    return Table(("seconds",), rows, "of the ideal", caption)


def read_all(location: Location) -> float:
    """Seconds in which the threads of a fetch actor read every file of a source."""
    source = SourceDefinition(name="s", location=location, format=Parquet(), schema=SCHEMA)
    files = listed(ObjectStore(location))
    reader = SourceReader(source, SCHEMA, FetchSettings(concurrency=CONCURRENCY))

    def read(file: FileVersion) -> int:
        return reader.open(file).next_piece(SCHEMA, Offset())[0].num_rows

    with ThreadPoolExecutor(CONCURRENCY) as threads:
        started = time.perf_counter()
        rows = sum(threads.map(read, files))
        seconds = time.perf_counter() - started
    assert rows == len(files) * 500, rows
    return seconds


def measure_parsing(scratch: Path, rows: int, turns: int) -> Table:
    """CSV and JSON, ours and pyarrow's in turns."""
    rng = np.random.default_rng(3)
    content = pa.table(
        {
            "id": np.arange(rows),
            "user": rng.integers(0, 1_000, rows),
            "amount": rng.random(rows).round(4),
            "note": pa.array([f"note {number % 97}" for number in range(rows)]),
            "at": pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us")),
        }
    )
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(content, sink)
    quoted = sink.getvalue().to_pybytes()
    lines = "\n".join(json.dumps(row, default=str) for row in content.to_pylist()).encode()
    types = {field.name: field.type for field in content.schema}
    convert = arrow_csv.ConvertOptions(column_types=types, null_values=[""])
    one_thread = arrow_csv.ReadOptions(use_threads=False)

    def plain_csv(text: bytes) -> int:
        options = arrow_csv.ParseOptions(newlines_in_values=True)
        return int(arrow_csv.read_csv(pa.BufferReader(text), one_thread, options, convert).num_rows)

    def plain_json(text: bytes) -> int:
        read = arrow_json.ReadOptions(use_threads=False)
        parse = arrow_json.ParseOptions(explicit_schema=content.schema)
        return int(arrow_json.read_json(pa.BufferReader(text), read, parse).num_rows)

    cases: list[tuple[str, bytes, FileReader, Callable[[bytes], int]]] = [
        ("CSV, quoted texts", quoted, CsvReader(Csv()), plain_csv),
        ("CSV without quotes", quoted.replace(b'"', b""), CsvReader(Csv()), plain_csv),
        ("JSON", lines, JsonReader(), plain_json),
    ]
    requests = RequestSettings(whole_object_bytes=1 << 30)
    found = []
    for name, text, reader, plain in cases:
        (scratch / "text").write_bytes(text)
        store = ObjectStore(Location(str(scratch)), requests=requests)
        file = store.open(listed(store)[0])
        file.head(1)
        ours, theirs = in_turns(
            partial(rows_of, reader, file, content.schema),
            partial(plain, text),
            turns=turns,
        )
        ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
        found.append(
            Row(
                name,
                (
                    Number(len(text) / MIB, "MiB"),
                    Number(statistics.median(ours), "s"),
                    Number(statistics.median(theirs), "s"),
                ),
                ratio=statistics.median(ratios),
                target=Target(0.9, TIMES, at_least=True),
            )
        )
    caption = f"Parsing by one thread, CPU seconds, medians of {turns} turns"
    return Table(("text", "Slackwater", "pyarrow alone"), tuple(found), "of pyarrow's speed", caption)


def rows_of(reader: FileReader, file: ObjectFile, schema: pa.Schema) -> int:
    """The number of rows of a file, by reading all of it."""
    return sum(each.num_rows for each in reader.read(file, schema))


def in_turns(*calls: Callable[[], int], turns: int) -> list[list[float]]:
    """The CPU seconds of each call, several times, one after the other."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(turns):
        for call, each in zip(calls, seconds, strict=True):
            each.append(cpu_seconds(call))
    return seconds


def cpu_seconds(call: Callable[[], int]) -> float:
    """The CPU seconds of a call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def measure(options: argparse.Namespace) -> Result:
    large_rows, files, rows, turns = (280_000, 500, 150_000, 3) if options.quick else (2_800_000, 2_000, 600_000, 7)
    with S3Server() as s3:
        requests = count_requests(s3, large_rows)
        latency = measure_latency(s3, files)
    with tempfile.TemporaryDirectory() as scratch:
        parsing = measure_parsing(Path(scratch), rows, turns)
    return Result((requests, latency, parsing))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true", help="smaller files, and fewer of them")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()
