"""Conversion of the rows of a file to the schema of their source; a value that does not fit is an error."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile, one_line
from actors.schemas.column_names import NameRule, names_text, source_names
from actors.schemas.safe_types import is_open, safe_type, without_marks
from state.errors import SchemaError

_MAX_PRECISION = 38
_INT64_DIGITS = 19
_BELOW_MICROSECONDS = r"(:\d\d\.\d{6})\d+"
_ZEROS_BELOW_MICROSECONDS = r"(:\d\d\.\d{6})0+($|[^0-9])"
_LOST_DIGITS = re.compile(rf"{_BELOW_MICROSECONDS}|timestamp\[ns.* would lose data")
_TOO_LARGE = re.compile(
    r"Integer value -?\d+ not in range|CSV conversion error to u?int(8|16|32): invalid value '-?\d+'$|"
    r"convert JSON to u?int(8|16|32), couldn't parse:-?\d+$"
)
_HAS_ZONE = r"\d:?\d\d(:\d\d(\.\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)$"

Timestamps: TypeAlias = Literal["exact", "truncate"]
"""The treatment of times with digits below microseconds: an error, or without those digits."""


def conform(
    table: pa.Table,
    schema: pa.Schema,
    *,
    first_row: int = 0,
    parse_text: bool = False,
    timestamps: Timestamps = "exact",
    names: NameRule = "any_case",
) -> pa.Table:
    """The table with exactly the columns of the schema, in its order and types.

    A missing column is null; an extra column is left out.  A value is converted to a wider type (int32 → int64,
    float → double, date → timestamp) if that holds it exactly; a time without a zone counts as UTC.

    Args:
        table: rows of one file.
        schema: the safe schema of the source.
        first_row: the position in the file of the table's first row, from 0.
        parse_text: True to parse strings as dates and timestamps, for text formats.
        timestamps: the treatment of digits below microseconds.
        names: the match of the fields of structs.

    Raises:
        UnreadableFile: a column is of another kind, or a value does not fit; the message names column, types and row.
    """
    found = table.schema
    if found.equals(schema, check_metadata=True) and _is_valid(table):
        return table
    conversion = _Conversion(timestamps, names)
    columns = []
    # Each access to the names of a schema makes a new list of all of them.
    given = frozenset(found.names)
    for field in schema:
        index = found.get_field_index(field.name)
        if index < 0:
            if field.name in given:
                raise UnreadableFile(f"column {field.name} appears twice")
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(index)
        _require_fit(column.type, field, names, parse_text=parse_text)
        field_conversion = conversion._replace(as_text=is_open(field))
        chunks: list[pa.Array] = []
        row = first_row
        for chunk in column.chunks:
            chunks.append(_converted(chunk, field, row, field_conversion))
            row += len(chunk)
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.Table.from_arrays(columns, schema=without_marks(schema))


def _is_valid(table: pa.Table) -> bool:
    """True if all texts of a table are UTF-8, and no decimal has more digits than its type."""
    try:
        for index, kind in enumerate(table.schema.types):
            if _is_checked(kind):
                table.column(index).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def lost_digits(reason: str) -> str:
    """The reason of an error, with the option that helps if a time has more digits, or a number is too large."""
    if _TOO_LARGE.search(reason):
        return f'{reason}; for larger numbers, declare a source of another name with Schema(evolution="widen")'
    if not _LOST_DIGITS.search(reason):
        return reason
    return f'{reason}; declare the source with Schema(timestamps="truncate") to leave out the digits below microseconds'


def require_common_column(names: list[str], schema: pa.Schema) -> None:
    """Refuses a file without any column of its source: all its values would be null.

    Args:
        names: the columns of the file, by their names in the source.
        schema: the columns of the source.

    Raises:
        UnreadableFile: the message names the columns of the file.
    """
    if set(names).isdisjoint(schema.names):
        raise UnreadableFile(
            f"none of the source's columns ({names_text(schema.names)}) is in the file, which has {names_text(names)}"
        )


def require_fitting_columns(found: pa.Schema, schema: pa.Schema, names: NameRule = "any_case") -> None:
    """Refuses a file with a column of another kind than the source's, also if its values are not read.

    Args:
        found: the columns of the file, by their names in the source.
        schema: the schema of the source.
        names: the match of the fields of structs.

    Raises:
        UnreadableFile: the message names the column and both types.
    """
    for field in schema:
        for index in found.get_all_field_indices(field.name):
            _require_fit(found.field(index).type, field, names, parse_text=False)


def _require_fit(found: pa.DataType, field: pa.Field, names: NameRule, *, parse_text: bool) -> None:
    if found == field.type or _fits(found, field.type, names, parse_text=parse_text):
        return
    if is_open(field) and _has_text(found):
        return
    raise UnreadableFile(
        f"column {field.name}: the source has {field.type}, the file has {found}; {_remedy(found, field.type)}"
    )


def _remedy(found: pa.DataType, wanted: pa.DataType) -> str:
    again = "write the file again with the type of the source"
    is_wider = _fits(wanted, found, "any_case", parse_text=False) and not kinds.is_nested(found)
    if not is_wider or not (kinds.is_integer(found) or kinds.is_floating(found)):
        return again
    return f'{again}, or declare a source of another name with Schema(evolution="widen")'


def _has_text(found: pa.DataType) -> bool:
    """True if the values of a type can be read as text."""
    try:
        safe = safe_type(found, "", null=pa.null())
    except SchemaError:
        return False
    return not kinds.is_nested(safe) and not kinds.is_binary(safe)


def _fits(found: pa.DataType, wanted: pa.DataType, names: NameRule, *, parse_text: bool) -> bool:
    """True if values of one type may be converted to the other, judged by the types alone."""
    try:
        found = safe_type(found, "", null=pa.null())
    except SchemaError:
        return False
    if kinds.is_null(found):
        return True
    if kinds.is_struct(found) and kinds.is_struct(wanted):
        types = dict(zip(_field_names(found, wanted, names), (field.type for field in found), strict=True))
        return all(
            field.name not in types or _fits(types[field.name], field.type, names, parse_text=parse_text)
            for field in wanted
        )
    if kinds.is_map(found) and kinds.is_map(wanted):
        return _fits(found.key_type, wanted.key_type, names, parse_text=parse_text) and _fits(
            found.item_type, wanted.item_type, names, parse_text=parse_text
        )
    if kinds.is_list(found) and kinds.is_list(wanted):
        return _fits(found.value_type, wanted.value_type, names, parse_text=parse_text)
    if found == wanted:
        return True
    if kinds.is_integer(found):
        wider = kinds.is_integer(wanted) and wanted.bit_width > found.bit_width
        as_decimal = kinds.is_decimal(wanted) and wanted.scale + _INT64_DIGITS <= _MAX_PRECISION
        return bool(wider or wanted == pa.float64() or as_decimal)
    if kinds.is_decimal(found):
        return bool(kinds.is_decimal(wanted))
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(found) or found == pa.date32() or (parse_text and found == pa.string()))
    if parse_text and found == pa.string():
        return bool(wanted == pa.date32())
    return bool(found == pa.float32() and wanted == pa.float64())


class _Conversion(NamedTuple):
    """The rules by which values are converted."""

    timestamps: Timestamps
    names: NameRule
    as_text: bool = False


def _field_names(found: pa.StructType, wanted: pa.StructType, names: NameRule) -> list[str]:
    """The name that each field of a struct has in the struct of the source."""
    return source_names([field.name for field in found], [field.name for field in wanted], names, are_nested=True)


def _converted(chunk: pa.Array, field: pa.Field, first_row: int, conversion: _Conversion) -> pa.Array:
    try:
        return _checked(chunk, field.type, conversion)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = lost_digits(f"column {field.name}: {one_line(error)}")
    raise UnreadableFile(reason, first_row + _first_bad(chunk, field.type, conversion) + 1)


def _checked(array: pa.Array, wanted: pa.DataType, conversion: _Conversion) -> pa.Array:
    if conversion.as_text and array.type != wanted:
        array = _convert(array, safe_type(array.type, "", null=pa.null()), conversion)
        result = array.cast(wanted)
    else:
        result = array if array.type == wanted else _convert(array, wanted, conversion)
    return _validated(result) if _is_checked(wanted) else result


def _validated(array: pa.Array) -> pa.Array:
    """An array of checked values; of a slice of nested values, without those of its neighbours."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        if not kinds.is_nested(array.type):
            raise
        array = array.take(pa.array(np.arange(len(array))))
        array.validate(full=True)
    return array


