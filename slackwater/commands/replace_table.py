"""Replacement of a static table by a file, from another process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from slackwater.tables.static_table import StaticTable, table_location
from slackwater.tables.table_rows import table_rows
from state.errors import UsageError
from state.location import Location


def replace_table(root: Location, name: str, file: Path) -> int:
    """Makes the rows of a file those of a static table.  A run reads them at its next listing, or when asked.

    Args:
        root: the root of a pipeline.
        file: with the columns of the table, in a file called `.parquet`, `.csv`, `.json` or `.jsonl`.

    Returns:
        The number of rows.

    Raises:
        UsageError: the file cannot be read, or does not fit the table.
        NotFoundError: the root has no such table.
        StorageError: the root cannot be read or written.
    """
    table = StaticTable(table_location(root, name), name)
    rows = table_rows(name, _read(file, table.schema()))
    table.replace(rows)
    return int(rows.num_rows)


def _read(file: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a file; text is read in the types of the table."""
    try:
        if file.suffix == ".parquet":
            return pq.read_table(file)
        if file.suffix == ".csv":
            # Inferred types would change values: 007 would be 7.
            types = pa.csv.ConvertOptions(
                column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            return pa.csv.read_csv(file, convert_options=types)
        if file.suffix in (".json", ".jsonl"):
            return pa.json.read_json(file, parse_options=pa.json.ParseOptions(explicit_schema=schema))
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    raise UsageError(f"{file}: the name of the file must end with .parquet, .csv, .json or .jsonl")
