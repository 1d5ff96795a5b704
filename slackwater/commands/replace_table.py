"""Replacement of a static table by a file, from another process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.options import Avro, Csv, Json, Orc, Parquet
from actors.formats.registry import Format, reader_for
from actors.objects.object_store import ObjectStore
from slackwater.tables.static_table import StaticTable, table_location
from slackwater.tables.table_rows import table_rows
from state.errors import SlackwaterError, UsageError
from state.location import Location

_FORMATS: Mapping[str, Format] = {
    ".parquet": Parquet(),
    ".csv": Csv(),
    ".json": Json(),
    ".jsonl": Json(),
    ".avro": Avro(),
    ".orc": Orc(),
}


def replace_table(root: Location, name: str, file: Path) -> int:
    """Replaces the rows of a static table by the rows of a file.  A run reads them at its next listing, or when asked.

    Args:
        root: the root of a pipeline.
        file: a file with the columns of the table; its suffix names its format.

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
    """The rows of a file, as a source reads them; a column that the table lacks has no values."""
    format = _FORMATS.get(file.suffix)
    if format is None:
        raise UsageError(f"{file}: the name of the file must end with one of {', '.join(_FORMATS)}")
    try:
        return _rows(file, format, schema)
    except (SlackwaterError, OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'reason', error)}") from None


def _rows(file: Path, format: Format, schema: pa.Schema) -> pa.Table:
    store = ObjectStore(Location(str(file.parent.resolve())))
    found = store.find(file.stem, file.name)
    if found is None:
        raise UnreadableFile("it does not exist")
    parts = [schema.empty_table()]
    missing: tuple[str, ...] = ()
    others: tuple[pa.Field, ...] = ()
    for rows in reader_for(format).read(store.open(found), schema):
        if rows.bad:
            raise UnreadableFile(f"row {rows.bad[0].row + 1}: {rows.bad[0].reason}")
        parts.append(rows.table)
        # A record of JSON may leave out a field without a value.
        missing, others = () if isinstance(format, Json) else rows.missing, rows.others
    table = pa.concat_tables(parts).drop_columns(list(missing))
    for column in others:
        table = table.append_column(column.name, pa.nulls(len(table)))
    return table
