"""Equal rows of a bag, told apart by a number: which of them leave, or stay, is then a matter of counting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state.tables.group_key import group_keys

Kinds = npt.NDArray[np.int64]
"""For each row a number from 0 on, the same for equal rows."""


def kinds_of(rows: pa.Table) -> Kinds:
    """The kind of each row: equal rows are those that Spark would put into one group."""
    if not rows.num_rows:
        return np.empty(0, np.int64)
    return np.asarray(group_keys(rows.columns).dictionary_encode().indices, np.int64)


def numbered(kinds: Kinds) -> Kinds:
    """For each row the number of rows of its kind that come before it."""
    order = np.argsort(kinds, kind="stable")
    in_order = kinds[order]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order, "left")
    return numbers