def _first_bad(chunk: pa.Array, wanted: pa.DataType, conversion: _Conversion) -> int:
    """The index of the first value that cannot be converted, by binary search."""
    low, high = 0, len(chunk)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _checked(chunk.slice(low, middle - low), wanted, conversion)
            low = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
    return low


@lru_cache(maxsize=1_000)
def _is_checked(kind: pa.DataType) -> bool:
    """True for a type that a reader may fill with other values: text, and decimals."""
    if kind == pa.string() or kinds.is_decimal(kind):
        return True
    return any(_is_checked(kind.field(index).type) for index in range(kind.num_fields))


def _convert(array: pa.Array, wanted: pa.DataType, conversion: _Conversion) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kinds.is_dictionary(array.type):
        array = _without_view(array.dictionary).take(array.indices)
    elif kinds.is_run_end_encoded(array.type):
        rows = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
        array = _without_view(array.values).take(pa.array(runs))
    if array.type == wanted:
        return array
    if kinds.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if kinds.is_struct(array.type) and not kinds.is_struct(wanted):
        # `{}`, which fits every type.
        return pa.nulls(len(array), wanted)
    if kinds.is_struct(wanted):
        return _convert_struct(array, wanted, conversion)
    if kinds.is_map(wanted):
        offsets, within = _own_elements(array)
        keys = _convert(array.keys[within], wanted.key_type, conversion)
        items = _convert(array.items[within], wanted.item_type, conversion)
        return pa.MapArray.from_arrays(offsets, keys, items, type=wanted, mask=_null_mask(array))
    if kinds.is_list(wanted):
        offsets, elements = _elements(array)
        values = _convert(elements, wanted.value_type, conversion)
        return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=_null_mask(array))
    if kinds.is_timestamp(wanted):
        return _convert_time(_truncated(array) if conversion.timestamps == "truncate" else array, wanted)
    if kinds.is_decimal(wanted) and kinds.is_integer(array.type):
        # Arrow asks for room for every value of the integer type; only the present values must fit.
        array = array.cast(pa.decimal128(_MAX_PRECISION, wanted.scale))
    return array.cast(wanted)


