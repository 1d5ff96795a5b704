"""Equal rows of a bag, told apart by a number: which of them leave, or stay, is then a matter of counting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state.tables.group_key import group_keys
from state.tables.stored_rows import WEIGHT_FIELD

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


def without(rows: pa.Table, gone: pa.Table) -> pa.Table:
    """Rows without others, as far as these are among them; a row that is there twice leaves once for each of these."""
    kinds = kinds_of(pa.concat_tables([gone, rows]))
    leaving, present = kinds[: gone.num_rows], kinds[gone.num_rows :]
    numbers = np.bincount(leaving, minlength=int(kinds.max(initial=-1)) + 1)
    return rows.filter(pa.array(numbered(present) >= numbers[present]))


def different(rows: pa.Table) -> pa.Table:
    """The rows without those that leave and come again, one for one.

    Args:
        rows: with their weights, -1 or 1, in the last column.
    """
    weights, kinds = rows.column(WEIGHT_FIELD.name).to_numpy(), kinds_of(rows.drop_columns(WEIGHT_FIELD.name))
    net = np.bincount(kinds, weights).astype(np.int64)
    return rows.filter(pa.array(numbered(kinds * 2 + (weights > 0)) < net[kinds] * weights))
