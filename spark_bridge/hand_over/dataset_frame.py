"""Rows of a Lance dataset for a query, read by Spark's tasks, or by this process if they are few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.catalyst.arrow_frames import spark_schema
from spark_bridge.catalyst.leaves import LeafRows
from state.lance.lance_access import lance_options
from state.location import Location
from state.tables.stored_rows import FILE_FIELD, PATH_COLUMN

_IN_THE_DRIVER_ROWS = 20_000
TASKS_A_CORE = 4
# An epoch waits for a begun task, so a task must be short.
_TASK_ROWS = 200_000

Wanted = Mapping[str, pa.Array]
"""Column → its values, null among them, in the rows that are wanted; a column that the dataset lacks says nothing."""


@dataclass(frozen=True)
class WantedRows:
    """Which rows of a dataset are read; all of them by default.

    Args:
        files: path → fingerprint of each file whose rows are read; None for all files.
        values: of the rows that are read.
        fragments: the numbers of the fragments that have rows of these files; None if it is not known.
    """

    files: Mapping[str, bytes] | None = None
    values: Wanted = field(default_factory=dict)
    fragments: Collection[int] | None = None

    def condition(self, schema: pa.Schema) -> Any:
        """For a scan of a dataset with this schema; None for all rows."""
        conditions = [] if self.files is None else [pc.field(PATH_COLUMN).isin(list(self.files))]
        for name, values in self.values.items():
            if name in schema.names:
                condition = pc.field(name).isin(values.drop_null().cast(schema.field(name).type))
                conditions.append(condition | pc.field(name).is_null() if values.null_count else condition)
        return reduce(lambda one, other: one & other, conditions) if conditions else None


def frame_of_dataset(
    spark: SparkSession, location: Location, dataset: lance.LanceDataset, columns: Sequence[str]
) -> DataFrame:
    """All rows of a dataset, see `rows_of_dataset`."""
    return rows_of_dataset(spark, location, dataset, columns, WantedRows())[0].frame


def rows_of_dataset(
    spark: SparkSession, location: Location, dataset: lance.LanceDataset, columns: Sequence[str], wanted: WantedRows
) -> tuple[LeafRows, int]:
    """Rows of a dataset, and how many they are at most.  Tasks read them lazily; this process reads few at once.

    Args:
        spark: the session; its workers need `pylance`.
        location: of the dataset.
        dataset: at the version to read.
        columns: the columns to read, in this order; `__sw_file` may be the last if files are wanted.
        wanted: which rows.
    """
    fields = [FILE_FIELD if name == FILE_FIELD.name else dataset.schema.field(name) for name in columns]
    schema = pa.schema(fields)
    if wanted.fragments is not None and not wanted.fragments:
        return LeafRows.of_table(spark, schema.empty_table()), 0
    rows = int(dataset.count_rows())
    if rows <= _IN_THE_DRIVER_ROWS or wanted.condition(dataset.schema) is not None:
        few = _read(dataset, schema, wanted)
        if few.num_rows <= _IN_THE_DRIVER_ROWS:
            return LeafRows.of_table(spark, few.cast(schema)), few.num_rows
    every = [each.fragment_id for each in dataset.get_fragments()]
    fragments = every if wanted.fragments is None else sorted(wanted.fragments)
    at_once = max(rows // _TASK_ROWS, TASKS_A_CORE * int(spark.sparkContext.defaultParallelism))
    tasks = min(len(fragments), at_once)
    shares = [fragments[start::tasks] for start in range(tasks)]
    read = _reader(location, dataset.version, shares, schema, wanted)
    frame = spark.range(0, tasks, 1, numPartitions=tasks).mapInArrow(read, spark_schema(schema))
    return LeafRows.of_frame(frame), rows


def _reader(
    location: Location, version: int, shares: list[list[int]], schema: pa.Schema, wanted: WantedRows
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    uri, options = location.lance_uri, lance_options(location)

    def read(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance  # here and not before: the worker is a fork, and Lance does not survive a fork

        opened: Any = lance.dataset(uri, version=version, storage_options=options)
        for batch in tasks:
            for task in batch.column(0).to_pylist():
                fragments = [opened.get_fragment(each) for each in shares[task]]
                for read_batch in _scan(opened, schema, wanted, fragments=fragments).to_batches():
                    yield _with_file(read_batch, schema, wanted.files)

    return read


def _read(dataset: lance.LanceDataset, schema: pa.Schema, wanted: WantedRows) -> pa.Table:
    """One row more than this process reads tells that tasks must read them."""
    fragments = wanted.fragments and [dataset.get_fragment(each) for each in sorted(wanted.fragments)]
    scan = _scan(dataset, schema, wanted, limit=_IN_THE_DRIVER_ROWS + 1, fragments=fragments)
    batches = [_with_file(batch, schema, wanted.files) for batch in scan.to_batches()]
    return pa.Table.from_batches(batches, None if batches else schema)


def _scan(dataset: Any, schema: pa.Schema, wanted: WantedRows, **options: Any) -> Any:
    # Stored rows of a source name their file by its path, rows of a view by its fingerprint.
    columns = [PATH_COLUMN if wanted.files is not None and name == FILE_FIELD.name else name for name in schema.names]
    return dataset.scanner(columns=columns, filter=wanted.condition(dataset.schema), **options)


def _with_file(batch: pa.RecordBatch, schema: pa.Schema, files: Mapping[str, bytes] | None) -> pa.RecordBatch:
    """The rows with the fingerprint of their file in place of the path."""
    if files is None or FILE_FIELD.name not in schema.names:
        return batch
    at = pc.index_in(batch.column(batch.num_columns - 1), value_set=pa.array(list(files), pa.string()))
    fingerprints = pa.array(list(files.values()), FILE_FIELD.type).take(at)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], fingerprints], names=schema.names)
