"""Rows of a Lance dataset for a query, read by Spark's tasks, or by this process if they are few."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any
from weakref import WeakKeyDictionary

import lance
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from actors.formats.limits import row_bytes
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, spark_schema
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import attribute_id
from spark_bridge.engine.execution.leaves import FEW_BYTES, LeafRows
from spark_bridge.engine.execution.planned_once import PlannedOnce
from spark_bridge.engine.execution.task_rows import rows_of_table
from spark_bridge.ingest.epoch_rows import TASKS_A_CORE
from spark_bridge.ingest.history import FragmentRows, StoredSpan
from state.lance import filtered_scan as filtered_scan_module
from state.lance.filtered_scan import filtered_scan
from state.lance.lance_access import lance_options
from state.location import Location
from state.tables import fingerprint
from state.tables.fingerprint import halves, path_fingerprint
from state.tables.stored_rows import FILE_FIELD, FILE_HALVES, PATH_COLUMN, ROW_COLUMN

# Spark's workers do not have this project installed.
for _module in (fingerprint, filtered_scan_module, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(_module)

AT_ONCE_BYTES = 32 << 20
"""This process reads rows up to this size in less time than Spark's tasks need to begin."""
# An epoch waits for a begun task, so a task must be short.
_TASK_ROWS = 200_000
# Below this size a further task costs more than it saves.
_SPAN_TASK_BYTES = 4 << 20

# Arrow needs twice the time to serialize an expression for each further condition: 20 s for 18 of them.
_MOST_CONDITIONS = 6

_SHARES = "shares"
_TASKS = pa.schema([("task", pa.binary())])
_scans: WeakKeyDictionary[Any, dict[pa.Schema, PlannedOnce]] = WeakKeyDictionary()

Wanted = Mapping[str, pa.Array]
"""Column → its values, null among them, in the rows that are wanted; a column that the dataset lacks says nothing."""


@dataclass(frozen=True)
class WantedRows:
    """Which rows of a dataset are read; all of them by default.

    The condition on `values` accepts every row with values that are equal in SQL, see `state.equality`, and more rows:
    it has only the columns with the fewest values.  Lance compares zeros by value, and NaNs by their bits.

    Args:
        source: the source of which they are; None for the rows of a view.
        files: paths of the files whose rows are read; None for all files.
        values: of the rows that are read.
        fragments: the numbers of the fragments that have rows of these files; None if it is not known.
        also: a further condition; None without one.
        positions: fragment → the positions of exactly these rows, among those that are not deleted; few, and None if
            they are not known.
    """

    source: str | None = None
    files: Collection[str] | None = None
    values: Wanted = field(default_factory=dict)
    fragments: Collection[int] | None = None
    also: pc.Expression | None = None
    positions: Mapping[int, Sequence[int]] | None = None

    def condition(self, schema: pa.Schema) -> Any:
        """For a scan of a dataset with this schema; None for all rows."""
        conditions = [] if self.files is None else [pc.field(PATH_COLUMN).isin(list(self.files))]
        known = {name: each for name, each in self.values.items() if name in schema.names and not _has_nan(each)}
        for name in sorted(known, key=lambda each: len(known[each]))[:_MOST_CONDITIONS]:
            values = known[name]
            condition = pc.field(name).isin(values.drop_null().cast(schema.field(name).type))
            conditions.append(condition | pc.field(name).is_null() if values.null_count else condition)
        conditions += [] if self.also is None else [self.also]
        return reduce(lambda one, other: one & other, conditions) if conditions else None


def _has_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def frame_of_dataset(
    spark: SparkSession, location: Location, dataset: lance.LanceDataset, columns: Sequence[str]
) -> DataFrame:
    """All rows of a dataset, see `rows_of_dataset`."""
    return rows_of_dataset(spark, location, dataset, columns, WantedRows())[0].frame


def columns_there(dataset: lance.LanceDataset, used: Sequence[str]) -> list[str]:
    """The columns of stored rows among those that are used, one at least; `__sw_file` stands for their path.

    A dataset gets a column with the first rows that have it; a column that it lacks is null.
    """
    return [name for name in used if name in (*dataset.schema.names, FILE_FIELD.name)] or [ROW_COLUMN]


