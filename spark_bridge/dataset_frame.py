"""A Lance dataset as a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lance
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.arrow_frames import frame_of_table, spark_schema
from state.lance_access import lance_options
from state.location import Location

_IN_THE_DRIVER_ROWS = 20_000
_TASKS_A_CORE = 4
# An epoch waits for the task that has begun.
_TASK_ROWS = 200_000


def frame_of_dataset(
    spark: SparkSession, location: Location, dataset: lance.LanceDataset, columns: Sequence[str]
) -> DataFrame:
    """All rows of a dataset, read when the frame is used; few rows are read at once, by this process.

    Args:
        spark: the session; its workers need `pylance`.
        location: of the dataset.
        dataset: at the version that is read.
        columns: those that are read, in this order.
    """
    rows = dataset.count_rows()
    if rows <= _IN_THE_DRIVER_ROWS:
        return frame_of_table(spark, dataset.to_table(columns=list(columns)))
    fragments = [each.fragment_id for each in dataset.get_fragments()]
    wanted = max(rows // _TASK_ROWS, _TASKS_A_CORE * int(spark.sparkContext.defaultParallelism))
    tasks = min(len(fragments), wanted)
    shares = [fragments[start::tasks] for start in range(tasks)]
    schema = spark_schema(pa.schema([dataset.schema.field(name) for name in columns]))
    read = _reader(location, dataset.version, shares, columns)
    return spark.range(0, tasks, 1, numPartitions=tasks).mapInArrow(read, schema)


def _reader(
    location: Location, version: int, shares: list[list[int]], columns: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    uri, options, names = location.lance_uri, lance_options(location), list(columns)

    def read(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance  # in the worker, which was forked: Lance does not survive a fork

        opened: Any = lance.dataset(uri, version=version, storage_options=options)
        for batch in tasks:
            for task in batch.column(0).to_pylist():
                fragments = [opened.get_fragment(each) for each in shares[task]]
                yield from opened.scanner(columns=names, fragments=fragments).to_batches()

    return read
