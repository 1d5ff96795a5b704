r"""Values as texts that are equal exactly when the values are, by either relation.

    null                \N; the characters \ and | of a value are escaped by a backslash
    float               the shortest decimal number; nan for every NaN; SQL equality has no -0
    timestamp           2013-01-02 03:04:05.000006, with a Z if it is a moment in time
    date                2013-01-02
    binary              its bytes as hexadecimal numbers
    struct              the texts of its fields, joined by |, escaped as a whole
    array               the texts of its elements, each followed by |, escaped as a whole
    map                 an array of its entries

A time outside of the years 1 to 9999 is `@` and its number: Arrow formats years as 16-bit numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NULL_TEXT = "\\N"
SEPARATOR = "|"

Column: TypeAlias = pa.Array | pa.ChunkedArray

_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_LISTS = (pa.types.is_large_list, pa.types.is_fixed_size_list)
# Of the years 1 to 9999: the first number, and the first one after them.
_DAYS = (-719_162, 2_932_897)
_MICROSECONDS = tuple(each * 86_400_000_000 for each in _DAYS)
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)


class Equality(Enum):
    """A relation between values, see `state.equality`."""

    SQL = "sql"
    IDENTITY = "identity"


def value_texts(column: Column, equality: Equality) -> Any:
    """One text for each value of a column of any type, a null too, as an array or a chunked array."""
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return value_texts(column.cast(data_type.value_type), equality)
    if any(is_list(data_type) for is_list in _LISTS):
        return value_texts(column.cast(pa.list_(data_type.value_type)), equality)
    if pa.types.is_map(data_type):
        return value_texts(_entries(column), equality)
    if pa.types.is_null(data_type):
        texts: Any = pa.nulls(len(column), pa.string())
    elif pa.types.is_nested(data_type):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        parts = _of_struct(whole, equality) if pa.types.is_struct(data_type) else _of_list(whole, equality)
        texts = pc.if_else(whole.is_valid(), escaped(parts), pa.scalar(None, pa.string()))
    elif pa.types.is_floating(data_type):
        # Adding zero turns -0.0 into 0.0; every NaN prints as "nan".
        number = pc.add(column, pa.scalar(0, data_type)) if equality is Equality.SQL else column
        texts = number.cast(pa.string())
    elif pa.types.is_timestamp(data_type):
        # The text of a time without a zone takes Arrow a tenth of the time that it needs with one.
        times = column.cast(pa.timestamp("us"))
        texts = _of_times(times, times.cast(pa.int64()), _MICROSECONDS)
        if data_type.tz:
            texts = pc.binary_join_element_wise(texts, "Z", "")
    elif pa.types.is_date(data_type):
        days = column.cast(pa.date32())
        texts = _of_times(days, days.cast(pa.int32()), _DAYS)
    elif any(is_binary(data_type) for is_binary in _BINARY):
        texts = _of_binary(column.cast(pa.large_binary()))
    elif any(is_text(data_type) for is_text in _TEXT):
        texts = escaped(column.cast(pa.string()))
    else:
        texts = column.cast(pa.string())
    return pc.fill_null(texts, NULL_TEXT)


def joined_texts(columns: Sequence[Column], equality: Equality) -> Any:
    """One text for each row of at least one column."""
    return pc.binary_join_element_wise(*[value_texts(column, equality) for column in columns], SEPARATOR)


def element_texts(column: pa.ListArray, equality: Equality) -> pa.ListArray:
    """The texts of the elements of each array; a null array becomes an empty one."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), value_texts(column.flatten(), equality))


def has_far_times(column: Column) -> bool:
    """True if a column has a time outside of the years 1 to 9999, which Python cannot hold."""
    if pa.types.is_timestamp(column.type):
        return not _are_usual(column.cast(pa.timestamp("us")).cast(pa.int64()), _MICROSECONDS)
    return pa.types.is_date(column.type) and not _are_usual(column.cast(pa.date32()).cast(pa.int32()), _DAYS)


def escaped(texts: Column) -> Any:
    """Texts in which no `|` ends a value."""
    return pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), SEPARATOR, "\\|")


def _of_struct(column: pa.StructArray, equality: Equality) -> Any:
    fields = [pc.struct_field(column, [at]) for at in range(column.type.num_fields)]
    return joined_texts(fields, equality) if fields else pa.repeat("", len(column))


def _of_list(column: pa.ListArray, equality: Equality) -> pa.Array:
    elements = element_texts(column, equality)
    ended = pc.binary_join_element_wise(elements.values, "", SEPARATOR)
    return pc.binary_join(pa.ListArray.from_arrays(elements.offsets, ended), "")


def _entries(column: Column) -> pa.ListArray:
    """Maps as arrays of their entries; Arrow's cast refuses a null struct with a field without nulls."""
    maps = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items], names=["key", "value"])
    offsets = pc.add(maps.offsets, 0)  # a copy: Arrow refuses a mask with the offsets of a slice
    return pa.ListArray.from_arrays(offsets, pairs, mask=pc.is_null(maps) if maps.null_count else None)


def _of_times(times: Column, numbers: Column, years: tuple[int, ...]) -> Any:
    """The texts of times, which Arrow formats in most years; `numbers` are the same times."""
    if _are_usual(numbers, years):
        return times.cast(pa.string())
    first, end = years
    is_usual = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, end))
    usual = pc.if_else(is_usual, numbers, pa.scalar(0, numbers.type)).cast(times.type)
    unusual = pc.binary_join_element_wise("@", numbers.cast(pa.string()), "")
    return pc.if_else(is_usual, usual.cast(pa.string()), unusual)


def _are_usual(numbers: Column, years: tuple[int, ...]) -> bool:
    first, end = years
    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is None or (first <= bounds["min"] and bounds["max"] < end)


def _of_binary(column: Column) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_of_binary(chunk) for chunk in column.chunks], pa.string())
    ends = np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, 8 * column.offset) if len(column) else [0]
    data = column.buffers()[2]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    digits, offsets = np.take(_HEX, content), 2 * (np.asarray(ends, np.int64) - ends[0])
    texts = pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets), pa.py_buffer(digits))
    if column.null_count:
        texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.large_string()))
    return texts.cast(pa.string())
