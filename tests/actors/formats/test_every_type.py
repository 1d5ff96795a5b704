"""Every Arrow type becomes a safe one with the same values, or is refused by the name of its column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from actors.formats.parquet.parquet_reader import ParquetReader
from actors.schemas.conform import conform
from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError
from tests.actors.formats.generated_types import columns, said
from tests.actors.formats.written_files import bad_of, open_written, table_of, write_parquet

_WITHOUT_FORM = ("time32", "time64", "duration", "month_day_nano_interval")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(found=columns(most_columns=12, num_rows=4))
def test_safe_types_hold_the_values_of_all_others(found: dict[str, pa.Array], directory: Path) -> None:
    carried = {name: column for name, column in found.items() if has_form(name, column)}
    if carried:
        read(carried, directory)


def has_form(name: str, column: pa.Array) -> bool:
    """Whether a column can be carried; one that cannot is refused by its name."""
    try:
        safe_schema(pa.schema([(name, column.type)]))
    except SchemaError as error:
        assert f"column {name}" in str(error)
        assert any(kind in str(column.type) for kind in _WITHOUT_FORM), str(column.type)
        return False
    return True


def read(found: dict[str, pa.Array], directory: Path) -> pa.Table:
    """The columns through our reader, out of a Parquet file where Parquet can hold them: they are what they were."""
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
    # What Parquet itself changes says nothing about us.
    same: bool = said(found["c"].to_pylist()) == said(column.to_pylist())
    return same
