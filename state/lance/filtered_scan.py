"""Scans with a condition of pyarrow over datasets with columns whose types Lance cannot describe to its own filter."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import ScannerBuilder
from pyarrow.substrait import serialize_expressions

_METHODS = {"fragments": "with_fragments"}
"""Option of a scan → the method of `ScannerBuilder`, where the names differ."""


def filtered_scan(
    dataset: lance.LanceDataset, condition: pc.Expression | str | None, columns: list[str] | None = None, **options: Any
) -> lance.dataset.LanceScanner:
    """`dataset.scanner` with a condition on some columns, and any types of the other columns.

    Lance describes the whole schema to the filter, and fails for a map with a struct below and for a duration, also in
    columns that the condition does not use.

    Args:
        dataset: at the version to read.
        condition: an expression, a condition in Lance's SQL, or None for all rows.
        columns: the columns to read; None for all.
        options: further options of `dataset.scanner`, as `limit`; None leaves one out.

    Raises:
        OSError, ValueError, RuntimeError: as Lance.
    """
    given = {name: value for name, value in options.items() if value is not None}
    described = pa.schema([_described(number, field) for number, field in enumerate(dataset.schema)])
    if not isinstance(condition, pc.Expression) or described == dataset.schema:
        return dataset.scanner(columns=columns, filter=condition, **given)
    builder = ScannerBuilder(dataset).columns(columns)
    for name, value in given.items():
        getattr(builder, _METHODS.get(name, name))(value)
    builder._substrait_filter = bytes(serialize_expressions([condition], ["condition"], described))
    return builder.to_scanner()


def _described(number: int, field: pa.Field) -> pa.Field:
    """A field that keeps its position: a filter names columns by their positions."""
    return pa.field(f"__undescribed_{number}", pa.int8()) if _is_undescribed(field.type) else field


def _is_undescribed(data_type: pa.DataType, below_map: bool = False) -> bool:
    if pa.types.is_duration(data_type) or isinstance(data_type, pa.BaseExtensionType):
        return True
    if pa.types.is_fixed_size_list(data_type) or (pa.types.is_struct(data_type) and below_map):
        return True
    if pa.types.is_map(data_type):
        return any(_is_undescribed(each, below_map=True) for each in (data_type.key_type, data_type.item_type))
    fields = range(data_type.num_fields) if pa.types.is_nested(data_type) else ()
    return any(_is_undescribed(data_type.field(at).type, below_map) for at in fields)
