"""Columns of any Arrow type through the Parquet reader and the safe types, compared with the originals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.formats.parquet.parquet_reader import ParquetReader
from actors.schemas.conform import conform
from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError
from tests.actors.formats.generated_types import said
from tests.actors.formats.written_files import bad_of, open_written, table_of, write_parquet

_WITHOUT_FORM = ("time32", "time64", "duration", "month_day_nano_interval")


def has_form(name: str, column: pa.Array) -> bool:
    """True for a column with a safe type; any other column is refused by its name."""
    try:
        safe_schema(pa.schema([(name, column.type)]))
    except SchemaError as error:
        assert f"column {name}" in str(error)
        assert any(kind in str(column.type) for kind in _WITHOUT_FORM), str(column.type)
        return False
    return True


def read(found: dict[str, pa.Array], directory: Path) -> pa.Table:
    """Reads the columns back, from a Parquet file where Parquet can hold them, and compares their values."""
    written = {name: column for name, column in found.items() if _fits_parquet(column)}
    others = {name: column for name, column in found.items() if name not in written}
    parts = {}
    if written:
        file = open_written(directory, write_parquet(pa.table(written), row_group_size=3))
        schema = safe_schema(ParquetReader().infer_schema(file))
        pieces = list(ParquetReader().read(file, schema))
        assert bad_of(pieces) == []
        parts = dict(zip(schema.names, table_of(pieces).columns, strict=True))
    if others:
        table = pa.table(others)
        conformed = conform(table, safe_schema(table.schema))
        parts |= dict(zip(conformed.column_names, conformed.columns, strict=True))
    rows = pa.table({name: parts[name] for name in found})
    assert rows.schema == safe_schema(pa.schema([(name, column.type) for name, column in found.items()]))
    rows.validate(full=True)
    for name, column in found.items():
        assert said(rows[name].to_pylist()) == said(column.to_pylist()), f"{column.type} as {rows[name].type}"
    return rows


def _fits_parquet(column: pa.Array) -> bool:
    try:
        found = pq.read_table(pa.BufferReader(write_parquet(pa.table({"c": column}), row_group_size=3)))
    except (pa.ArrowException, OSError):
        return False
    # A change of values by Parquet itself is not the reader's fault.
    same: bool = said(found["c"].to_pylist()) == said(column.to_pylist())
    return same
