"""Writing of a query's rows into a dataset: by this process, or by Spark's tasks for a large result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance import FragmentMetadata
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from spark_bridge.datasets.dataset_writer import NewRows
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.engine.catalyst.arrow_frames import table_of_frame
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.leaves import Leaves
from spark_bridge.engine.execution.planned_once import PlannedOnce
from state.lance.lance_access import lance_options
from state.location import Location
from state.tables import fingerprint, lance_layout
from state.tables.lance_layout import for_lance, with_schema

_FRAGMENTS = pa.schema([("fragment", pa.string())])

# Spark's workers do not have this project installed.
for _module in (fingerprint, lance_layout):
    cloudpickle.register_pickle_by_value(_module)


def staged_rows(frame: DataFrame, location: Location, schema: pa.Schema) -> list[FragmentMetadata]:
    """Runs a DataFrame, and writes its rows as fragments that no version names yet.

    The files of a failed or repeated task are never named; Lance's clean-up removes them.

    Args:
        frame: the DataFrame; the fragments have its order.
        location: of the dataset, which exists.
        schema: the columns of the frame; only Arrow's names of the types may differ, and the frame may have
            `FILE_HALVES` in place of the file at the end.
    """
    rows = _written(frame, location, schema).collect()
    return [FragmentMetadata.from_json(row.fragment) for row in rows]


class StagedQuery:
    """A query whose rows tasks write as fragments that no version names yet, planned once for each dataset.

    Args:
        plan: analysed, with empty leaves.
        leaves: id of a leaf's first attribute → the name of the leaf.
        schema: as for `staged_rows`.
    """

    def __init__(self, catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str], schema: pa.Schema) -> None:
        self._catalyst, self._plan, self._leaves, self._schema = catalyst, plan, leaves, schema
        self._made: dict[tuple[object, ...], PlannedOnce] = {}

    def staged(self, rows: Leaves, location: Location, tasks: int) -> list[FragmentMetadata]:
        """Writes the result over an epoch's rows.

        Args:
            location: of the dataset, which exists.
            tasks: see `PlannedOnce.table`.
        """
        key = location.lance_uri, *sorted((lance_options(location) or {}).items())
        if key not in self._made:
            written = _written(self._catalyst.queries.frame(self._plan), location, self._schema)
            self._made = {key: PlannedOnce(self._catalyst, analysed(written), self._leaves)}
        fragments = self._made[key].table(rows, _FRAGMENTS, tasks).column(0).to_pylist()
        return [FragmentMetadata.from_json(each) for each in fragments]


def _written(frame: DataFrame, location: Location, schema: pa.Schema) -> DataFrame:
    """The fragments that tasks write, as JSON."""
    return frame.mapInArrow(_writer(location, schema), "fragment string")


def _writer(location: Location, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    uri, options = location.lance_uri, lance_options(location)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance  # here and not before: the worker is a fork, and Lance does not survive a fork
        from lance.fragment import write_fragments

        def written() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = _with_whole_files(pa.Table.from_batches([batch]), schema)
                yield from with_schema(for_lance(rows), schema).to_batches()

        # The latest version: beside epochs, a vacuum may delete the one at which the job began.
        dataset = lance.dataset(uri, storage_options=options)
        reader = pa.RecordBatchReader.from_batches(schema, written())
        fragments = [json.dumps(each.to_json()) for each in write_fragments(reader, dataset, mode="append")]
        yield pa.RecordBatch.from_pydict({"fragment": pa.array(fragments, pa.string())})

    return write


def _with_whole_files(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the fingerprint of their file in place of its halves, if they have these."""
    if rows.num_columns == len(schema):
        return rows
    file = fingerprint.of_halves(*(column.combine_chunks() for column in rows.columns[-2:]))
    return pa.table([*rows.columns[:-2], file], names=schema.names)


_STAGED_FROM_BYTES = 128 << 20
"""Size of the input from which tasks write: they are faster, and this process need not hold the whole result."""


@dataclass(frozen=True)
class Result:
    """The result of a query, not computed yet.

    Args:
        schema: the columns of the result; only Arrow's names of the types may differ.
        nbytes: size of the query's input, in bytes.
        frame: makes the DataFrame of the result; a dataset has its order.
        computed: computes it, with all rows in this process; None to run the DataFrame.
        staged: lets tasks write the rows for a dataset, see `staged_rows`; None to run the DataFrame.
    """

    schema: pa.Schema
    nbytes: int
    frame: Callable[[], DataFrame]
    computed: Callable[[], pa.Table] | None = None
    staged: Callable[[Location], list[FragmentMetadata]] | None = None

    @property
    def is_large(self) -> bool:
        """Whether tasks write the rows."""
        return self.nbytes >= _STAGED_FROM_BYTES

    def query(self, query: Callable[[DataFrame], DataFrame], names: Sequence[str]) -> Result:
        """Some columns of the result of a query over the rows, in this order, for tasks."""
        columns = [F.col(quoted_name(each)) for each in names]
        schema = pa.schema([self.schema.field(each) for each in names])
        return Result(schema, self.nbytes, lambda: query(self.frame()).select(*columns))

    def table(self) -> pa.Table:
        """All rows, in this process."""
        return table_of_frame(self.frame(), self.schema) if self.computed is None else self.computed()


def create_of_result(location: Location, result: Result) -> ViewTable:
    """Creates a dataset with the rows of a result.

    Raises:
        CommitRefusedError: the dataset exists already.
    """
    if not result.is_large:
        return ViewTable.create(location, result.table())
    table = ViewTable.create(location, result.schema.empty_table())
    append_result(table, result)
    return table


def append_result(table: ViewTable, result: Result) -> None:
    """Appends the rows of a result; no rows make no new version.

    Raises:
        CommitRefusedError: another process has written to the dataset.
    """
    table.append(new_rows(table, result))


def replace_by_result(table: ViewTable, result: Result) -> None:
    """Replaces all rows by those of a result.  Errors as for `append_result`."""
    table.replace(new_rows(table, result))


def new_rows(table: ViewTable, result: Result) -> NewRows:
    """The rows of a result for a dataset; the tasks have written them already if they are many."""
    if not result.is_large:
        return result.table()
    if result.staged is not None:
        return result.staged(table.location)
    return staged_rows(result.frame(), table.location, result.schema)
