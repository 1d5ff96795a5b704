"""Columns that the files of a format can have."""

from __future__ import annotations

import pyarrow as pa

from actors.formats.options import Csv, Text
from state.errors import SchemaError


def require_fitting(format: object, schema: pa.Schema) -> None:
    """Refuses a schema whose columns no file of the format could fill.

    Args:
        format: the options of the format; CSV and text have columns of certain types only.

    Raises:
        SchemaError: the message names the column.
    """
    if isinstance(format, Csv):
        for field in schema:
            if pa.types.is_nested(field.type):
                raise SchemaError(f"column {field.name}: CSV has no {field.type}; declare it as a string")
    if isinstance(format, Text) and schema.types[:1] != [pa.string()]:
        raise SchemaError('text has one column, a string; declare "value string" before columns of paths and metadata')
