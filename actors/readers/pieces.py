"""Tables cut to size."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def cut(table: pa.Table, piece_bytes: int) -> Iterator[pa.Table]:
    """Yields the table in slices of about `piece_bytes`; whole if it is not larger than two of them."""
    if table.num_rows == 0:
        return
    pieces = 1 if table.nbytes <= 2 * piece_bytes else -(-table.nbytes // piece_bytes)
    rows = -(-table.num_rows // pieces)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)
