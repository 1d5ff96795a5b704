"""The format of a store: a number in the metadata of the schema of `state.lance`, read when the store is opened.

| format | Slackwater | what is new |
|---|---|---|
| 1 | before 0.1.0 | |
| 2 | before 0.1.0 | the head names the run that took it, and the tags |
| 3 | before 0.1.0 | bad records and left out columns are kept; a half-read file has its bad rows and an anchor |
| 4 | before 0.1.0 | a view may have distinct values beside it, reflect an earlier epoch, or catch up |
| 5 | 0.1.0 | a source may have a queue of events |
| 6 | 0.1.0 | an epoch tells where its time went |

A format-1 store has no number.  A reader reads every format up to its own, and so does time travel: the versions from
before an upgrade keep their shape.  The upgrade itself is the take-over, see `LanceStateStore`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import lance
import pyarrow as pa
import pyarrow.compute as pc

from state.errors import RootMismatchError
from state.location import Location
from state.tables.tables import FORMAT_VERSION, STATE_SCHEMA, TABLES, row_column, row_type

_FORMAT, _WRITER = b"slackwater.format", b"slackwater.version"


def stamped_schema() -> pa.Schema:
    """The schema of a store of this format, with its number and with the version of Slackwater that writes it."""
    return STATE_SCHEMA.with_metadata({_FORMAT: str(FORMAT_VERSION), _WRITER: version("slackwater")})


def check_format(schema: pa.Schema, root: Location) -> int:
    """The format of the store with this schema.

    Raises:
        RootMismatchError: it is newer than this version of Slackwater.
    """
    metadata = schema.metadata or {}
    found = int(metadata.get(_FORMAT, b"1"))
    if found > FORMAT_VERSION:
        writer = metadata.get(_WRITER, b"a later version").decode()
        raise RootMismatchError(
            f"the store at {root} has format {found}, this version of Slackwater reads formats 1 to {FORMAT_VERSION}: "
            f"it was written by Slackwater {writer}, install that or a later one"
        )
    return found


def current_rows(table: str, rows: pa.Table) -> pa.Table:
    """Rows of one table of any format (columns vnode, epoch, op, key, row), in the shape of this one."""
    row = rows["row"].combine_chunks()
    if row.type.equals(row_type(table)):
        return rows
    return rows.set_column(rows.column_names.index("row"), "row", _current_struct(table, row))


def rows_of_fields(table: str, fields: Sequence[str], rows: pa.Table) -> pa.Table:
    """The same with some fields only: each is a column `row.<name>` if the format knows it, and null otherwise."""
    known = {
        name: rows[f"row.{name}"].combine_chunks()
        if f"row.{name}" in rows.column_names
        else pa.nulls(rows.num_rows, TABLES[table].field(name).type)
        for name in fields
    }
    row = pa.StructArray.from_arrays(list(known.values()), fields=list(row_type(table, fields)))
    return rows.select(["vnode", "epoch", "op", "key"]).append_column("row", row)


def upgraded(dataset: lance.LanceDataset) -> pa.RecordBatchReader:
    """The rows of a store of an older format in the shape of this one, without its head."""
    batches = dataset.scanner(filter="`table` != 'head'").to_batches()
    return pa.RecordBatchReader.from_batches(STATE_SCHEMA, _upgraded_batches(batches))


def _upgraded_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = {name: batch[name] for name in ("table", "vnode", "epoch", "op", "key")}
        for table in TABLES:
            column = row_column(table)
            if column in batch.schema.names:
                columns[column] = _current_struct(table, batch[column])
            else:
                columns[column] = pa.nulls(batch.num_rows, row_type(table))
        columns["catalog_row"] = _with_format(columns["catalog_row"])
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=STATE_SCHEMA)


def _current_struct(table: str, row: pa.StructArray) -> pa.StructArray:
    return _in_shape(row, row_type(table))


def _in_shape(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values with the fields of their structs as they are now, at every level; new ones are null."""
    if values.type.equals(wanted):
        return values
    if pa.types.is_list(wanted):
        items = _in_shape(values.values, wanted.value_type)
        return pa.ListArray.from_arrays(values.offsets, items, wanted, mask=values.is_null())
    known = {field.name for field in values.type}
    fields = [
        _in_shape(pc.struct_field(values, field.name), field.type)
        if field.name in known
        else pa.nulls(len(values), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=values.is_null())


def _with_format(rows: pa.StructArray) -> pa.StructArray:
    """The catalog rows, with this format in that of the pipeline: it is where a program of format 1 looks."""
    fields = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    definitions = fields["definition"].to_pylist()
    for at, kind in enumerate(fields["kind"].to_pylist()):
        if kind == "pipeline" and definitions[at] is not None:
            definitions[at] = json.dumps({**json.loads(definitions[at]), "format_version": FORMAT_VERSION})
    fields["definition"] = pa.array(definitions, pa.string())
    return pa.StructArray.from_arrays(list(fields.values()), fields=list(rows.type), mask=rows.is_null())
