"""INT96 times, which Spark and Hive write: exact in nanoseconds within 1677 to 2262, and in microseconds otherwise.

Arrow decodes them in one unit.  In nanoseconds, 9999-12-31 becomes a time in 1816 without an error; in microseconds,
digits below them are left out without an error.  Both results together show each fault.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile

_INT96 = "INT96"
_NS = pa.timestamp("ns")
_FIRST_US, _LAST_US = -(2**63) // 1000 + 1, (2**63 - 1) // 1000 - 1
"""The microseconds that are also times in nanoseconds."""
_LOSSY_NS = 1  # a time in nanoseconds that no type in microseconds holds


def int96_columns(schema: pq.ParquetSchema, columns: pa.Schema) -> list[str]:
    """The names of the columns with a value of this type, also inside of lists and structs.

    Args:
        schema: the schema of the file.
        columns: the columns that are read, as Arrow decodes them.
    """
    # The leaves cost more than the types.
    if not any(_may_be_int96(kind) for kind in columns.types):
        return []
    leaves = (schema.column(index) for index in range(len(schema.names)))
    found = {leaf.path.partition(".")[0] for leaf in leaves if leaf.physical_type == _INT96}
    return [name for name in columns.names if name in found]


@lru_cache(maxsize=1_000)
def _may_be_int96(kind: pa.DataType) -> bool:
    return kind == _NS or any(_may_be_int96(kind.field(index).type) for index in range(kind.num_fields))


def exact_times(in_us: pa.Table, in_ns: pa.Table) -> Iterator[pa.Table]:
    """Yields a table with its INT96 columns in a unit that holds them, nearly always in one part.

    Args:
        in_us: the table, with these columns in microseconds.
        in_ns: only these columns, in nanoseconds.

    Raises:
        UnreadableFile: a list or a struct has both a time outside of 1677 to 2262 and digits below microseconds.
    """
    table, is_lossy = in_us, np.zeros(in_us.num_rows, bool)
    for name in in_ns.column_names:
        us, ns = in_us[name], in_ns[name]
        if not _is_outside(us):
            table = _replaced(table, name, ns)
        elif kinds.is_timestamp(us.type):
            is_lossy |= _lossy(us, ns)
        elif any(_lossy(*leaves).any() for leaves in zip(_leaves(us), _leaves(ns), strict=True)):
            raise UnreadableFile(f"column {name}: a time has digits below microseconds")
    if not is_lossy.any():
        yield table
        return
    borders = [0, *(np.flatnonzero(np.diff(is_lossy)) + 1).tolist(), table.num_rows]
    for start, end in itertools.pairwise(borders):
        part = table.slice(start, end - start)
        if is_lossy[start]:
            for name in in_ns.column_names:
                if part[name].type != _NS and kinds.is_timestamp(part[name].type):
                    part = _replaced(part, name, _shown_lossy(in_us[name], in_ns[name], start, end))
        yield part


def _shown_lossy(us: pa.ChunkedArray, ns: pa.ChunkedArray, start: int, end: int) -> pa.ChunkedArray:
    """The rows in nanoseconds, which `conform` refuses one by one; a time outside 1677 to 2262 becomes `_LOSSY_NS`."""
    us, ns = us.slice(start, end - start), ns.slice(start, end - start)
    is_inside = pc.and_(pc.greater_equal(_numbers(us), _FIRST_US), pc.less_equal(_numbers(us), _LAST_US))
    return pc.if_else(pc.or_(is_inside, pc.is_null(us)), ns, pa.scalar(_LOSSY_NS, pa.int64()).cast(_NS))


def _is_outside(us: pa.ChunkedArray) -> bool:
    """True if a value is outside the range of times in nanoseconds."""
    for leaf in _leaves(us):
        borders = pc.min_max(_numbers(leaf))
        if borders["min"].is_valid and not _FIRST_US <= borders["min"].as_py() <= borders["max"].as_py() <= _LAST_US:
            return True
    return False


def _lossy(us: pa.ChunkedArray, ns: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each value whether it has digits below microseconds; a value outside of the range has wrapped around."""
    micro, nano = (pc.fill_null(_numbers(each), 0).to_numpy() for each in (us, ns))
    is_lossy: npt.NDArray[np.bool_] = nano - micro * 1000 != 0
    return is_lossy


def _numbers(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.int64())


def _leaves(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The times inside of a column."""
    kind = column.type
    if kinds.is_timestamp(kind):
        yield column
    elif kinds.is_struct(kind):
        for field in column.flatten():
            yield from _leaves(field)
    elif kinds.is_map(kind):
        for part in ("keys", "items"):
            yield from _leaves(pa.chunked_array([getattr(each, part) for each in column.chunks]))
    elif kinds.is_nested(kind):
        yield from _leaves(pc.list_flatten(column))


def _replaced(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
