"""Group keys: the text that names one group of a view, in the column `__sw_key` and in a point look-up.

Two rows have one group key exactly when they are equal in SQL, see `state.equality`; `state.equality.value_texts`
defines the text.  The store keeps the text, so its form never changes.

Every unescaped `|` ends a value.  So the texts of all groups that share their first values begin with the texts of
these values and a `|`.  In the order of UTF-8 these groups are one range.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from state.equality.value_texts import SEPARATOR, Column, Equality, joined_texts
from state.errors import SchemaError

KEY_COLUMN = "__sw_key"
"""The column of every aggregate view that holds the text."""

GLOBAL_KEY = ""
"""The key of the one row of a view that groups by nothing."""


def is_group_type(data_type: pa.DataType) -> bool:
    """True if values of this type can name a group: all types except maps and types that contain a map."""
    if pa.types.is_struct(data_type):
        return data_type.num_fields > 0 and all(is_group_type(field.type) for field in data_type)
    if pa.types.is_list(data_type):
        return is_group_type(data_type.value_type)
    return not (pa.types.is_nested(data_type) or pa.types.is_null(data_type))


def group_keys(columns: Sequence[Column]) -> pa.Array:
    """One non-null text per row; two texts are equal exactly when Spark groups their rows together.

    Args:
        columns: the grouping columns in their order, all of one length.  No column means one group.

    Raises:
        SchemaError: a column is of a type that cannot name a group.
    """
    if not columns:
        return pa.array([GLOBAL_KEY], pa.string())
    for column in columns:
        if not is_group_type(_plain(column.type)):
            raise SchemaError(f"values of type {column.type} cannot name a group; group by their parts instead")
    keys = joined_texts(columns, Equality.SQL)
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def keys_of_rows(columns: Sequence[Column], count: int) -> pa.Array:
    """As `group_keys`, for a number of rows, which are one group without columns."""
    return group_keys(columns) if columns and count else pa.array([GLOBAL_KEY] * count, pa.string())


def key_range(columns: Sequence[Column]) -> tuple[str, str]:
    """The range of the texts of all groups with these first values: from the first text, up to but without the second.

    Args:
        columns: one value for each of the first grouping columns: at least one column, and not all of them.

    Raises:
        SchemaError: a column is of a type that cannot name a group.
    """
    first = group_keys(columns)[0].as_py()
    return first + SEPARATOR, first + chr(ord(SEPARATOR) + 1)


def _plain(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type
