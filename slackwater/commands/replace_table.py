"""Replacement of a static table by a file, from another process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.formats.options import Csv
from actors.formats.registry import reader_for
from actors.objects.object_store import ObjectStore
from slackwater.tables.static_table import StaticTable, table_location
from slackwater.tables.table_rows import table_rows
from state.errors import NotFoundError, UsageError
from state.location import Location


def replace_table(root: Location, name: str, file: Path) -> int:
    """Replaces the rows of a static table by the rows of a file.  A run reads them at its next listing, or when asked.

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
            return _read_csv(file, schema)
        if file.suffix in (".json", ".jsonl"):
            return pa.json.read_json(file, parse_options=pa.json.ParseOptions(explicit_schema=schema))
    except (OSError, pa.ArrowException, NotFoundError, UnreadableFile) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'reason', error)}") from None
    raise UsageError(f"{file}: the name of the file must end with .parquet, .csv, .json or .jsonl")


def _read_csv(file: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a CSV file, as a source reads them; a column that the table lacks has no values."""
    store = ObjectStore(Location(str(file.parent.resolve())))
    found = store.find(file.stem, file.name)
    if found is None:
        raise UnreadableFile("it does not exist")
    parts = [schema.empty_table()]
    missing: tuple[str, ...] = ()
    others: tuple[pa.Field, ...] = ()
    for rows in reader_for(Csv()).read(store.open(found), schema):
        if rows.bad:
            raise UnreadableFile(f"row {rows.bad[0].row + 1}: {rows.bad[0].reason}")
        parts.append(rows.table)
        missing, others = rows.missing, rows.others
    table = pa.concat_tables(parts).drop_columns(list(missing))
    for column in others:
        table = table.append_column(column.name, pa.nulls(len(table)))
    return table
