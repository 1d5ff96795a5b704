"""Safe types: Arrow types that arrive in Spark unchanged, and a replacement for each other type.

Some types are corrupted by the ingest without an error (`large_string`, `timestamp[ns]`), others crash a Spark task
(dictionary, unsigned 64-bit): every column is brought to a safe type before it leaves its reader.

    null, string_view, large_string            string
    large_binary, fixed_size_binary, ...       binary
    uint8 / uint16 / uint32 / uint64           int16 / int32 / int64 / decimal(20, 0)
    float16                                    float32
    date64                                     date32
    timestamp of any unit                      timestamp[us]; with any zone, timestamp[us, UTC]
    decimals                                   decimal128
    dictionary, run-end encoded, extensions    the type of their values
    lists of any kind, structs, maps           list, struct, map of safe types

Everything is nullable, since a file may lack a column.  Arrow's metadata of fields is dropped.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from actors.schemas.column_names import RESERVED_PREFIX, unique_names
from state.errors import SchemaError

_MAX_PRECISION = 38
_OPEN = {b"slackwater": b"open"}


def safe_schema(schema: pa.Schema, null: pa.DataType = pa.string()) -> pa.Schema:
    """The schema of the rows of a source in Spark; a safe schema is returned unchanged.

    Args:
        schema: any Arrow schema.
        null: the type of columns without any value; `pa.null()` leaves it open.

    Raises:
        SchemaError: a column's type has no form in Spark, or two columns have one name; the message names the column.
    """
    if not len(schema):
        raise SchemaError("the schema has no columns; declare at least one")
    seen: set[str] = set()
    for name in schema.names:
        if name in seen:
            raise SchemaError(f"column {name} appears twice; give each column a name of its own")
        seen.add(name)
        if name.startswith(RESERVED_PREFIX):
            raise SchemaError(f"column {name}: names that start with {RESERVED_PREFIX} are reserved; rename it")
    for field in schema:
        if "\0" in field.name or has_nul_in_names(field.type):
            raise SchemaError(f"column {field.name!r}: a name contains a NUL character; rename it")
    return pa.schema([pa.field(field.name, safe_type(field.type, field.name, null)) for field in schema])


def open_text(name: str) -> pa.Field:
    """A column that had no value when its schema was decided: text, also of values of other types."""
    return pa.field(name, pa.string(), metadata=_OPEN)


def is_open(field: pa.Field) -> bool:
    """True for a column that `open_text` made."""
    return bool(field.metadata == _OPEN)


def without_marks(schema: pa.Schema) -> pa.Schema:
    """The schema of rows: without the marks of open columns."""
    return pa.schema([field.remove_metadata() for field in schema]) if any(map(is_open, schema)) else schema


def suggested_schema(schema: pa.Schema) -> pa.Schema:
    """The safe schema that the columns of a file suggest for a source: with usable names, also of fields in structs.

    A column of a type without a form in Spark is left out: reading the file reports it.  A column without any value has
    type null, and so has a struct without fields.

    Raises:
        SchemaError: no column has a form in Spark; the message names the first one.
    """
    fields, error = [], None
    for name, field in zip(unique_names(schema.names), schema, strict=True):
        try:
            fields.append(pa.field(name, safe_type(_with_usable_names(field.type), name, null=pa.null())))
        except SchemaError as refused:
            error = error or refused
    if error is not None and not fields:
        raise SchemaError(f"{error}, or give the source a schema")
    return safe_schema(pa.schema(fields), null=pa.null())


def _with_usable_names(kind: pa.DataType) -> pa.DataType:
    """The type, with a usable name for each field within it."""
    if kinds.is_struct(kind):
        names = unique_names([field.name for field in kind], are_nested=True)
        return pa.struct(
            [pa.field(name, _with_usable_names(field.type)) for name, field in zip(names, kind, strict=True)]
        )
    if kinds.is_map(kind):
        return pa.map_(_with_usable_names(kind.key_type), _with_usable_names(kind.item_type))
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return pa.list_(_with_usable_names(kind.value_type))
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return _with_usable_names(kind.value_type)
    return _with_usable_names(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else kind


STORABLE_NAME = "a stored column needs a name without a dot, a backtick or a NUL character"
"""What `can_be_stored` requires, for messages."""


def can_be_stored(column: str) -> bool:
    """True if Lance can store and find a column of this name.  Lance parses the names of columns as paths.

    Lance 14 writes a column with a backtick and refuses each later read of the dataset.
    """
    return bool(column) and not any(sign in column for sign in ".`\0")


def has_nul_in_names(kind: pa.DataType) -> bool:
    """True if a field within a type has a NUL character in its name: Arrow passes names to Lance as C strings."""
    return kinds.is_nested(kind) and any(
        "\0" in field.name or has_nul_in_names(field.type) for field in map(kind.field, range(kind.num_fields))
    )


def safe_type(kind: pa.DataType, column: str, null: pa.DataType = pa.string()) -> pa.DataType:
    """The safe type of a type.

    Args:
        kind: any Arrow type.
        column: the name of the column for the message, with dots into nested types.
        null: see `safe_schema`.

    Raises:
        SchemaError: the type has no safe type.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return safe_type(kind.storage_type, column, null)
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return safe_type(kind.value_type, column, null)
    if kinds.is_struct(kind):
        if not kind.num_fields:
            if kinds.is_null(null):
                return null
            raise SchemaError(f"column {column}: a struct without fields has no form in Spark; leave the column out")
        fields = [pa.field(f.name, safe_type(f.type, f"{column}.{f.name}", null)) for f in kind]
        return pa.struct(fields)
    if kinds.is_map(kind):
        key = safe_type(kind.key_type, f"{column}.key")
        return pa.map_(key, safe_type(kind.item_type, f"{column}.value", null))
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return pa.list_(safe_type(kind.value_type, f"{column}.element", null))
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if kinds.is_decimal(kind):
        return _safe_decimal(kind, column)
    if kinds.is_fixed_size_binary(kind):
        return pa.binary()
    if kinds.is_null(kind):
        return null
    found = _SIMPLE.get(kind)
    if found is None:
        raise SchemaError(
            f"column {column}: {kind} has no form in Spark; declare a schema that leaves the column out, "
            "or write it as a number or a string"
        )
    return found


def widest_type(kind: pa.DataType) -> pa.DataType:
    """The widest type of the same kind of number, at every level of a safe type: bigint, double, decimal(38, s)."""
    if kinds.is_integer(kind):
        return pa.int64()
    if kinds.is_floating(kind):
        return pa.float64()
    if kinds.is_decimal(kind):
        return pa.decimal128(_MAX_PRECISION, kind.scale)
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(widest_type(field.type)) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(widest_type(kind.key_type), widest_type(kind.item_type))
    if kinds.is_list(kind):
        return pa.list_(widest_type(kind.value_type))
    return kind


def _safe_decimal(kind: pa.DataType, column: str) -> pa.DataType:
    precision = max(kind.precision, kind.scale)
    if precision > _MAX_PRECISION or kind.scale < 0:
        raise SchemaError(
            f"column {column}: {kind} has no form in Spark, whose decimals have up to {_MAX_PRECISION} digits and no "
            "negative scale; declare a schema that leaves the column out"
        )
    return pa.decimal128(precision, kind.scale)


_UNCHANGED = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32())
_SIMPLE: dict[pa.DataType, pa.DataType] = {
    **{kind: kind for kind in _UNCHANGED},
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
