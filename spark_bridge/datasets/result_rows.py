"""How the rows of a result come into a dataset: through this process, or written by the tasks that compute them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.catalyst.arrow_frames import table_of_frame
from spark_bridge.datasets.staged_rows import staged_rows
from spark_bridge.datasets.view_table import ViewTable
from state.location import Location

_STAGED_FROM_BYTES = 128 << 20
"""Of input.  From there on tasks that write are faster than this process, which would also hold all of the result."""


def create_of_result(location: Location, frame: DataFrame, schema: pa.Schema, nbytes: int) -> ViewTable:
    """Makes a dataset of the rows of a DataFrame.

    Args:
        location: of the dataset.
        frame: what is run.
        schema: the same columns; the types may differ in what Arrow calls them.
        nbytes: the size of what the frame reads.

    Raises:
        CommitRefusedError: there is a dataset already.
    """
    if nbytes < _STAGED_FROM_BYTES:
        return ViewTable.create(location, table_of_frame(frame, schema))
    table = ViewTable.create(location, schema.empty_table())
    append_result(table, frame, schema, nbytes)
    return table


def append_result(table: ViewTable, frame: DataFrame, schema: pa.Schema, nbytes: int) -> None:
    """Adds the rows of a DataFrame; without any there is no new version.

    Raises:
        CommitRefusedError: somebody else has written.
    """
    if nbytes >= _STAGED_FROM_BYTES:
        if fragments := staged_rows(frame, table.location, table.version, schema):
            table.append_fragments(fragments)
    elif (rows := table_of_frame(frame, schema)).num_rows:
        table.append(rows)


def replace_by_result(table: ViewTable, frame: DataFrame, schema: pa.Schema, nbytes: int) -> None:
    """Puts the rows of a DataFrame in place of all that there are; arguments and errors as for `append_result`."""
    if nbytes >= _STAGED_FROM_BYTES:
        table.replace_by_fragments(staged_rows(frame, table.location, table.version, schema))
    else:
        table.replace(table_of_frame(frame, schema))