def _without_view(array: pa.Array) -> pa.Array:
    """The same values without views, of which Arrow cannot `take` single values."""
    plain = {pa.binary_view(): pa.large_binary(), pa.string_view(): pa.large_string()}.get(array.type)
    return array if plain is None else array.cast(plain)


def _elements(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The offsets of a list array of any kind, from 0, and its elements.

    Arrow's own casts abort the process for some nested lists of a fixed size.
    """
    if kinds.is_fixed_size_list(array.type):
        lengths = pc.if_else(array.is_null(), 0, array.type.list_size).cast(pa.int32())
        return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)]), array.flatten()
    offsets, within = _own_elements(array)
    return offsets.cast(pa.int32()), array.values[within]


def _own_elements(array: pa.Array) -> tuple[pa.Array, slice]:
    """The offsets of a list or map array, from 0, and the range of its elements in the shared array."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return pc.subtract(array.offsets, first), slice(first, last)


def _convert_struct(array: pa.StructArray, wanted: pa.StructType, conversion: _Conversion) -> pa.Array:
    names = _field_names(array.type, wanted, conversion.names)
    positions = {name: position for position, name in enumerate(names)}
    children = []
    for field in wanted:
        if field.name in positions:
            children.append(_convert(array.field(positions[field.name]), field.type, conversion))
        else:
            children.append(pa.nulls(len(array), field.type))
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_null_mask(array))


def _truncated(array: pa.Array) -> pa.Array:
    """Times without their digits below microseconds: the last microsecond before them, as in Spark's readers."""
    if array.type == pa.string():
        return pc.replace_substring_regex(array, _BELOW_MICROSECONDS, r"\1")
    if kinds.is_timestamp(array.type) and array.type.unit == "ns":
        return pc.floor_temporal(array, unit="microsecond")
    return array


def _convert_time(array: pa.Array, wanted: pa.TimestampType) -> pa.Array:
    if array.type == pa.string() and wanted.tz:
        texts = pc.utf8_trim_whitespace(array)
        texts = pc.if_else(pc.equal(pc.utf8_length(texts), 10), pc.binary_join_element_wise(texts, "00:00", " "), texts)
        has_zone = pc.match_substring_regex(texts, _HAS_ZONE)
        array = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
    if array.type == pa.string():
        return _cast_text(array, wanted)
    if kinds.is_timestamp(array.type) and bool(array.type.tz) != bool(wanted.tz):
        exact = array.cast(pa.timestamp("us", array.type.tz))
        return exact.cast(pa.int64()).cast(wanted)
    return array.cast(wanted)


def _cast_text(texts: pa.Array, wanted: pa.TimestampType) -> pa.Array:
    """Times of ISO 8601, also with zeros below microseconds, as .NET, Java and Go write them: Arrow refuses those."""
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(texts, _ZEROS_BELOW_MICROSECONDS, r"\1\2").cast(wanted)


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
