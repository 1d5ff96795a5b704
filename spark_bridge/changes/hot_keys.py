"""Keys of which an epoch meets so many rows that they decide what it costs: the trace names the hottest one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_bridge.work_cost import count_key
from state.tables.epoch_trace import HotKey
from state.tables.stored_rows import JOIN_FIELD

HOT_ROWS = 10_000
"""Rows, or pairs of a join, from which a key is hot."""
_MOST_CHARS = 100


def note_hottest(rows: pa.Table, met: npt.NDArray[np.int64], key: Iterable[str]) -> None:
    """Notes the key of which most rows are met, if it is hot.

    Args:
        rows: rows with their hashes in `__sw_join`.
        met: the positions of those that are met, once for each row or pair.
        key: the columns of the rows that the key consists of.
    """
    if len(met) < HOT_ROWS:
        return
    hashes = rows.column(JOIN_FIELD.name).take(pa.array(met)).to_numpy()
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] >= HOT_ROWS:
        row = int(met[first[most]])
        values = [f"{name}={rows.column(name)[row].as_py()}" for name in key]
        count_key(HotKey((", ".join(values) or f"hash {hashes[first[most]]}")[:_MOST_CHARS], int(counts[most])))