def rows_of_dataset(
    spark: SparkSession, location: Location, dataset: lance.LanceDataset, columns: Sequence[str], wanted: WantedRows
) -> tuple[LeafRows, int]:
    """Rows of a dataset, and their largest number.  Tasks read them lazily; this process reads up to `AT_ONCE_BYTES`.

    Args:
        spark: the session; its workers need `pylance`.
        dataset: at the version to read.
        columns: the columns to read, in this order; `__sw_file` may be the last.
    """
    schema = _schema(dataset, columns)
    if wanted.fragments is not None and not wanted.fragments:
        return LeafRows.of_table(spark, schema.empty_table()), 0
    rows = int(dataset.count_rows())
    if rows * row_bytes(schema) <= AT_ONCE_BYTES or wanted.condition(dataset.schema) is not None:
        few = _read(dataset, schema, wanted)
        if few is not None:
            return LeafRows.of_table(spark, few.cast(schema)), few.num_rows
    every = [each.fragment_id for each in dataset.get_fragments()]
    fragments = every if wanted.fragments is None else sorted(wanted.fragments)
    at_once = max(rows // _TASK_ROWS, TASKS_A_CORE * int(spark.sparkContext.defaultParallelism))
    tasks = min(len(fragments), at_once)
    shares = [_Scan(fragments[start::tasks]) for start in range(tasks)]
    return _rows_of_shares(spark, location, dataset.version, shares, schema, wanted), rows


def rows_of_span(spark: SparkSession, span: StoredSpan, parallelism: int) -> LeafRows:
    """Consecutive stored rows, in their order: each core gets one task, since many tasks repeat groups.

    Args:
        spark: the session; its workers need `pylance`.
        span: the rows.  This process reads few at once.
        parallelism: number of tasks that the session runs at once.
    """
    schema, wanted = _schema(span.dataset, span.columns), WantedRows(span.source)
    if span.nbytes <= FEW_BYTES and (few := _few_of_span(span, schema, wanted)) is not None:
        return LeafRows.of_table(spark, few)
    tasks = max(1, min(span.nbytes // _SPAN_TASK_BYTES, parallelism))
    shares = [_Scan.of(parts) for parts in _shares(span.parts, tasks)]
    rows = partial(_rows_of_shares, spark, span.location, span.dataset.version, shares)
    halved = None
    if _names_path(schema, wanted):
        of_halves = pa.schema([*list(schema)[:-1], *FILE_HALVES])
        halved = rows(of_halves, wanted)
    return rows(schema, wanted).with_halved(halved)


def _shares(parts: Sequence[FragmentRows], tasks: int) -> list[list[FragmentRows]]:
    """The rows in as many equal shares, or fewer, in their order."""
    size = -(-sum(each.rows for each in parts) // tasks)
    shares: list[list[FragmentRows]] = [[]]
    left = size
    for number, first, rows in parts:
        end = first + rows
        while first < end:
            if not left:
                shares.append([])
                left = size
            taken = min(left, end - first)
            shares[-1].append(FragmentRows(number, first, taken))
            first, left = first + taken, left - taken
    return shares


def _few_of_span(span: StoredSpan, schema: pa.Schema, wanted: WantedRows) -> pa.Table | None:
    """The rows; None if they are larger than `FEW_BYTES`."""
    few = _up_to(FEW_BYTES, _scan(span.dataset, schema, wanted, _Scan.of(span.parts)), schema)
    return None if few is None else few.cast(schema)


def _schema(dataset: lance.LanceDataset, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([FILE_FIELD if name == FILE_FIELD.name else dataset.schema.field(name) for name in columns])


@dataclass(frozen=True)
class _Scan:
    """Rows that are read at once.

    Args:
        fragments: their numbers; None for all of the dataset.
        first: the number of rows that are left out before them.
        rows: the number of rows; None for all.
    """

    fragments: Collection[int] | None
    first: int | None = None
    rows: int | None = None

    @classmethod
    def of(cls, parts: Sequence[FragmentRows]) -> _Scan:
        """Consecutive rows: only the first fragment can begin before them, and only the last one end behind them."""
        return cls([each.number for each in parts], parts[0].first, sum(each.rows for each in parts))


def _rows_of_shares(
    spark: SparkSession,
    location: Location,
    version: int,
    shares: Sequence[_Scan],
    schema: pa.Schema,
    wanted: WantedRows,
) -> LeafRows:
    """Rows that one task reads for each share."""
    scans = _scans.setdefault(spark.sparkContext, {})
    if schema not in scans:
        catalyst = Catalyst(spark)
        frame = frame_of_table(spark, _TASKS.empty_table()).mapInArrow(_read_shares, spark_schema(schema))
        plan = analysed(frame)
        [leaf] = catalyst.trees.leaves(plan)
        scans[schema] = PlannedOnce(catalyst, plan, {attribute_id(leaf.output().apply(0)): _SHARES})
    tasks = [_task(location, version, each, schema, wanted) for each in shares]
    table = pa.table([pa.array(tasks, pa.binary())], schema=_TASKS)
    given = LeafRows(None, lambda: frame_of_table(spark, table), parts=lambda: [rows_of_table(spark, table, 1)])
    return scans[schema].rows({_SHARES: given}, tasks=len(shares) + 1)


def _task(location: Location, version: int, share: _Scan, schema: pa.Schema, wanted: WantedRows) -> bytes:
    """A share for `_read_shares`, without classes of this project: workers have them by value only."""
    return pickle.dumps((location.lance_uri, version, lance_options(location), schema, vars(wanted), vars(share)))


def _read_shares(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads shares of datasets, in a worker of Spark."""
    import lance  # here and not before: the worker is a fork, and Lance does not survive a fork

    for batch in tasks:
        for task in batch.column(0).to_pylist():
            uri, version, options, schema, wanted, share = pickle.loads(task)
            opened: Any = lance.dataset(uri, version=version, storage_options=options)
            yield from _scan(opened, schema, WantedRows(**wanted), _Scan(**share))


def _read(dataset: lance.LanceDataset, schema: pa.Schema, wanted: WantedRows) -> pa.Table | None:
    """The rows; None if they are larger than `AT_ONCE_BYTES`."""
    if wanted.positions is not None:
        return _up_to(AT_ONCE_BYTES, _taken(dataset, schema, wanted, wanted.positions), schema)
    fragments = wanted.fragments and sorted(wanted.fragments)
    return _up_to(AT_ONCE_BYTES, _scan(dataset, schema, wanted, _Scan(fragments)), schema)


def _up_to(most_bytes: int, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table | None:
    """The batches as a table; None if they are larger."""
    read, nbytes = list[pa.RecordBatch](), 0
    for batch in batches:
        read.append(batch)
        nbytes += batch.nbytes
        if nbytes > most_bytes:
            return None
    return pa.Table.from_batches(read, None if read else schema)


def _taken(
    dataset: lance.LanceDataset, schema: pa.Schema, wanted: WantedRows, positions: Mapping[int, Sequence[int]]
) -> Iterator[pa.RecordBatch]:
    """The rows at some positions, without a scan."""
    for number, of_fragment in positions.items():
        fragment = dataset.get_fragment(number)
        assert fragment is not None, "the positions are those of this version"
        rows = fragment.take(of_fragment, columns=_read_names(schema, wanted))
        yield from _with_files(rows.to_batches(), schema, wanted)


def _scan(dataset: Any, schema: pa.Schema, wanted: WantedRows, scan: _Scan) -> Iterator[pa.RecordBatch]:
    scanner = filtered_scan(
        dataset,
        wanted.condition(dataset.schema),
        _read_names(schema, wanted),
        fragments=scan.fragments and [dataset.get_fragment(each) for each in scan.fragments],
        offset=scan.first,
        limit=scan.rows,
    )
    return _with_files(scanner.to_batches(), schema, wanted)


def _names_path(schema: pa.Schema, wanted: WantedRows) -> bool:
    """Whether rows name their file by its path: stored rows of a source; those of a view have its fingerprint."""
    return wanted.source is not None and schema.names[-1:] in ([FILE_FIELD.name], FILE_HALVES.names[-1:])


def _read_names(schema: pa.Schema, wanted: WantedRows) -> list[str]:
    if not _names_path(schema, wanted):
        return list(schema.names)
    of_file = {FILE_FIELD.name, *FILE_HALVES.names}
    return [*(name for name in schema.names if name not in of_file), PATH_COLUMN]


def _with_files(batches: Iterable[pa.RecordBatch], schema: pa.Schema, wanted: WantedRows) -> Iterator[pa.RecordBatch]:
    """The rows with the fingerprint of their file in place of its path."""
    for batch in batches:
        if wanted.source is None or not _names_path(schema, wanted):
            yield batch
            continue
        paths = batch.column(batch.num_columns - 1).dictionary_encode()
        texts = paths.dictionary.to_pylist()
        files = [path_fingerprint(wanted.source, each) for each in texts]
        is_halved = schema.names[-1] != FILE_FIELD.name
        columns = halves(files) if is_halved else [pa.array(files, FILE_FIELD.type)]
        taken = [each.take(paths.indices) for each in columns]
        yield pa.RecordBatch.from_arrays([*batch.columns[:-1], *taken], names=schema.names)
