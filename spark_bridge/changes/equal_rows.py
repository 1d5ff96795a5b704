"""Retracted and kept rows among identical rows of a bag, see `state.equality`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from state.equality.row_identity import Kinds, kinds_of
from state.tables.stored_rows import WEIGHT_FIELD


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
