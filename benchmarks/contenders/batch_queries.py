"""The queries of a realistic pipeline over the files of single epochs, each epoch by itself: Spark or DuckDB.

    python -m benchmarks.contenders.batch_queries spark|duckdb PIPELINE DIRECTORY WARM_UP EPOCH...

Each query reads the files, and ends with its answer in memory, as an Arrow table.  The first `WARM_UP` epochs are not
measured.  The answers of the last epoch are stored below `answers/`.  The last line is JSON: the seconds of the start
and of each measured epoch, and the CPU-seconds of all measured epochs.
"""

from __future__ import annotations

import json
import sys
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any, Protocol

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.realistic_pipelines import PIPELINES, RealisticPipeline, Stream

_SQL_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
}


class Batch(Protocol):
    """An engine that computes all views from files."""

    @abstractmethod
    def read_tables(self, directory: Path) -> None:
        """Declares the small tables."""

    @abstractmethod
    def answers(self, files: Path) -> dict[str, pa.Table]:
        """The rows of each view over the files below a directory, which has a directory for each source."""


class SparkBatch(Batch):
    """Spark with a session of defaults."""

    def __init__(self, pipeline: RealisticPipeline) -> None:
        from benchmarks.plain_spark import plain_spark

        self._pipeline = pipeline
        self._spark = plain_spark("4g", {"spark.sql.session.timeZone": "UTC"})

    def read_tables(self, directory: Path) -> None:
        for name, table in {**self._pipeline.tables, **self._pipeline.file_tables}.items():
            self._read(directory / name, Stream("csv", table.schema)).createOrReplaceTempView(name)

    def answers(self, files: Path) -> dict[str, pa.Table]:
        from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame

        for name, stream in self._pipeline.streams.items():
            self._read(files / name, stream).createOrReplaceTempView("__rows")
            rows = self._spark.table("__rows")
            self._spark.sql(stream.current.format(rows="{rows}"), rows=rows).createOrReplaceTempView(name)
        found = {}
        for name, query in self._pipeline.views.items():
            frame = self._spark.sql(query)
            frame.createOrReplaceTempView(name)
            found[name] = table_of_frame(frame, arrow_schema(frame.schema))
        return found

    def _read(self, place: Path, stream: Stream) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = self._spark.read.schema(from_arrow_schema(stream.schema)).option("header", stream.format == "csv")
        return reader.format(stream.format).load(str(place))


class DuckdbBatch(Batch):
    """DuckDB."""

    def __init__(self, pipeline: RealisticPipeline) -> None:
        self._pipeline, self._connection = pipeline, duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")

    def read_tables(self, directory: Path) -> None:
        for name, table in {**self._pipeline.tables, **self._pipeline.file_tables}.items():
            rows = self._rows(directory / name, Stream("csv", table.schema))
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {rows}")

    def answers(self, files: Path) -> dict[str, pa.Table]:
        for name, stream in self._pipeline.streams.items():
            rows = stream.current.format(rows=self._rows(files / name, stream))
            self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {rows}")
        found = {}
        for name, query in self._pipeline.views.items():
            for spark_text, text in self._pipeline.in_duckdb.items():
                query = query.replace(spark_text, text)
            self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")
            found[name] = self._connection.sql(f"SELECT * FROM {name}").to_arrow_table()
        return found

    @staticmethod
    def _rows(place: Path, stream: Stream) -> str:
        files = f"'{place}/*.{stream.format}'"
        if stream.format == "parquet":
            return f"read_parquet({files})"
        columns = {each.name: _SQL_TYPES[str(each.type)] for each in stream.schema}
        return f"read_{stream.format}({files}, columns = {columns})"


ENGINES = {"spark": SparkBatch, "duckdb": DuckdbBatch}


def stored_answers(directory: Path, engine: str) -> dict[str, pa.Table]:
    """The answers of an engine to its last epoch."""
    return {path.stem: pq.read_table(path) for path in (directory / "answers" / engine).iterdir()}


def _cpu_s() -> float:
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def main() -> None:
    engine, name, directory, warm_up = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    epochs = [directory / "epochs" / f"{int(number):04}" for number in sys.argv[5:]]
    pipeline = PIPELINES[name]()
    began = time.perf_counter()
    batch = ENGINES[engine](pipeline)
    batch.read_tables(directory / "tables")
    start_s = time.perf_counter() - began
    for epoch in epochs[:warm_up]:
        batch.answers(epoch)
    seconds, cpu_s, answers = [], _cpu_s(), dict[str, pa.Table]()
    for epoch in epochs[warm_up:]:
        began = time.perf_counter()
        answers = batch.answers(epoch)
        seconds.append(time.perf_counter() - began)
    cpu_s = _cpu_s() - cpu_s
    for view, rows in answers.items():
        path = directory / "answers" / engine / f"{view}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
    print(json.dumps({"start_s": start_s, "seconds": seconds, "cpu_s": cpu_s}), flush=True)


if __name__ == "__main__":
    main()
