"""What a row takes in memory, at least."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as kinds


def row_bytes(fields: Iterable[pa.Field]) -> int:
    """Bytes that Arrow takes for one row of these columns even if all of it is null."""
    return sum(map(_value_bytes, (field.type for field in fields)))


@lru_cache(maxsize=1_000)
def _value_bytes(kind: pa.DataType) -> int:
    if kinds.is_fixed_size_list(kind):
        return int(kind.list_size) * _value_bytes(kind.value_type)
    try:
        own = int(-(-kind.bit_width // 8))
    except ValueError:  # no fixed width: an offset, or nothing but its children
        own = 4
    return max(1, own) + sum(_value_bytes(kind.field(index).type) for index in range(kind.num_fields))
