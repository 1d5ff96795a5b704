"""Identity of rows and values: two rows are identical if no query can distinguish them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state.equality.value_texts import Column, Equality, joined_texts, value_texts

Kinds = npt.NDArray[np.int64]
"""For each row a number from 0 on, the same for identical rows; the numbers are in the order of first rows."""

_BITS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_MOST_KINDS = 1 << 62


def exact(column: Column) -> Any:
    """A column of simple values: Arrow's kernels find two equal exactly if the values in `column` are identical.

    Floats become their bits, with one NaN, and nested values become texts.
    """
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return exact(column.cast(data_type.value_type))
    if pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return value_texts(column, Equality.IDENTITY)
    if not pa.types.is_floating(data_type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([exact(chunk) for chunk in column.chunks], _BITS[data_type])
    is_nan = pc.fill_null(pc.is_nan(column), False)
    if pc.any(is_nan).as_py():
        column = pc.if_else(is_nan, pa.scalar(float("nan"), data_type), column)
    return column.view(_BITS[data_type])


def differ(left: Column, right: Column) -> Any:
    """True where two values are not identical; the columns have one type and one length."""
    left, right = exact(left), exact(right)
    return pc.or_(pc.fill_null(pc.not_equal(left, right), False), pc.xor(pc.is_null(left), pc.is_null(right)))


def kinds_of(rows: pa.Table) -> Kinds:
    """The kind of each row: identical rows have one kind."""
    kinds, count = np.zeros(rows.num_rows, np.int64), 1
    for column in rows.columns if rows.num_rows else ():
        codes, size = _codes(exact(column))
        if count > _MOST_KINDS // size:
            kinds, count = _codes(pa.array(kinds))
        kinds, count = kinds * size + codes, count * size
    return _codes(pa.array(kinds))[0]


def first_rows(kinds: Kinds) -> Kinds:
    """For each kind the position of its first row."""
    first = np.empty(int(kinds.max(initial=-1)) + 1, np.int64)
    first[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return first


def row_texts(rows: pa.Table) -> list[str]:
    """A text for each row; identical rows, of this table or another with the same types, have one text."""
    if not rows.num_columns:
        return [""] * rows.num_rows
    texts: list[str] = joined_texts(rows.columns, Equality.IDENTITY).to_pylist()
    return texts


def _codes(column: Column) -> tuple[Kinds, int]:
    """A number for each value, a null too, in the order of first values, and a number above them, at least 1."""
    encoded = column.dictionary_encode(null_encoding="encode")
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    codes = [np.asarray(chunk.indices).astype(np.int64) for chunk in chunks]
    numbers = np.concatenate(codes) if codes else np.empty(0, np.int64)
    return numbers, int(numbers.max(initial=0)) + 1
