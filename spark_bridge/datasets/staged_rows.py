"""Rows that Spark's tasks write themselves, each its own part: the way of many rows into a dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
from lance import FragmentMetadata
from pyspark import cloudpickle
from pyspark.sql import DataFrame

from state.lance.lance_access import lance_options
from state.location import Location
from state.tables import lance_layout
from state.tables.lance_layout import for_lance

# Spark's workers need nothing of this project.
cloudpickle.register_pickle_by_value(lance_layout)


def staged_rows(frame: DataFrame, location: Location, version: int, schema: pa.Schema) -> list[FragmentMetadata]:
    """Runs a DataFrame, and writes its rows as fragments that no version names yet.

    What a task has written that failed, or was tried again, is never named; Lance's clean-up removes it.

    Args:
        frame: what is run; its order is that of the fragments.
        location: of the dataset, which exists.
        version: of the dataset, any that is kept.
        schema: the same columns as those of the frame; the types may differ in what Arrow calls them.
    """
    rows = frame.mapInArrow(_writer(location, version, schema), "fragment string").collect()
    return [FragmentMetadata.from_json(row.fragment) for row in rows]


def _writer(
    location: Location, version: int, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    uri, options = location.lance_uri, lance_options(location)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance  # in the worker, which was forked: Lance does not survive a fork
        from lance.fragment import write_fragments

        def written() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = for_lance(pa.Table.from_batches([batch]))
                yield from table.rename_columns(schema.names).cast(schema).to_batches()

        dataset = lance.dataset(uri, version=version, storage_options=options)
        reader = pa.RecordBatchReader.from_batches(schema, written())
        fragments = [json.dumps(each.to_json()) for each in write_fragments(reader, dataset, mode="append")]
        yield pa.RecordBatch.from_pydict({"fragment": pa.array(fragments, pa.string())})

    return write
