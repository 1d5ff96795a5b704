"""Frames of any library as the rows of a static table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError, SettingsError

MAX_BYTES = 1 << 28
"""The most bytes of the rows, as Arrow data."""


def table_rows(name: str, data: Any) -> pa.Table:
    """The rows of a static table, in types that arrive in Spark unchanged.

    Args:
        data: an Arrow table, a pandas, polars or Spark frame, a list of dicts, or an object with Arrow's stream
            interface.

    Raises:
        SettingsError: it is none of these, or it is too large.
        SchemaError: a column's type has no form in Spark.
    """
    rows = _as_arrow(name, data)
    if rows.nbytes > MAX_BYTES:
        raise SettingsError(
            f"table {name} has {rows.nbytes / 1e6:,.0f} MB, and at most {MAX_BYTES / 1e6:,.0f} MB go with a pipeline: "
            "write it to a directory or bucket, and declare the table with that URL and its format"
        )
    try:
        return rows.replace_schema_metadata(None).cast(safe_schema(rows.schema))
    except SchemaError as error:
        raise SchemaError(f"table {name}: {error}") from None
    except pa.ArrowInvalid as error:
        raise SchemaError(f"table {name}: {error}; cast the column before") from None


def _as_arrow(name: str, data: Any) -> pa.Table:
    if hasattr(data, "sparkSession"):
        from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame

        return table_of_frame(data, arrow_schema(data.schema))
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    try:
        if isinstance(data, list):
            return pa.Table.from_pylist(data)
        return data if isinstance(data, pa.Table) else pa.table(data)
    except (AttributeError, TypeError, ValueError, pa.ArrowException) as error:
        raise SettingsError(
            f"table {name}: {type(data).__name__} is no table ({error}); give an Arrow table, a pandas, polars or "
            "Spark frame, a list of dicts, or a URL with a format"
        ) from None
