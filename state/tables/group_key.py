r"""Group keys: the text that names one group of a view, in the column `__sw_key` and in a point look-up.

The store keeps the text, so its form never changes: values are joined with `|`, a null is `\N`, and `\` and
`|` inside a value are escaped with a backslash.  Two groups that Spark keeps apart never share a text: the values have
one canonical form per type, in which -0.0 is 0.0 and every NaN is the same, as in Spark's grouping.  The text of a
struct is that of a group of its fields, and the text of an array those of its elements, each with a `|` behind it; both
are escaped as a whole.

An unescaped `|` ends a value wherever it stands.  So the groups that share their first values are those whose texts
begin with the texts of these values and a `|`, which in the order of UTF-8 is one range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from state.errors import SchemaError

KEY_COLUMN = "__sw_key"
"""The column of every aggregate view that holds the text."""

NULL_TEXT = "\\N"
GLOBAL_KEY = ""
"""The key of the one row of a view that groups by nothing."""

_SEPARATOR = "|"
_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)

Column: TypeAlias = pa.Array | pa.ChunkedArray


def is_group_type(data_type: pa.DataType) -> bool:
    """True if values of this type can name a group: all types but maps, and what has one in it."""
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
    keys = pc.binary_join_element_wise(*[_texts(column) for column in columns], _SEPARATOR)
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
    return first + _SEPARATOR, first + chr(ord(_SEPARATOR) + 1)


def _texts(column: Column) -> Any:
    """The column as escaped text without nulls."""
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return _texts(column.cast(data_type.value_type))
    if not is_group_type(data_type):
        raise SchemaError(f"values of type {data_type} cannot name a group; group by their parts instead")
    if pa.types.is_nested(data_type):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        parts = _of_struct(whole) if pa.types.is_struct(data_type) else _of_list(whole)
        texts = pc.if_else(whole.is_valid(), _escaped(parts), pa.scalar(None, pa.string()))
    elif pa.types.is_floating(data_type):
        # Adding zero turns -0.0 into 0.0; every NaN prints as "nan".
        texts = pc.add(column, pa.scalar(0, data_type)).cast(pa.string())
    elif pa.types.is_timestamp(data_type):
        texts = column.cast(pa.timestamp("us", data_type.tz)).cast(pa.string())
    elif any(is_binary(data_type) for is_binary in _BINARY):
        texts = pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    elif any(is_text(data_type) for is_text in _TEXT):
        texts = _escaped(column.cast(pa.string()))
    else:
        texts = column.cast(pa.string())
    return pc.fill_null(texts, NULL_TEXT)


def _escaped(texts: Column) -> Any:
    return pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "|", "\\|")


def _of_struct(column: pa.StructArray) -> pa.Array:
    return group_keys([pc.struct_field(column, [at]) for at in range(column.type.num_fields)])


def _of_list(column: pa.ListArray) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    ended = pc.binary_join_element_wise(_texts(column.flatten()), "", _SEPARATOR)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, ended), "")
