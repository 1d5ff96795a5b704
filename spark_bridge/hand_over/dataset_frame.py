"""A Lance dataset as a Spark DataFrame, read by Spark's tasks, or by this process if it has few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.catalyst.arrow_frames import frame_of_table, spark_schema
from state.lance.lance_access import lance_options
from state.location import Location
from state.tables.stored_rows import FILE_FIELD, PATH_COLUMN

_IN_THE_DRIVER_ROWS = 20_000
_TASKS_A_CORE = 4
# An epoch waits for a begun task, so a task must be short.
_TASK_ROWS = 200_000


def frame_of_dataset(
    spark: SparkSession,
    location: Location,
    dataset: lance.LanceDataset,
    columns: Sequence[str],
    *,
    files: Mapping[str, bytes] | None = None,
) -> DataFrame:
    """The rows of a dataset.  Tasks read them lazily; this process reads few rows at once.

    Args:
        spark: the session; its workers need `pylance`.
        location: of the dataset.
        dataset: at the version to read.
        columns: the columns to read, in this order; `__sw_file` may be the last if `files` are given.
        files: path → fingerprint of each file whose rows are read; None for all rows.
    """
    fields = [FILE_FIELD if name == FILE_FIELD.name else dataset.schema.field(name) for name in columns]
    schema = pa.schema(fields)
    rows = dataset.count_rows(_condition(files))
    if rows <= _IN_THE_DRIVER_ROWS:
        return frame_of_table(spark, _read(dataset, schema, files).cast(schema))
    fragments = [each.fragment_id for each in dataset.get_fragments()]
    wanted = max(rows // _TASK_ROWS, _TASKS_A_CORE * int(spark.sparkContext.defaultParallelism))
    tasks = min(len(fragments), wanted)
    shares = [fragments[start::tasks] for start in range(tasks)]
    read = _reader(location, dataset.version, shares, schema, files)
    return spark.range(0, tasks, 1, numPartitions=tasks).mapInArrow(read, spark_schema(schema))


def _reader(
    location: Location, version: int, shares: list[list[int]], schema: pa.Schema, files: Mapping[str, bytes] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    uri, options = location.lance_uri, lance_options(location)

    def read(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance  # here and not before: the worker is a fork, and Lance does not survive a fork

        opened: Any = lance.dataset(uri, version=version, storage_options=options)
        for batch in tasks:
            for task in batch.column(0).to_pylist():
                fragments = [opened.get_fragment(each) for each in shares[task]]
                for read_batch in _scan(opened, schema, files, fragments).to_batches():
                    yield _with_file(read_batch, schema, files)

    return read


def _read(dataset: lance.LanceDataset, schema: pa.Schema, files: Mapping[str, bytes] | None) -> pa.Table:
    batches = [_with_file(batch, schema, files) for batch in _scan(dataset, schema, files, None).to_batches()]
    return pa.Table.from_batches(batches, None if batches else schema)


def _scan(dataset: Any, schema: pa.Schema, files: Mapping[str, bytes] | None, fragments: Any) -> Any:
    columns = [PATH_COLUMN if name == FILE_FIELD.name else name for name in schema.names]
    return dataset.scanner(columns=columns, filter=_condition(files), fragments=fragments)


def _condition(files: Mapping[str, bytes] | None) -> Any:
    return None if files is None else pc.field(PATH_COLUMN).isin(list(files))


def _with_file(batch: pa.RecordBatch, schema: pa.Schema, files: Mapping[str, bytes] | None) -> pa.RecordBatch:
    """The rows with the fingerprint of their file in place of the path."""
    if files is None or FILE_FIELD.name not in schema.names:
        return batch
    at = pc.index_in(batch.column(batch.num_columns - 1), value_set=pa.array(list(files), pa.string()))
    fingerprints = pa.array(list(files.values()), FILE_FIELD.type).take(at)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], fingerprints], names=schema.names)
