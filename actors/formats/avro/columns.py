"""Columns of Arrow from what fastavro decoded: plain numbers, bytes, lists and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

Make = Callable[[pa.Array], pa.Array]

_DECIMAL_BYTES = {128: 16, 256: 32}


def unchanged(array: pa.Array) -> pa.Array:
    """The column as it was decoded."""
    return array


def viewed(kind: pa.DataType) -> Make:
    """The same bytes as another type; text is not checked to be UTF-8."""
    return lambda array: array.view(kind)


def symbols(names: Sequence[str]) -> Make:
    """The symbols of an enumeration, by their numbers."""
    texts = pa.array(names, pa.string())
    return lambda array: pa.DictionaryArray.from_arrays(array, texts)


def struct(fields: Sequence[pa.Field], makes: Sequence[Make]) -> Make:
    """A struct with the names of the file."""

    def make(array: pa.Array) -> pa.Array:
        columns = [each(array.field(number)) for number, each in enumerate(makes)]
        if not columns:
            return pa.array([{} if each else None for each in array.is_valid().to_pylist()], pa.struct([]))
        return pa.StructArray.from_arrays(columns, fields=list(fields), mask=_nulls(array))

    return make


def lists(kind: pa.DataType, make: Make) -> Make:
    """Lists of elements of a type."""
    return lambda array: pa.ListArray.from_arrays(
        array.offsets, make(array.values), type=pa.list_(kind), mask=_nulls(array)
    )


def maps(kind: pa.DataType, make: Make) -> Make:
    """Maps, from lists of pairs."""

    def maps(array: pa.Array) -> pa.Array:
        pairs = array.values
        keys = pairs.field(0).view(pa.string())
        return pa.MapArray.from_arrays(array.offsets, keys, make(pairs.field(1)), type=kind, mask=_nulls(array))

    return maps


def decimals(kind: pa.DataType) -> Make:
    """Decimals, from their digits as whole numbers of big-endian bytes.

    Numbers with more digits than the type become decimals too; the schema of a source refuses them row by row.
    """
    width = _DECIMAL_BYTES[kind.bit_width]

    def make(array: pa.Array) -> pa.Array:
        offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
        starts, ends = offsets[:-1], offsets[1:]
        data = array.buffers()[2]
        digits = np.frombuffer(b"" if data is None else data, np.uint8)
        lengths = ends - starts
        numbers = np.zeros((len(array), width), np.uint8)
        there = lengths > 0
        negative = np.zeros(len(array), np.bool_)
        negative[there] = digits[starts[there]] >= 0x80
        numbers[negative] = 0xFF
        for place in range(width):
            has = lengths > place
            numbers[has, place] = digits[ends[has] - 1 - place]
        for row in np.flatnonzero(lengths > width):
            _require_sign_alone(digits[starts[row] : ends[row] - width + 1], bool(negative[row]))
        validity = array.buffers()[0]
        return pa.Array.from_buffers(kind, len(array), [validity, pa.py_buffer(numbers.tobytes())])

    return make


def _require_sign_alone(leading: np.ndarray, is_negative: bool) -> None:
    """Refuses a number that is too long, whose bytes up to the first that is kept do more than to tell its sign."""
    sign = 0xFF if is_negative else 0
    if (leading[:-1] != sign).any() or (leading[-1] >= 0x80) != is_negative:
        raise pa.ArrowInvalid("a decimal has more digits than its type")


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
