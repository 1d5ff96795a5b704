"""Rows under another schema with the same columns, value for value.

Arrow's own cast is not usable here.  It refuses a null struct that has a field without nulls, although such a row is
valid.  It also matches the fields of nested structs by name.  The writers of Parquet files refuse the same row, because
Arrow stores a null below each null struct.  PyIceberg's conversion turns a null list of structs into an empty list.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from state.errors import SchemaError


def exact_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same values under a schema with the same columns.

    Nested types are matched by position.  Below a null struct, a field without nulls gets a default value, which no
    reader sees.

    Args:
        rows: the rows, with the columns of the schema in any order.
        schema: names, types and nullability.

    Raises:
        SchemaError: a column without nulls has some, or a value does not fit its type.
    """
    arrays = []
    for field in schema:
        try:
            arrays.append(_exact(_whole(rows[field.name]), field))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _NullFoundError) as error:
            raise SchemaError(f"column {field.name!r} cannot be written as {field.type}: {error}") from None
    return pa.Table.from_arrays(arrays, schema=schema)


def with_nulls(schema: pa.Schema) -> pa.Schema:
    """The schema with columns that may all be null."""
    return pa.schema([field.with_nullable(True) for field in schema])


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """The type with parts that may all be null, but for the keys of a map."""
    if kinds.is_struct(kind):
        return pa.struct([(field.name, nullable_type(field.type)) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(nullable_type(kind.key_type), nullable_type(kind.item_type))
    if kinds.is_list(kind):
        return pa.list_(nullable_type(kind.value_type))
    return pa.large_list(nullable_type(kind.value_type)) if kinds.is_large_list(kind) else kind


class _NullFoundError(ValueError):
    """A null in a field that is not nullable."""


def _exact(array: pa.Array, field: pa.Field) -> pa.Array:
    if not field.nullable and array.null_count:
        raise _NullFoundError(f"{field.name} has a null, and must have none")
    kind = field.type
    # A null struct keeps what its children hold, so an equal type does not suffice below a nested one.
    if not kinds.is_nested(kind):
        return array if array.type == kind else array.cast(kind)
    valid = array.is_valid()
    mask = None if not array.null_count else pc.invert(valid)
    if kinds.is_struct(kind):
        children = [_child(array, at, kind.field(at), valid) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    offsets = _offsets(array, valid, pa.int64() if kinds.is_large_list(kind) else pa.int32())
    if kinds.is_map(kind):
        entries = _entries(array, mask)
        keys, items = (pc.struct_field(entries, [at]) for at in (0, 1))
        return pa.MapArray.from_arrays(
            offsets, _exact(keys, kind.key_field), _exact(items, kind.item_field), type=kind, mask=mask
        )
    values = _exact(array.flatten(), kind.value_field)
    make: Callable[..., pa.Array] = (pa.LargeListArray if kinds.is_large_list(kind) else pa.ListArray).from_arrays
    return make(offsets, values, type=kind, mask=mask)


def _child(array: pa.StructArray, at: int, field: pa.Field, valid: pa.Array) -> pa.Array:
    """A field of a struct, with a default value in each null struct if the field has no nulls."""
    child = pc.struct_field(array, [at])
    if not field.nullable and child.null_count and array.null_count:
        child = _filled(child, valid)
    return _exact(child, field)


def _filled(child: pa.Array, valid: pa.Array) -> pa.Array:
    """The array with a default value in each row in which the struct is null."""
    positions = pc.if_else(valid, pa.array(range(len(child)), pa.int64()), len(child))
    return pa.concat_arrays([child, _default(child.type)]).take(positions)


def _default(kind: pa.DataType) -> pa.Array:
    if kinds.is_struct(kind):
        return pa.StructArray.from_arrays([_default(each.type) for each in kind], fields=list(kind))
    if kinds.is_nested(kind):
        return pa.array([[]], kind)
    plain = pa.array([0], pa.int8())
    if kinds.is_binary(kind) or kinds.is_string(kind) or kinds.is_large_binary(kind) or kinds.is_large_string(kind):
        return pa.array([""], pa.string()).cast(kind)
    if kinds.is_date(kind) or kinds.is_time32(kind):
        return plain.cast(pa.int32()).cast(kind)
    if kinds.is_temporal(kind):
        return plain.cast(pa.int64()).cast(kind)
    return plain.cast(kind)


def _entries(array: pa.MapArray, mask: pa.Array | None) -> pa.StructArray:
    """The keys and values of all maps; Arrow has no `flatten` for maps."""
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    offsets = pc.add(array.offsets, 0)  # a copy: Arrow refuses a mask with the offsets of a slice
    return pa.ListArray.from_arrays(offsets, pairs, mask=mask).flatten()


def _offsets(array: pa.ListArray, valid: pa.Array, kind: pa.DataType) -> pa.Array:
    """The ends of the entries that `flatten` returns, which leaves out the entries of a null list."""
    ends = array.offsets.cast(pa.int64())
    lengths = pc.if_else(valid, pc.subtract(ends[1:], ends[:-1]), 0)
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(kind)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array without a slice."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    return array
